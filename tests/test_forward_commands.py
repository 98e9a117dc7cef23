"""`lmdiag forward test`: what an operator sees of a sink before it is needed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from messages import NOW
from planted import CREDENTIALS, assert_clean
from receiver import Answer, Receiver, reset

from lmdiag.config import SinkConfig, WatchConfig
from lmdiag.errors import CardError, UsageError
from lmdiag.forward_commands import sample_incident, send_tests
from lmdiag.match.library import open_library

BEARER, PASSWORD, SIGNING, ROUTING, HOOK = CREDENTIALS
ECHO = [sys.executable, "-c", "import sys; print(sys.stdin.read())"]
REFUSED = Answer(500, body=b"overloaded")


def config(*sinks: SinkConfig, disabled: Sequence[str] = ()) -> WatchConfig:
    return WatchConfig(sinks=sinks, instance="node7", color=False, width=100, disabled=tuple(disabled))


def sent(
    configured: WatchConfig, *names: str, style: str = "text", dry_run: bool = False, file: str | None = None
) -> tuple[int, str]:
    out = io.StringIO()
    code = send_tests(configured, file, names, style, out, dry_run=dry_run, clock=lambda: NOW)
    return code, out.getvalue()


def steps(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def webhook(url: str, name: str = "hook", **settings: Any) -> SinkConfig:
    return SinkConfig(name=name, type="webhook", url=url, **settings)


def written(directory: Path, text: str) -> str:
    path = directory / f"credential-{len(list(directory.iterdir()))}"
    path.write_text(text)
    return str(path)


def test_a_test_is_sent_and_the_answer_shown() -> None:
    with Receiver(default=Answer(200, body=b"thanks")) as receiver:
        code, text = sent(config(webhook(receiver.url)))
    (taken,) = receiver.taken
    assert code == 0
    assert text.startswith("hook (webhook), opened\n\n  What is sent\n      POST http://127.0.0.1:")
    assert taken.body.decode() in text
    assert "delivered in " in text
    assert "HTTP 200 OK\n    thanks\n" in text


def test_nobody_takes_it_for_a_real_incident() -> None:
    with Receiver() as receiver:
        hook, pager = webhook(receiver.url), SinkConfig(name="am", type="alertmanager", url=receiver.url)
        sent(config(hook, pager))
        sent(config(hook, pager))
    bodies = [taken.json for taken in receiver.taken]
    events, alerts = bodies[::3], [body[0] for body in (*bodies[1:3], *bodies[4:])]
    assert all(event["data"]["title"].startswith("Test of lmdiag: ") for event in events)
    assert all("Test of lmdiag: " in alert["annotations"]["summary"] for alert in alerts)
    assert len({event["data"]["id"] for event in events}) == len({event["data"]["fingerprint"] for event in events}) == 2
    assert len({taken.headers["idempotency-key"] for taken in receiver.taken[::3]}) == 2
    assert {event["data"]["source"] for event in events} == {"lmdiag forward test"}
    assert {alert["labels"]["source"] for alert in alerts} == {"lmdiag forward test"}
    assert alerts[0]["labels"] == alerts[1]["labels"] != alerts[2]["labels"] == alerts[3]["labels"]


def test_the_sample_is_a_diagnosis_with_its_advice() -> None:
    with Receiver() as receiver:
        sent(config(webhook(receiver.url)))
    data = receiver.taken[0].json["data"]
    assert data["card"] == "lmcache-mla-layerwise"
    assert data["advice"]
    assert data["evidence"]


def test_without_its_card_another_one_serves() -> None:
    card = sample_incident(open_library())[1]
    incident, other = sample_incident(open_library(disabled=[card.id]))
    assert incident.card == other.id != card.id
    with pytest.raises(CardError, match="are all of them disabled"):
        sample_incident(open_library(disabled=open_library().pack.ids))


@pytest.mark.parametrize("kind", ["alertmanager", "alertmanager-webhook"])
def test_a_service_with_a_memory_is_told_the_end_too(kind: str) -> None:
    with Receiver() as receiver:
        code, text = sent(config(SinkConfig(name="am", type=kind, url=receiver.url)), style="jsonl")
    assert code == 0
    assert [step["state"] for step in steps(text)] == ["opened", "resolved"]
    first, second = (taken.json for taken in receiver.taken)
    if kind == "alertmanager":
        assert first[0]["endsAt"] > second[0]["endsAt"] >= second[0]["startsAt"] == first[0]["startsAt"]
    else:
        assert (first["status"], second["status"]) == ("firing", "resolved")
        assert first["groupKey"] == second["groupKey"]


def test_pagerduty_is_told_the_end_too(tmp_path: Path) -> None:
    with Receiver(default=Answer(202), own=[ROUTING]) as receiver:
        key = written(tmp_path, ROUTING)
        code, text = sent(config(SinkConfig(name="pd", type="pagerduty", url=receiver.url, routing_key_file=key)))
    first, second = (taken.json for taken in receiver.taken)
    assert code == 0
    assert (first["event_action"], second["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == second["dedup_key"]
    assert_clean(text, "what was printed")


@pytest.mark.parametrize(("answer", "told"), [(Answer(400), ["opened"]), (REFUSED, ["opened", "resolved"]), (reset, ["opened", "resolved"])])
def test_the_end_is_told_where_the_beginning_may_have_arrived(answer: Any, told: list[str]) -> None:
    with Receiver([answer]) as receiver:
        code, text = sent(config(SinkConfig(name="am", type="alertmanager", url=receiver.url)), style="jsonl")
    assert code == 1
    assert [step["state"] for step in steps(text)] == told


def test_alertmanagers_silence_is_explained_once_it_has_taken_the_test() -> None:
    with Receiver() as receiver:
        am = SinkConfig(name="am", type="alertmanager", url=receiver.url)
        assert sent(config(am))[1].count("group_wait") == 1
        receiver.default = REFUSED
        assert "group_wait" not in sent(config(am))[1]


def test_a_sink_that_fails_is_1_and_the_others_are_tested(tmp_path: Path) -> None:
    with Receiver([REFUSED]) as receiver:
        both = config(webhook(receiver.url, "one"), SinkConfig(name="two", type="file", path=str(tmp_path / "out.jsonl")))
        code, text = sent(both)
        assert sent(both)[0] == 0
    assert code == 1
    assert "not delivered after " in text
    assert ": HTTP 500 Internal Server Error: overloaded" in text
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_only_the_named_sinks_are_tested_and_each_once(tmp_path: Path) -> None:
    sinks = [SinkConfig(name=name, type="file", path=str(tmp_path / name)) for name in ("one", "two", "three")]
    assert sent(config(*sinks), "three", "one", "three")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "three"]
    assert len((tmp_path / "three").read_text().splitlines()) == 1


def test_an_unknown_sink_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    both = config(*(SinkConfig(name=name, type="file", path=str(tmp_path / name)) for name in ("oncall", "audit")))
    with pytest.raises(UsageError, match=r"^there is no sink 'onkall'; did you mean oncall\?$"):
        sent(both, "audit", "onkall")
    with pytest.raises(UsageError, match=r"^there is no sink 'xyz'; there are oncall, audit$"):
        sent(both, "xyz")
    assert list(tmp_path.iterdir()) == []


def test_without_a_sink_it_says_how_one_is_configured() -> None:
    with pytest.raises(UsageError, match=r"(?s)write a section into /etc/x\.toml.*\[sinks\.oncall\].*type = "):
        sent(config(), file="/etc/x.toml")
    with pytest.raises(UsageError, match=r"write a section into /etc/lmdiag/config\.toml"):
        sent(config(), "oncall")


def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Receiver() as receiver:
        three = config(
            webhook(receiver.url),
            SinkConfig(name="am", type="alertmanager", url=receiver.url),
            SinkConfig(name="audit", type="file", path=str(path)),
        )
        code, text = sent(three, dry_run=True)
        objects = steps(sent(three, dry_run=True, style="jsonl")[1])
    assert (code, receiver.taken, path.exists()) == (0, [], False)
    assert [line for line in text.splitlines() if "), " in line[:40]] == [
        "hook (webhook), opened",
        "am (alertmanager), opened",
        "am (alertmanager), resolved",
        "audit (file), opened",
    ]
    assert f"append to {path}:" in text
    assert "What came of it" not in text
    assert [(one["result"], one["seconds"]) for one in objects] == [(None, None)] * 4


def test_as_json_objects() -> None:
    with Receiver([Answer(503, (("Retry-After", "7"),), b"later")]) as receiver:
        code, text = sent(config(webhook(receiver.url)), style="jsonl")
    (step,) = steps(text)
    assert code == 1
    assert (step["kind"], step["sink"], step["type"], step["state"]) == ("forward_test", "hook", "webhook", "opened")
    assert (step["result"], step["detail"]) == ("retry", "HTTP 503 Service Unavailable: later")
    assert step["key"] == receiver.taken[0].headers["webhook-id"]
    assert step["request"].startswith("POST http://127.0.0.1:")
    assert step["answer"].endswith("later")
    assert step["seconds"] >= 0


@pytest.mark.parametrize("style", ["text", "jsonl"])
def test_no_secret_is_shown_whatever_the_receiver_answers(style: str, tmp_path: Path) -> None:
    echoes = [Answer(200, (("X-Echo", BEARER),), f"{BEARER} {SIGNING} /{HOOK}".encode()), Answer(500, (), f"/{HOOK}".encode())]
    with Receiver(echoes, own=[BEARER, SIGNING, HOOK]) as receiver:
        hook = SinkConfig(
            name="hook",
            type="webhook",
            url_file=written(tmp_path, f"{receiver.url}/{HOOK}"),
            token_file=written(tmp_path, BEARER),
            secret_file=written(tmp_path, SIGNING),
        )
        slack = SinkConfig(name="slack", type="slack", url_file=written(tmp_path, f"{receiver.url}/{HOOK}"))
        printed = "".join(sent(config(hook, slack), style=style, dry_run=dry)[1] for dry in (True, False))
    assert [taken.path for taken in receiver.taken] == [f"/{HOOK}"] * 2
    assert "Bearer [secret]" in printed
    assert_clean(printed, "what was printed")


@pytest.mark.parametrize("style", ["text", "jsonl"])
def test_a_receiver_commands_no_terminal(style: str) -> None:
    evil = Answer(500, body="\x1b]0;owned\x07\x1b[2J[red]no\u202e way\x9b31m".encode())
    program = [sys.executable, "-c", r"print('\033[2J\033]0;x\007said'); raise SystemExit(3)"]
    with Receiver(default=evil) as receiver:
        both = config(webhook(receiver.url), SinkConfig(name="run", type="exec", command=tuple(program)))
        code, printed = sent(both, style=style)
    assert code == 1
    assert "[red]no way" in printed
    assert "said" in printed
    # The command is the operator's own, and has no escape but in letters.
    assert not set(printed) & set("\x1b\x07\x9b\u202e")


def test_a_program_gets_the_test_and_what_it_says_is_shown() -> None:
    code, text = sent(config(SinkConfig(name="run", type="exec", command=tuple(ECHO))), style="jsonl")
    (step,) = steps(text)
    assert code == 0
    assert '"title": "Test of lmdiag: ' in step["answer"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_credential_that_cannot_be_read_is_told_and_nothing_is_sent(dry_run: bool, tmp_path: Path) -> None:
    with Receiver() as receiver:
        am = SinkConfig(name="am", type="alertmanager", url=receiver.url, token_file=str(tmp_path / "token"))
        code, text = sent(config(am), dry_run=dry_run)
    assert (code, receiver.taken) == (1, [])
    assert "not sent: token-file:" in text
    assert "am (alertmanager), resolved" not in text


def test_the_outbox_is_not_touched(tmp_path: Path) -> None:
    audit = SinkConfig(name="audit", type="file", path=str(tmp_path / "out.jsonl"))
    sent(config(audit)._replace(state=str(tmp_path / "state")))
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
