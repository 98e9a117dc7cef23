"""What systemd hears, on a real datagram socket, and what journald reads at the beginning of a line."""

from __future__ import annotations

import math
import os
import re
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.watch.notify import Notifier, goes_to_journal, with_priority

PID = 4711


class Manager:
    """The end of the socket where systemd listens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self._socket.settimeout(0)

    def heard(self) -> list[str]:
        """The datagrams that have come since the last call."""
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return found

    def notifier(self, **environment: str) -> Notifier:
        """Somebody who speaks to this manager."""
        return Notifier({"NOTIFY_SOCKET": self.name, **environment}, PID)

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = str(tmp_path / "notify") if request.param == "path" else f"@lmdiag-{uuid.uuid4()}"
    manager = Manager(name)
    yield manager
    manager.close()


def test_each_message_is_one_datagram(manager: Manager) -> None:
    notifier = manager.notifier()
    assert notifier.ready("3 sources")
    assert notifier.status("2 incidents")
    assert notifier.reloading(1_234_567_890)
    assert notifier.ready()
    assert notifier.stopping("bye")
    assert manager.heard() == [
        "READY=1\nSTATUS=3 sources",
        "STATUS=2 incidents",
        "RELOADING=1\nMONOTONIC_USEC=1234567",
        "READY=1",
        "STOPPING=1\nSTATUS=bye",
    ]


def test_a_reload_says_the_present_time(manager: Manager) -> None:
    manager.notifier().reloading()
    (text,) = manager.heard()
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d{6,}", text)


@given(st.text())
def test_a_status_is_never_another_assignment(text: str) -> None:
    manager = Manager(f"@lmdiag-{uuid.uuid4()}")
    try:
        sent = manager.notifier().status(text + "\nWATCHDOG=trigger")
        (heard,) = manager.heard()
    finally:
        manager.close()
    assert sent
    assert heard.startswith("STATUS=")
    assert "\n" not in heard


def test_the_watchdog_is_answered_at_half_its_time(manager: Manager) -> None:
    notifier = manager.notifier(WATCHDOG_USEC="30000000", WATCHDOG_PID=str(PID))
    assert notifier.watchdog_interval == 15
    assert notifier.wait(1000.0) == 0
    assert notifier.alive(1000.0)
    assert notifier.wait(1004.0) == 11
    assert not notifier.alive(1014.9)
    assert notifier.alive(1015.0)
    assert manager.heard() == ["WATCHDOG=1", "WATCHDOG=1"]


def test_a_clock_that_is_set_back_does_not_silence_it(manager: Manager) -> None:
    notifier = manager.notifier(WATCHDOG_USEC="30000000")
    notifier.alive(1000.0)
    assert notifier.wait(400.0) == 0
    assert notifier.alive(400.0)
    assert not notifier.alive(401.0)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "²"},
        {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID + 1)},
    ],
)
def test_nobody_waits(manager: Manager, environment: dict[str, str]) -> None:
    notifier = manager.notifier(**environment)
    assert notifier.wait(1000.0) == math.inf
    assert not notifier.alive(1000.0)
    assert manager.heard() == []


@pytest.mark.parametrize("name", ["", "@", "vsock:2:1234", "relative", "/nobody/listens/here", "/" + "x" * 200])
def test_without_a_manager_nothing_happens(name: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name}, PID)
    assert not notifier.ready("up")
    assert not notifier.stopping()


def test_a_manager_that_does_not_read_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmdiag.watch.notify._PATIENCE", 0.01)
    manager = Manager(str(tmp_path / "notify"))
    notifier = manager.notifier()
    sent = 0
    while notifier.status("x" * 100) and sent < 100_000:
        sent += 1
    manager.close()
    assert 0 < sent < 100_000


def test_this_process_is_meant_by_its_environment(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert Notifier.from_environment().alive(0.0)
    assert manager.heard() == ["WATCHDOG=1"]


def test_each_line_has_its_priority() -> None:
    assert with_priority("critical", "one\ntwo\n") == "<2>one\n<2>two\n"
    assert with_priority("notice", "over") == "<5>over"
    assert with_priority("info", "<0>a log's own text") == "<6><0>a log's own text"
    assert with_priority("unheard of", "x") == "<6>x"


@given(st.text())
def test_no_line_is_without_priority_and_none_is_lost(text: str) -> None:
    lines = with_priority("error", text).removesuffix("\n").split("\n")
    assert all(line.startswith("<3>") for line in lines)
    assert [line[3:] for line in lines] == text.removesuffix("\n").split("\n")


def test_the_journal_is_known_by_the_stream_itself(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as ours, (tmp_path / "b").open("w") as other:
        found = os.fstat(ours.fileno())
        environment = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert goes_to_journal(ours.fileno(), environment)
        assert not goes_to_journal(other.fileno(), environment)
        assert not goes_to_journal(ours.fileno(), {})
    assert not goes_to_journal(-1, environment)
