"""The receiver over real HTTP: who is answered, what is answered, and what an alert cannot do."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from planted import CREDENTIALS, LOG_SECRETS, assert_clean

from lmdiag.errors import StateError
from lmdiag.http_server import HttpServer
from lmdiag.match.library import Library, open_library
from lmdiag.model import Incident
from lmdiag.receive import receiver as module
from lmdiag.receive.config import ReceiveConfig
from lmdiag.receive.look import Look
from lmdiag.receive.receiver import MAX_ALERTS, QUEUE, Receiver
from lmdiag.report.schema import json_schema
from lmdiag.scan import Forward

LOGS = Path(__file__).parent / "logs"
LOG = LOGS / "mla-serde-start-failed.log"
TOKEN = CREDENTIALS[0]
MAX_BODY = 1 << 20


@pytest.fixture(scope="module")
def library() -> Library:
    return open_library()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


class Running:
    """A receiver that listens, and what it said."""

    def __init__(self, config: ReceiveConfig, library: Library, forward: Forward | None = None) -> None:
        self.said: list[str] = []
        self.receiver = Receiver(config, library, forward, self.said.append)
        self.server = HttpServer(
            "127.0.0.1:0", self.receiver.respond, purpose="alerts", advice="", threads=16, seconds=60, max_body=MAX_BODY
        )

    def ask(
        self, body: bytes, *, path: str = "/", method: str = "POST", token: str = TOKEN, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
        """Send a request; return status, headers in lower case, and body."""
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        own = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, body, {"Content-Type": "application/json", **own, **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        assert_clean(found[2] + str(found[1]).encode(), "an answer")
        return found

    def alerts(self, *alerts: dict[str, Any], path: str = "/") -> list[Any]:
        """Send alerts; return what is answered to each."""
        status, _, body = self.ask(payload(*alerts), path=path)
        assert status == 200
        found = json.loads(body)
        assert (found["schema_version"], found["kind"]) == (1, "answer")
        return list(found["alerts"])


@pytest.fixture
def start(library: Library, token_file: Path) -> Iterator[Callable[..., Running]]:
    """Start receivers, which end with the test."""
    running: list[Running] = []

    def begin(forward: Forward | None = None, **config: Any) -> Running:
        running.append(Running(ReceiveConfig(token_file=str(token_file))._replace(**config), library, forward))
        return running[-1]

    yield begin
    for one in running:
        one.server.close()
        assert_clean("\n".join(one.said), "what was said")


def firing(**labels: str) -> dict[str, Any]:
    return {"status": "firing", "labels": {"alertname": "VLLMDown", **labels}}


def payload(*alerts: dict[str, Any]) -> bytes:
    return json.dumps({"version": "4", "alerts": alerts}).encode()


def test_an_alert_is_answered_with_the_incident(start: Callable[..., Running]) -> None:
    (answer,) = start(paths=(str(LOG),)).alerts(firing(instance="node7"))
    assert answer["labels"] == {"alertname": "VLLMDown", "instance": "node7"}
    assert (answer["logs"], answer["problem"], answer["status"]) == ([str(LOG)], "", "firing")
    (incident,) = answer["incidents"]
    assert incident["outcome"] == "start_failed"
    assert incident["advice"]
    Draft202012Validator(json_schema()).validate(incident)


@pytest.mark.parametrize(
    ("path", "headers"), [("/?format=text", {}), ("/", {"Accept": "text/plain"}), ("/?format=text", {"Accept": "*/*"})]
)
def test_a_person_is_answered_with_the_card(start: Callable[..., Running], path: str, headers: dict[str, str]) -> None:
    status, head, body = start(paths=(str(LOG),)).ask(payload(firing(instance="node7")), path=path, headers=headers)
    assert (status, head["content-type"]) == (200, "text/plain; charset=utf-8")
    text = body.decode()
    assert text.startswith("FIRING  alertname=VLLMDown, instance=node7\n")
    assert "What to change" in text
    assert "1 source" in text


def test_a_resolved_alert_is_only_acknowledged(start: Callable[..., Running]) -> None:
    running = start(paths=(str(LOG),))
    (answer,) = running.alerts({"status": "resolved", "labels": {"a": "b"}})
    assert answer == {"status": "resolved", "labels": {"a": "b"}, "logs": [], "incidents": [], "problem": ""}
    text = running.ask(payload({"status": "resolved", "labels": {"job": "x"}}), path="/?format=text")[2]
    assert text == b"RESOLVED  job=x\n"


def test_the_labels_of_each_alert_choose_its_log(start: Callable[..., Running], tmp_path: Path) -> None:
    for name, log in (("a", LOG), ("b", LOGS / "mla-serde-degraded.log")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.log").write_bytes(log.read_bytes())
    answers = start(logs=f"{tmp_path}/{{pod}}/*.log").alerts(
        firing(pod="a"), firing(pod="b"), firing(pod="c"), firing(), firing(pod="../a"), firing(pod="*")
    )
    assert [answer["logs"] for answer in answers] == [
        [f"{tmp_path}/a/server.log"], [f"{tmp_path}/b/server.log"], [], [], [], [],
    ]  # fmt: skip
    assert [[one["outcome"] for one in answer["incidents"]] for answer in answers[:2]] == [
        ["start_failed"],
        ["degraded"],
    ]
    assert "no file fits" in answers[2]["problem"]
    assert "no label pod" in answers[3]["problem"]
    assert all("the label pod is" in answer["problem"] for answer in answers[4:])


def test_the_worst_comes_first_and_of_those_the_newest(start: Callable[..., Running], tmp_path: Path) -> None:
    for number, name in enumerate(("mla-serde-degraded.log", "server-stalled.log", "kv-cache-too-small.log")):
        (tmp_path / f"{number}x.log").write_bytes((LOGS / name).read_bytes())
    (answer,) = start(paths=(str(tmp_path / "*x.log"),)).alerts(firing())
    severities = ["info", "warning", "error", "critical"]
    found = [severities.index(incident["severity"]) for incident in answer["incidents"]]
    assert len(found) >= 3
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "ä", "Bearer " + TOKEN[1:]])
def test_without_the_token_nothing_is_answered(start: Callable[..., Running], token: str) -> None:
    status, head, body = start(paths=(str(LOG),)).ask(payload(firing()), token=token)
    assert (status, head["www-authenticate"]) == (401, "Bearer")
    assert b"mla" not in body


def test_another_scheme_is_no_token(start: Callable[..., Running]) -> None:
    running = start(paths=(str(LOG),))
    assert running.ask(payload(), token="", headers={"Authorization": f"Basic {TOKEN}"})[0] == 401
    assert running.ask(payload(), token="", headers={"Authorization": f"bearer  {TOKEN}"})[0] == 200


def test_a_new_token_counts_at_once(start: Callable[..., Running], token_file: Path) -> None:
    running = start(paths=(str(LOG),))
    token_file.write_text(CREDENTIALS[1])
    assert running.ask(payload())[0] == 401
    assert running.ask(payload(), token=CREDENTIALS[1])[0] == 200
    token_file.unlink()
    status, _, body = running.ask(payload(), token="")
    assert (status, b"token-file" in body) == (503, True)


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("GET", "/", {}, 405),
        ("POST", "/x", {}, 404),
        ("POST", "/../etc/passwd", {}, 404),
        ("POST", "//[x", {}, 404),
        ("POST", "/", {"Content-Type": "text/plain"}, 415),
        ("POST", "/", {"Content-Type": "application/json; charset=utf-8"}, 200),
        ("POST", "/?format=%00&format=&x=" + "y" * 1000, {}, 200),
    ],
)
def test_what_else_is_asked_for(
    start: Callable[..., Running], method: str, path: str, headers: dict[str, str], expected: int
) -> None:
    assert start(paths=(str(LOG),)).ask(payload(), method=method, path=path, headers=headers)[0] == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b"{", 400), (b"[" * 500_000, 400), (b'{"version": "5", "alerts": []}', 400), (b"x" * (MAX_BODY + 1), 413)],
)
def test_a_body_that_is_no_payload_is_refused(start: Callable[..., Running], body: bytes, expected: int) -> None:
    status, head, text = start(paths=(str(LOG),)).ask(body)
    assert (status, head["content-type"]) == (expected, "text/plain; charset=utf-8")
    assert b"Traceback" not in text
    assert len(text) < 300


def test_alerts_beyond_the_bound_are_counted(start: Callable[..., Running]) -> None:
    running = start(paths=(str(LOG),))
    status, _, body = running.ask(payload(*(firing(n=str(number)) for number in range(MAX_ALERTS + 3))))
    found = json.loads(body)
    assert (status, len(found["alerts"]), found["left_out"]) == (200, MAX_ALERTS, 3)
    text = running.ask(payload(*[firing()] * (MAX_ALERTS + 3)), path="/?format=text")[2]
    assert text.endswith(b"3 more alerts were not looked at.\n")


def test_alerts_of_one_request_share_their_logs(start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def count(found: Any, *_: object) -> Look:
        looked.append(found.path)
        return Look(found.name)

    monkeypatch.setattr(module, "look", count)
    start(paths=(str(LOG),)).alerts(firing(a="1"), firing(a="2"), firing(a="3"))
    assert looked == [str(LOG)]


def test_labels_are_no_markup_and_no_commands(start: Callable[..., Running]) -> None:
    hostile = {"instance": "\x1b[2J\u202e<script>\r\nX: y\ud800", "pod": "`x` **b**\n# h", "a\x00b": "\ud800"}
    running = start(logs="/nowhere/{instance}.log")
    body = payload(firing(**hostile)).replace(b"\\ud800", b"")
    status, head, text = running.ask(body, path="/?format=text")
    assert (status, "x" in head) == (200, False)
    assert not {"\x1b", "\u202e", "\r"} & set(text.decode())
    assert running.alerts(firing(instance="\x1b[2J"))[0]["problem"].isprintable()
    assert all(line.isprintable() or "\x1b" not in line for line in running.said)


def test_no_secret_of_a_log_is_in_an_answer(start: Callable[..., Running], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    head = f"INFO 12-01 02:00:00 [api_server.py:1] HF_TOKEN={LOG_SECRETS[0]} api_key='{LOG_SECRETS[1]}'\n".encode()
    log.write_bytes(head + LOG.read_bytes() + f"ValueError: token {LOG_SECRETS[0]}\n".encode())
    running = start(paths=(str(log),))
    assert running.alerts(firing())[0]["incidents"]  # `ask` looks for what was planted
    running.ask(payload(firing()), path="/?format=text")


def test_what_was_found_is_forwarded_before_it_is_answered(start: Callable[..., Running]) -> None:
    forwarded: list[Incident] = []
    (answer,) = start(lambda incidents, _: forwarded.extend(incidents), paths=(str(LOG),)).alerts(firing())
    assert [incident.id for incident in forwarded] == [incident["id"] for incident in answer["incidents"]]


def test_what_cannot_be_forwarded_is_to_be_sent_again(start: Callable[..., Running]) -> None:
    def full(*_: object) -> None:
        raise StateError("the outbox is full")

    running = start(full, paths=(str(LOG),))
    status, head, body = running.ask(payload(firing()))
    assert (status, head["retry-after"], body) == (503, "60", b"the outbox is full\n")
    assert running.said == ["the outbox is full"]


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Hold every look until the block ends; the semaphore counts those that have begun."""
    begun, release = threading.Semaphore(0), threading.Event()

    def wait(found: Any, *_: object) -> Look:
        begun.release()
        assert release.wait(60)
        return Look(found.name)

    monkeypatch.setattr(module, "look", wait)
    try:
        yield begun
    finally:
        release.set()


def test_one_is_answered_at_a_time_some_wait_and_others_are_to_come_again(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(paths=(str(LOG),))
    statuses: list[int] = []
    done = threading.Semaphore(0)

    def ask() -> None:
        statuses.append(running.ask(payload(firing()))[0])
        done.release()

    extra = 3
    threads = [threading.Thread(target=ask) for _ in range(1 + QUEUE + extra)]
    with held(monkeypatch) as begun:
        for thread in threads:
            thread.start()
        for _ in range(extra):  # those who find no place are answered at once
            assert done.acquire(timeout=60)
        assert statuses == [503] * extra
        assert begun.acquire(timeout=60)
        assert not begun.acquire(blocking=False)
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * (1 + QUEUE) + [503] * extra


def test_who_waits_too_long_is_to_come_again(start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.05)
    running = start(paths=(str(LOG),))
    with held(monkeypatch) as begun:
        first = threading.Thread(target=running.ask, args=(payload(firing()),))
        first.start()
        assert begun.acquire(timeout=60)
        status, head, _ = running.ask(payload(firing()))
    first.join()
    assert (status, head["retry-after"]) == (503, "10")
