"""What all sinks that post do alike: URL, login, masking, outcomes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from messages import NOW, message
from planted import CREDENTIALS, assert_clean
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig
from lmdiag.forward.credentials import CredentialError
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import DELIVERED, REJECTED, RETRY, Message, Outcome

TOKEN, PASSWORD, _, KEY, PATH = CREDENTIALS


class Probe(HttpSink):
    """Posts the keys of the messages."""

    def request(self, messages: Sequence[Message], now: float) -> Request:
        """Write the keys and the time."""
        return self.make_request({"keys": [one.key for one in messages], "at": now})


class Keyed(HttpSink):
    """Has a secret in the body, and one in the URL that it makes."""

    def request(self, messages: Sequence[Message], now: float) -> Request:
        """Write the secret."""
        return self.make_request({"key": KEY}, url=f"{self.url()}/more", secrets=(KEY,))


def probe(kind: type[HttpSink] = Probe, **settings: Any) -> HttpSink:
    return kind(SinkConfig(name="x", type="webhook", timeout=20, **settings))


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def secret(tmp_path: Path, content: str) -> str:
    path = tmp_path / "secret"
    path.write_text(f"{content}\n")
    return str(path)


def test_sends_json_without_a_login() -> None:
    with Receiver([Answer(200, body=b"fine")]) as receiver:
        outcome = probe(url=f"{receiver.url}/hook").send([message()], NOW)
    assert outcome == Outcome(DELIVERED, answer="HTTP 200 OK\nfine")
    (taken,) = receiver.taken
    assert taken.json == {"keys": ["key-opened"], "at": NOW}
    assert (taken.path, taken.headers["content-type"]) == ("/hook", "application/json")
    assert "authorization" not in taken.headers


def test_a_token_is_read_at_each_use(tmp_path: Path) -> None:
    with Receiver(own=[TOKEN]) as receiver:
        sink = probe(url=receiver.url, token_file=secret(tmp_path, "old"))
        sink.send([message()], NOW)
        secret(tmp_path, TOKEN)
        sink.send([message()], NOW)
    assert [one.headers["authorization"] for one in receiver.taken] == ["Bearer old", f"Bearer {TOKEN}"]


def test_a_user_with_a_password(tmp_path: Path) -> None:
    with Receiver() as receiver:
        probe(url=receiver.url, username="mé", password_file=secret(tmp_path, "pä ss")).send([message()], NOW)
    assert receiver.taken[0].headers["authorization"] == f"Basic {b64encode('mé:pä ss'.encode()).decode()}"


@pytest.mark.parametrize("key", ["token_file", "password_file", "url_file"])
def test_a_secret_that_cannot_be_read_is_tried_again(tmp_path: Path, key: str) -> None:
    settings: dict[str, Any] = {"url": "http://127.0.0.1:1", key: str(tmp_path / "nowhere")}
    sink = probe(**settings)
    outcome = sink.send([message()], NOW)
    assert outcome.result == RETRY
    assert outcome.detail.startswith(f"{key.replace('_', '-')}: {tmp_path}/nowhere cannot be read: No such file")
    with pytest.raises(CredentialError):
        sink.preview([message()], NOW)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.org/PLANTED",
        "ftp://hooks.example.org/PLANTED",
        "https:///PLANTED",
        "https://me:PLANTED@hooks.example.org/",
        "https://hooks.example.org:x/PLANTED",
        "https://[::1/PLANTED",
        "https://hooks.example.org/ PLANTED",
        "https://hooks.example.org/\tPLANTED",
    ],
)
def test_what_is_no_url(tmp_path: Path, url: str) -> None:
    outcomes = [probe(url=url).send([message()], NOW)]
    if url:
        outcomes.append(probe(url_file=secret(tmp_path, url)).send([message()], NOW))
    for outcome, key in zip(outcomes, ("url: ", "url-file: "), strict=False):
        assert outcome.result == RETRY
        assert outcome.detail.startswith(key)
        assert "PLANTED" not in outcome.detail


def echo(status: int, *texts: str) -> Answer:
    """Answer with what was sent, as careless receivers do."""
    return Answer(status, (("Location", "/" + "/".join(texts)),), "\n".join(texts).encode())


@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_what_the_receiver_repeats_is_masked(tmp_path: Path, status: int) -> None:
    basic = b64encode(f"me:{PASSWORD}".encode()).decode()
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    with Receiver([], echo(status, PASSWORD, basic, KEY, f"/{PATH}"), own=[PATH, KEY]) as receiver:
        url_file = secret(tmp_path, f"{receiver.url}/{PATH}")
        sink = probe(Keyed, url_file=url_file, username="me", password_file=str(password))
        outcome = sink.send([message()], NOW)
    assert [one.path for one in receiver.taken] == [f"/{PATH}/more"]
    assert_clean(f"{outcome}", "the outcome")
    assert basic not in f"{outcome}"
    assert "[secret]" in outcome.answer


def test_a_part_of_a_secret_url_is_masked_by_itself(tmp_path: Path) -> None:
    said = b"no hook SECRETTOKEN of T%2F0000007, T/0000007, key KEYKEYKEY, v2, short"
    with Receiver([], Answer(400, body=said)) as receiver:
        url = f"{receiver.url}/v2/short/T%2F0000007/SECRETTOKEN?v=v2&key=KEYKEYKEY"
        outcome = probe(url_file=secret(tmp_path, url)).send([message()], NOW)
    masked = "no hook [secret] of [secret], [secret], key [secret], v2, short"
    assert outcome.detail == f"HTTP 400 Bad Request: {masked}"
    assert outcome.answer == f"HTTP 400 Bad Request\n{masked}"


def test_a_secret_is_not_cut_into_before_it_is_masked(tmp_path: Path) -> None:
    with Receiver([], Answer(400, body=b"x" * 190 + TOKEN.encode()), own=[TOKEN]) as receiver:
        outcome = probe(url=receiver.url, token_file=secret(tmp_path, TOKEN)).send([message()], NOW)
    assert outcome.result == REJECTED
    assert TOKEN[:5] not in outcome.detail


def test_control_characters_do_not_hide_a_secret(tmp_path: Path) -> None:
    hidden = "\x00".join(TOKEN).encode()
    with Receiver([], Answer(400, body=hidden), own=[TOKEN]) as receiver:
        outcome = probe(url=receiver.url, token_file=secret(tmp_path, TOKEN)).send([message()], NOW)
    assert_clean(f"{outcome}", "the outcome")


def test_a_preview_shows_no_secret(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    sink = probe(Keyed, url_file=secret(tmp_path, f"https://hooks.example.org/{PATH}"), token_file=str(token))
    shown = sink.preview([message()], NOW)
    assert_clean(shown, "the preview")
    assert shown == (
        "POST https://hooks.example.org/[…]\n"
        "Content-Type: application/json\n"
        "Authorization: Bearer [secret]\n"
        "\n"
        '{"key": "[secret]"}'
    )


def test_a_url_of_the_configuration_is_shown() -> None:
    assert probe(url="https://hooks.example.org/a?b=c").preview([message()], 1.5) == (
        'POST https://hooks.example.org/a?b=c\nContent-Type: application/json\n\n{"keys": ["key-opened"], "at": 1.5}'
    )


def test_bytes_and_headers_stay_as_they_are() -> None:
    request = probe(url="http://127.0.0.1:1").make_request(b"\xff", (("Content-Type", "x/y"), ("X-A", "b")))
    assert request == Request("http://127.0.0.1:1", b"\xff", (("Content-Type", "x/y"), ("X-A", "b")), ())
