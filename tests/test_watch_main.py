"""The real daemon as a real process: its output, its signals, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

import pytest

from lmdiag.watch.status import read_status

LOGS = Path(__file__).parent / "logs"
SERDE = (LOGS / "mla-serde-start-failed.log").read_bytes()
DEGRADED = (LOGS / "mla-serde-degraded.log").read_bytes()
PATIENCE = 30.0


class Running:
    """A daemon that runs; its reports and its own words are collected by threads."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self._threads: list[threading.Thread] = []
        self.reports: Queue[dict[str, Any]] = Queue()
        self.said: Queue[str] = Queue()
        for stream, take in ((child.stdout, self._report), (child.stderr, self._say)):
            assert stream is not None
            self._threads.append(threading.Thread(target=_each, args=(stream, take), daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        """Kill it, and close all pipes."""
        self.child.kill()
        self.child.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            if stream is not None:
                stream.close()

    def _report(self, line: bytes) -> None:
        self.reports.put(json.loads(line))

    def _say(self, line: bytes) -> None:
        self.said.put(line.decode())

    def report(self) -> tuple[str, str]:
        """Wait for the next report; return (state, card)."""
        found = self.reports.get(timeout=PATIENCE)
        return found["state"], found["card"]

    def until_said(self, words: str) -> str:
        """Wait until the daemon says something."""
        said = []
        try:
            while words not in (line := self.said.get(timeout=PATIENCE)):
                said.append(line)
        except Empty:
            raise AssertionError(f"never said {words!r}, but {said}") from None
        return line


def _each(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
    for line in stream:
        take(line)


@contextmanager
def running(directory: Path, *arguments: str, stdin: Any = subprocess.DEVNULL, **environment: str) -> Iterator[Running]:
    """Run `lmdiag watch` with a state in the directory, and end it."""
    command = [sys.executable, "-m", "lmdiag", "watch", *arguments, "--state", str(directory / "state"), "--format", "jsonl"]
    child = subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment},
    )  # fmt: skip
    daemon = Running(child)
    try:
        yield daemon
    finally:
        daemon.end()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An empty log."""
    path = tmp_path / "server.log"
    path.touch()
    return path


def read_to(directory: Path) -> int:
    """Return how far the daemon has read its only log, as it last said."""
    status = read_status(str(directory / "state"), running=True)
    return status.sources[0].offset if status and status.sources else 0


def append(path: Path, data: bytes) -> None:
    """Write to a log."""
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("how", [(), ("--poll", "always")])
def test_it_tells_what_is_written_and_ends_when_asked(tmp_path: Path, log: Path, how: tuple[str, ...]) -> None:
    with running(tmp_path, str(log), "--listen", "", *how) as daemon:
        wait_for(lambda: (tmp_path / "state" / "state.db").exists())
        append(log, SERDE)
        assert daemon.report() == ("opened", "lmcache-mla-naive-serde")
        daemon.child.send_signal(signal.SIGTERM)
        assert daemon.child.wait(PATIENCE) == 0


def test_what_comes_in_the_last_moment_is_told(tmp_path: Path, log: Path) -> None:
    """It has not settled yet when the daemon is asked to stop."""
    with running(tmp_path, str(log), "--listen", "", "--settle", "60") as daemon:
        append(log, DEGRADED)
        wait_for(lambda: read_to(tmp_path) == len(DEGRADED))
        daemon.child.send_signal(signal.SIGINT)
        assert daemon.report() == ("opened", "lmcache-mla-naive-serde")
        assert daemon.child.wait(PATIENCE) == 0


def test_standard_input_is_watched_to_its_end(tmp_path: Path) -> None:
    with running(tmp_path, "-", "--listen", "", stdin=subprocess.PIPE) as daemon:
        assert daemon.child.stdin is not None
        daemon.child.stdin.write(SERDE)
        daemon.child.stdin.flush()
        assert daemon.report() == ("opened", "lmcache-mla-naive-serde")
        daemon.child.stdin.close()
        assert daemon.child.wait(PATIENCE) == 0


def test_a_reload_keeps_the_last_good_configuration(tmp_path: Path, log: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'paths = ["{log}"]\nlisten = ""\n')
    with running(tmp_path, "--config", str(config)) as daemon:
        wait_for(lambda: (tmp_path / "state" / "state.db").exists())
        config.write_text('pahts = ["x"]\n')
        daemon.child.send_signal(signal.SIGHUP)
        assert "last good" in daemon.until_said("last good")
        config.write_text(f'paths = ["{log}"]\nlisten = ""\ndisable = ["lmcache-mla-naive-serde"]\n')
        daemon.child.send_signal(signal.SIGHUP)
        daemon.until_said("read again")
        append(log, SERDE)
        assert daemon.reports.get(timeout=PATIENCE)["card"] is None


def test_its_own_output_is_not_read(tmp_path: Path, log: Path) -> None:
    """The directory that it watches holds the file that it writes to."""
    command = [sys.executable, "-m", "lmdiag", "watch", str(tmp_path), "--state", str(tmp_path / "state"), "--listen", "", "--once", "--verbose"]  # fmt: skip
    append(log, SERDE)
    out = tmp_path / "lmdiag.log"
    for _ in range(2):
        with out.open("ab") as file:
            done = subprocess.run(
                [part for part in command if part != "--verbose"], stdout=file, stderr=subprocess.PIPE, check=False
            )
        assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert text.count("CRITICAL") == 1


def test_metrics_and_health_are_served(tmp_path: Path, log: Path) -> None:
    with running(tmp_path, str(log), str(tmp_path / "missing.log"), "--listen", "127.0.0.1:0") as daemon:
        address = daemon.until_said("/metrics").strip().rpartition(" ")[2]
        append(log, SERDE)
        daemon.report()

        def metric(name: str) -> bool:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310
                return name in answer.read().decode()

        wait_for(lambda: metric('lmdiag_card_incidents_total{card="lmcache-mla-naive-serde",severity="critical"} 1.0'))
        assert metric('lmdiag_card_incidents_total{card="unknown-dtype",severity="critical"} 0.0')


def test_systemd_is_told(tmp_path: Path, log: Path) -> None:
    """A real datagram socket in the place of the manager's."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)
        with running(tmp_path, str(log), "--listen", "", NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="2000000") as daemon:
            got = manager.recv(1000)
            while b"READY=1" not in got:
                got = manager.recv(1000)
            while b"WATCHDOG=1" not in got:
                got = manager.recv(1000)
            daemon.child.send_signal(signal.SIGTERM)
            while b"STOPPING=1" not in got:
                got = manager.recv(1000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to watch"),
        (("--settle", "-1", "x.log"), "settle"),
        (("x.log", "--config", "/no/such.toml"), "no/such.toml"),
        (("x.log", "--listen", "nonsense"), "listen"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    command = [sys.executable, "-m", "lmdiag", "watch", *arguments, "--state", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
