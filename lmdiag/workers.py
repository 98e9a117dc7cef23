"""Several inputs at once, each in a process of its own, since Python's threads would take turns.

A worker holds its cards once, and examines one input after the other. One that is killed loses the input at hand only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from lmdiag.errors import InputError
from lmdiag.examine import Examined, examine
from lmdiag.match.library import Library
from lmdiag.read.archives import size
from lmdiag.read.paths import Input

_TOLD_EVERY = 0.1
"""Seconds between two words of a worker on how far it is; without a listener it ends."""
_LEAVE = 5.0
"""Seconds that workers have to hand over what they found when they are interrupted."""
_GO = -1
"""In place of an input's number: there is none left."""

Done = tuple[int, Examined, tuple[str, ...], tuple[tuple[str, int], ...]]
"""The input's number, what it gave, and of the worker's library so far: its problems, its muted patterns."""


class Workers:
    """Examines inputs in processes. `problems` and `muted` collect what their libraries met."""

    def __init__(
        self, inputs: Mapping[int, Input], library: Library, jobs: int, at: Callable[[int, int], None]
    ) -> None:
        """`at` is called with an input's number and the position in it, in bytes."""
        self._inputs = inputs
        self._library = library
        self._at = at
        self._jobs = jobs
        self._context = multiprocessing.get_context("fork")  # the cards are there already, and nothing has threads yet
        # The largest first, and of equal ones the first: so the last to end is a small one.
        self._waiting = sorted(inputs, key=lambda number: (size(inputs[number].path) or 0, -number))
        self._running: dict[Connection, tuple[Any, int]] = {}
        self._muted: dict[Connection, tuple[tuple[str, int], ...]] = {}
        self._done: dict[int, Examined] = {}
        self.problems: dict[str, None] = {}
        self.interrupted = False

    def run(self) -> dict[int, Examined]:
        """Return what each input gave, by its number; those that were not begun before an interruption are missing."""
        try:
            for _ in range(min(self._jobs, len(self._inputs))):
                self._start()
            while self._running:
                self._collect(None)
        except KeyboardInterrupt:
            self._interrupt()
        finally:
            self._end()
        return self._done

    @property
    def muted(self) -> tuple[tuple[str, int], ...]:
        """How often patterns were stopped, of all workers together."""
        total: dict[str, int] = {}
        for card, count in (item for muted in self._muted.values() for item in muted):
            total[card] = total.get(card, 0) + count
        return tuple(sorted(total.items()))

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._inputs, self._library), daemon=True)
        process.start()
        theirs.close()
        self._running[ours] = process, _GO
        self._give(ours)

    def _give(self, connection: Connection) -> None:
        """Give a worker its next input, or let it go."""
        process, _ = self._running[connection]
        number = self._waiting.pop() if self._waiting and not self.interrupted else _GO
        self._running[connection] = process, number
        with suppress(OSError):  # it has died, which is noticed when its answer is read
            connection.send(number)
        if number == _GO:
            self._forget(connection)

    def _collect(self, timeout: float | None) -> None:
        for connection in wait(list(self._running), timeout):
            assert isinstance(connection, Connection)
            try:
                message = connection.recv()
            except (EOFError, OSError):
                self._lost(connection)
                continue
            if len(message) == 2:
                self._at(*message)
            else:
                self._take(connection, message)
                self._give(connection)

    def _take(self, connection: Connection, done: Done) -> None:
        number, self._done[number], problems, self._muted[connection] = done
        self.problems.update(dict.fromkeys(problems))

    def _lost(self, connection: Connection) -> None:
        """A worker has died: its input is lost, and another worker goes on with the others."""
        process, number = self._running[connection]
        self._forget(connection)
        if self.interrupted:
            return
        path = self._inputs[number].path
        how = f"by signal {-process.exitcode}" if process.exitcode and process.exitcode < 0 else "unexpectedly"
        problem = InputError(
            f"{path}: the process that read it was ended {how}; scan it again by itself, with --jobs 1"
        )
        self._done[number] = Examined(problems=(str(problem),))
        if self._waiting:
            self._start()

    def _forget(self, connection: Connection) -> None:
        process, _ = self._running.pop(connection)
        process.join(_LEAVE)
        connection.close()

    def _interrupt(self) -> None:
        """Let the workers hand over what they have."""
        self.interrupted = True
        for process, _ in self._running.values():
            if process.pid:
                os.kill(process.pid, signal.SIGINT)
        until = time.monotonic() + _LEAVE
        while self._running and (left := until - time.monotonic()) > 0:
            self._collect(left)

    def _end(self) -> None:
        for process, _ in self._running.values():
            process.terminate()
        for connection in list(self._running):
            self._forget(connection)


def _work(connection: Connection, inputs: Mapping[int, Input], library: Library) -> None:
    """Examine the inputs whose numbers come, until it is to go."""
    interrupted = False

    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:  # the terminal's signal and that of the parent are one
            interrupted = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        for number in iter(connection.recv, _GO):
            found = examine(inputs[number], library, at=_Teller(connection, number))
            problems = tuple(map(str, library.problems))
            connection.send((number, found, problems, library.muted_patterns))
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # nobody listens any more


class _Teller:
    """Tells how far a worker is, now and then."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._next = 0.0

    def __call__(self, position: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _TOLD_EVERY
            self._connection.send((self._number, position))
