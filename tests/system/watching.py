"""A real `lmdiag watch` as a process of its own: its reports with their arrival times, signals, restarts."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

_T = TypeVar("_T")
_CHUNK = 1 << 16
ABOVE_INFO = ("warning", "error", "critical")


class Report(NamedTuple):
    """One line that the daemon printed, and when it arrived (`time.monotonic()`)."""

    at: float
    data: dict[str, Any]

    @property
    def message(self) -> str:
        """The root's message, or nothing where the cause cannot be seen."""
        return str((self.data["root"] or {}).get("message", ""))


class Watch:
    """`lmdiag watch` on some paths, with a state directory that outlives its process.

    Its stdout is read only within `until` and `read_for`: a test that does neither for long fills the pipe.
    """

    def __init__(self, paths: Iterable[Path | str], directory: Path, *options: str) -> None:
        self.state = directory / "state"
        self.errors = directory / "watch.stderr"
        self.reports: list[Report] = []
        self.starts = 0
        self._command = [
            *(sys.executable, "-m", "lmdiag", "watch", *map(str, paths), "--format", "jsonl"),
            *("--state", str(self.state), "--listen", "", "--no-live", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop(signal.SIGKILL)

    # -- the process -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the daemon, or start it again on the same state."""
        assert self._process is None
        self.starts += 1
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 30) -> int:
        """Send a signal, wait for the end, keep what was printed until then; return the exit status."""
        process = self._running()
        process.send_signal(number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._read(deadline - time.monotonic()):
            pass
        status = process.wait(max(0.1, deadline - time.monotonic()))
        assert process.stdout is not None
        process.stdout.close()
        self._process, self._rest = None, b""  # the start of a line that it did not finish is no report
        return status

    @property
    def pid(self) -> int:
        """Of the running daemon."""
        return self._running().pid

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the daemon is not running"
        return self._process

    # -- what it says ----------------------------------------------------------------------------------------------

    def until(self, done: Callable[[], _T], what: str, seconds: float = 60) -> _T:
        """Read reports until `done` gives something true, and return that; fail with `what` after `seconds`."""
        deadline = time.monotonic() + seconds
        while not (found := done()):
            left = deadline - time.monotonic()
            assert left > 0, f"after {seconds} s still waiting: {what}\n{self.account()}"
            if not self._read(min(left, 0.2)):
                status = self._running().wait(5)
                found = done()
                assert found, f"the daemon ended with {status} before: {what}\n{self.account()}"
                break
        return found

    def read_for(self, seconds: float) -> None:
        """Read what the daemon prints in some time: how a test comes to a random moment."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            assert self._read(left), f"the daemon has ended by itself\n{self.account()}"

    def _read(self, seconds: float) -> bool:
        """Take what is in the pipe, waiting for it at most so long; return False at its end."""
        stdout = self._running().stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, seconds)):
                return True
        data = os.read(stdout.fileno(), _CHUNK)
        now = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.reports += [Report(now, json.loads(line)) for line in lines if line.strip()]
        return bool(data)

    def incidents(self, *states: str, above_info: bool = True) -> list[Report]:
        """Return the incidents reported until now, of some states or of all."""
        return [
            one
            for one in self.reports
            if one.data["kind"] == "incident"
            and (not states or one.data["state"] in states)
            and (not above_info or one.data["severity"] in ABOVE_INFO or one.data["state"] == "resolved")
        ]

    def ids(self) -> dict[str, set[str]]:
        """Return the ids under which each fingerprint was reported."""
        found: dict[str, set[str]] = defaultdict(set)
        for one in self.incidents(above_info=False):
            found[one.data["fingerprint"]].add(one.data["id"])
        return found

    def status(self) -> dict[str, Any]:
        """Ask `lmdiag status` about the daemon; empty while it has only just begun."""
        text = lmdiag("status", "--state", str(self.state), "--format", "jsonl", expected=(0, 1))
        told = json.loads(text)
        assert told["running"]
        return dict(told["status"] or {})

    def account(self) -> str:
        """Tell what the daemon said, for a failing test's message."""
        told = [
            f"{one.data.get('state')} {one.data.get('severity')} {one.data.get('card')} {one.data.get('title')}"
            for one in self.reports
        ]
        errors = self.errors.read_text(errors="replace") if self.errors.exists() else ""
        return "\n".join(
            [f"started {self.starts} times; {len(told)} reports, the last:", *told[-20:], "stderr:", errors[-3000:]]
        )


def lmdiag(*arguments: str, expected: Sequence[int] = (0,)) -> str:
    """Run another lmdiag command to its end and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "lmdiag", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in expected, f"lmdiag {' '.join(arguments[:4])}: {done.returncode}\n{done.stderr}"
    return done.stdout


def scanned(*paths: Path) -> list[dict[str, Any]]:
    """Return the incidents that `lmdiag scan` finds in some logs."""
    text = lmdiag("scan", "--format", "jsonl", "--exit-zero", *map(str, paths))
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row["kind"] == "incident"]
