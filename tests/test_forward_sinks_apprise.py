"""The apprise sink, with the real library against a receiver on loopback."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from messages import NOW, message, summary
from planted import CREDENTIALS, assert_clean
from receiver import Answer, Behaviour, Receiver, hang, reset
from report_samples import with_message

from lmdiag.config import SinkConfig
from lmdiag.forward.credentials import CredentialError
from lmdiag.forward.message import DELIVERED, RETRY, Message
from lmdiag.forward.sinks.apprise import AppriseSink, make

pytest.importorskip("apprise")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # some of its modules warn when they are imported
PASSWORD = CREDENTIALS[1]


@pytest.fixture
def url_file(tmp_path: Path) -> Path:
    return tmp_path / "urls"


def sink(url_file: Path, *urls: str, **changes: Any) -> AppriseSink:
    url_file.write_text("\n".join(urls) + "\n")
    return make(SinkConfig("x", "apprise", url_file=str(url_file))._replace(**changes))


def service(receiver: Receiver, schema: str = "json", query: str = "") -> str:
    return f"{schema}://user:{PASSWORD}@127.0.0.1:{receiver.port}/{query}"


def test_a_service_gets_title_text_and_kind(url_file: Path) -> None:
    with Receiver() as receiver:
        assert sink(url_file, "# ours", "", service(receiver)).send([message()], NOW).result == DELIVERED
    (taken,) = receiver.taken
    assert "LMCache: layer-wise transfer" in taken.json["title"]
    assert "use_layerwise" in taken.json["message"]
    assert taken.json["type"] == "failure"
    assert taken.json["attachments"] == []


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (message("resolved"), "success"),
        (message(change=lambda incident: incident._replace(severity="warning")), "warning"),
        (summary(), "failure"),
    ],
)
def test_the_kind_follows_state_and_severity(url_file: Path, sent: Message, kind: str) -> None:
    with Receiver() as receiver:
        sink(url_file, service(receiver)).send([sent], NOW)
    assert receiver.taken[0].json["type"] == kind


def test_what_a_log_says_is_no_markup(url_file: Path) -> None:
    hostile = message(change=lambda _: with_message("<img src=x onerror=alert(1)> **b** &amp; \\n :smile:"))
    with Receiver() as receiver:
        sink(url_file, service(receiver, query="?format=html"), service(receiver)).send([hostile], NOW)
    html, text = (taken.json["message"] for taken in receiver.taken)
    assert "<img" not in html
    assert "<img src=x onerror=alert(1)> **b** &amp; \\n :smile:" in text


@pytest.mark.parametrize("behaviour", [Answer(500), Answer(429), reset, Answer(302, (("Location", "/other"),))])
def test_a_failure_is_tried_again(url_file: Path, behaviour: Behaviour) -> None:
    with Receiver(default=behaviour) as receiver:
        outcome = sink(url_file, service(receiver)).send([message()], NOW)
        assert outcome.result == RETRY
        assert_clean(outcome.detail, "the detail")
        assert [taken.path for taken in receiver.taken] == ["/"]


def test_one_service_of_two_that_fails_is_named(url_file: Path) -> None:
    with Receiver() as good, Receiver(default=Answer(500)) as bad:
        outcome = sink(url_file, service(bad, "xml"), service(good)).send([message()], NOW)
    assert (outcome.result, outcome.detail) == (RETRY, "not taken by XML")
    assert len(good.taken) == 1


def test_a_refused_connection_is_tried_again(url_file: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        outcome = sink(url_file, f"json://127.0.0.1:{unused.getsockname()[1]}").send([message()], NOW)
    assert outcome.result == RETRY


def drip(connection: socket.socket) -> None:
    """Send a header byte by byte, so that no single read waits long."""
    connection.settimeout(0.05)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            connection.sendall(b"x")
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                pass
    except OSError:
        return


@pytest.mark.parametrize("behaviour", [hang, drip])
def test_no_service_takes_longer_than_the_timeout(url_file: Path, behaviour: Behaviour) -> None:
    with Receiver([behaviour]) as receiver:
        slow = sink(url_file, service(receiver), timeout=0.5)
        outcome = slow.send([message()], NOW)
        assert outcome.result == RETRY
        assert outcome.detail in ("no answer within 0.5 s", "not taken by JSON")


def test_a_call_that_has_not_ended_is_not_made_twice(url_file: Path) -> None:
    with Receiver([drip]) as receiver:
        slow = sink(url_file, service(receiver), timeout=0.3)
        slow.send([message()], NOW)
        assert slow.send([message()], NOW).detail == "the call before this one has not ended yet"
        assert len(receiver.taken) == 1


@pytest.mark.parametrize("line", ["nonsense", "nosuchschema://x", f"slack://{PASSWORD}"])
def test_a_url_that_is_none_is_named_by_its_line(url_file: Path, line: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        outcome = sink(url_file, "json://127.0.0.1:1", line).send([message()], NOW)
    assert outcome.result == RETRY
    assert "line 2" in outcome.detail
    assert_clean(outcome.detail, "the detail")
    assert_clean(caplog.text, "the log")


def test_nothing_secret_is_logged_or_printed(
    url_file: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, "apprise"), Receiver([Answer(500)]) as receiver:
        for _ in range(2):
            sink(url_file, service(receiver)).send([message()], NOW)
    assert_clean(caplog.text + "".join(capfd.readouterr()), "what was logged")
    assert caplog.text == ""


def test_a_missing_file_is_tried_again_and_not_shown(url_file: Path) -> None:
    missing = make(SinkConfig("x", "apprise", url_file=str(url_file)))
    assert missing.send([message()], NOW).result == RETRY
    with pytest.raises(CredentialError):
        missing.preview([message()], NOW)


def test_without_apprise_it_says_what_to_install(url_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    outcome = sink(url_file, "json://127.0.0.1:1").send([message()], NOW)
    assert (outcome.result, outcome.detail) == (RETRY, "apprise is not installed: pip install 'lmdiag[apprise]'")


def test_a_preview_shows_the_text_and_no_url(url_file: Path) -> None:
    shown = sink(url_file, f"json://user:{PASSWORD}@127.0.0.1:1").preview([message()], NOW)
    assert "use_layerwise" in shown
    assert_clean(shown, "the preview")
