"""The journal of a systemd unit, followed by a journalctl that runs as long as it is read.

journalctl is the reader that fits the machine's journal, and when it dies or is stuck nothing of ours does. It ends
with us even when we are killed: it gets SIGPIPE when it writes, and it watches its end of the pipe for a hang-up.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from lmdiag.read.journal_entries import FIELDS, Entries

Start = Literal["life", "start", "end", "boot"]

_BLOCK = 1 << 18
_MAX_ROW = 8 << 20  # bytes: an array of bytes is about four times as long as the message
_ROUNDS = 16
_LIFE = 50_000  # entries
_SETTLED = 5.0  # seconds after which a journalctl that runs is taken for sound
_MAX_DELAY = 60.0
_ADVICE = {
    "insufficient permissions": "; add the user to the group systemd-journal",
    "No such file": "; see that the journal's directory exists",
}


class JournalSource:
    """What a unit, and systemd about it, wrote to the journal: lines of JSON, which `parse` unwraps.

    A Source. It starts journalctl at the first read(); `fileno()` is None while none runs, and changes with each one.
    """

    required = True
    generation = 0

    def __init__(
        self,
        unit: str,
        *,
        position: dict[str, Any] | None = None,
        start: Start = "life",
        command: Sequence[str] = ("journalctl",),
        own_unit: str | None = None,
        follow: bool = True,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`unit`: a unit's name, or a pattern (`vllm@*.service`).

        `position` (of `position()`) is where to go on; without a cursor in it, `start` is where to begin: at the last
        50,000 entries since the machine's boot, at the boot, at the journal's start, or at its end.
        `command`: journalctl with options of the caller's. Without `follow` it reads what is there, and has `ended`
        then, or when that failed (see `problem`).
        `clock` gives seconds of any zero, `wall` unix seconds.
        """
        self.name = f"journal:{unit}"
        self.problem = ""
        self.ended = False
        place = position or {}
        # journalctl looks up a pattern's units once, when it starts, and would never see one that comes later.
        pattern = unit if set(unit) & set("*?[") else ""
        self._boot = 0.0 if start in ("start", "end") else wall() - time.clock_gettime(time.CLOCK_BOOTTIME)
        since = place.get("since")
        self._end = since if isinstance(since, float) else wall() if start == "end" else None
        self._entries = Entries(place, units=pattern, own_unit=own_unit, since=0 if place.get("cursor") else self._boot)
        self._start: Start = start
        self._follow = follow
        self._history = start == "life" and self._end is None and "cursor" not in self._entries.position()
        self._command = [
            *command, "--output=json", "--all", "--merge", "--no-pager", "--quiet",
            f"--output-fields={','.join(FIELDS)}", *([] if pattern else [f"--unit={unit}"]),
        ]  # fmt: skip
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._retry_at: float | None = None
        self._delay = 1.0
        self._buffer = bytearray()
        self._skipping = False
        self._errors = b""
        self._lost: list[tuple[str, int]] = []
        self._closed = False

    def read(self) -> bytes:
        """Return the next whole lines, about 256 KiB at most."""
        if self._process is None and not self._begin():
            return b""
        alive, data = True, b""
        for _ in range(_ROUNDS):  # entries may be skipped, and nothing to return means that there is nothing
            alive = self._fill()
            more = b"\n" in self._buffer
            data = self._deliver()
            if data or not more:
                break
        if data or (alive and self._clock() - self._started >= _SETTLED):
            self.problem, self._delay = "", 1.0
        if not alive and b"\n" not in self._buffer:
            self._finish()
        return data

    def position(self) -> dict[str, Any]:
        """Return the cursor after what was delivered, with the marks of the last 512 entries.

        A source that began at the end and has seen nothing yet has the time of its beginning, `since`.
        """
        place = self._entries.position()
        return place if "cursor" in place or self._end is None else {**place, "since": self._end}

    def fileno(self) -> int | None:
        """Return journalctl's output, to select on."""
        return None if self._process is None or self._process.stdout is None else self._process.stdout.fileno()

    def lag(self) -> int:
        """Return the bytes that were received and not delivered."""
        return len(self._buffer)

    def lost(self) -> list[tuple[str, int]]:
        """Return what the journal has lost: journald names a number of entries, a vacuumed journal none."""
        lost, self._lost = self._lost + self._entries.lost(), []
        return lost

    def close(self) -> None:
        """End journalctl."""
        self._closed = True
        self._reap()

    def _begin(self) -> bool:
        if self._closed or self.ended or (self._retry_at is not None and self._clock() < self._retry_at):
            return False
        try:
            self._process = subprocess.Popen(  # noqa: S603 (the user's own journalctl)
                [*self._command, *self._where()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0"},
            )
        except FileNotFoundError:
            self._fail(f"{self._command[0]} is not on this machine: watch the server's log file, or install systemd")
            return False
        except OSError as error:
            self._fail(f"{self._command[0]} cannot be started: {error.strerror}")
            return False
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        self._started, self._errors = self._clock(), b""
        return True

    def _where(self) -> list[str]:
        """Say where to begin, and whether to follow.

        --after-cursor would skip the first entry that is left when its own is gone. --follow shows the last ten entries
        only without --no-tail, and with --lines it loses the first ones of a unit that had none before: a life's last
        entries are read without it. A match for the boot's id would be blind in a container that sees the host's id.
        """
        cursor = self._entries.rewind()
        self._history &= cursor is None
        if self._history:
            return [f"--lines={_LIFE}"]
        follow = ["--follow", "--no-tail"] if self._follow else []
        if cursor is not None:
            return [f"--cursor={cursor}", *follow]
        since = self._boot if self._end is None else self._end
        return [f"--since=@{since:.6f}", *follow] if since else follow

    def _fill(self) -> bool:
        """Take what journalctl has written; False when it will write no more."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._drain(self._process.stderr.fileno())
        with contextlib.suppress(BlockingIOError):
            while len(self._buffer) < _BLOCK or b"\n" not in self._buffer:
                block = os.read(self._process.stdout.fileno(), _BLOCK)
                if not block:
                    return False
                self._buffer += block
                self._bound()
        return True

    def _drain(self, stderr: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while block := os.read(stderr, 1 << 16):
                self._errors = (self._errors + block)[-4096:]

    def _bound(self) -> None:
        """Throw away the rest of an entry that is longer than anything worth keeping."""
        end = self._buffer.find(b"\n")
        if end < 0 and len(self._buffer) > _MAX_ROW:
            self._lost.append(("entry over 8 MiB", len(self._buffer)))
            self._buffer.clear()
            self._skipping = True
        elif end >= 0 and self._skipping:
            self._lost.append(("entry over 8 MiB", end))
            del self._buffer[: end + 1]
            self._skipping = False

    def _deliver(self) -> bytes:
        data = bytearray()
        start = 0
        while len(data) < _BLOCK and (end := self._buffer.find(b"\n", start)) >= 0:
            data += self._entries.take(bytes(self._buffer[start:end]))
            start = end + 1
        del self._buffer[:start]
        return bytes(data)

    def _finish(self) -> None:
        """Say how journalctl ended; the line that it did not finish comes again."""
        assert self._process is not None
        name, code = os.path.basename(self._command[0]), self._reap()
        if code == 0 and (self._history or not self._follow):
            self._history, self.ended = False, not self._follow
            self._begin()
            return
        last = self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        advice = next((text for said, text in _ADVICE.items() if said in last), "")
        self._fail(f"{name} {how}" + (f": {last.rstrip('.')}{advice}" if last else ""))

    def _fail(self, problem: str) -> None:
        self.problem, self.ended = problem, not self._follow
        self._retry_at = self._clock() + self._delay
        self._delay = min(2 * self._delay, _MAX_DELAY)

    def _reap(self) -> int:
        """End the process, if it still runs, and forget what it had begun to say."""
        process, self._process = self._process, None
        self._buffer.clear()
        self._skipping = False
        if process is None:
            return 0
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            code = process.wait(0 if self._closed else 1)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._drain(process.stderr.fileno())
        process.stderr.close()
        return code
