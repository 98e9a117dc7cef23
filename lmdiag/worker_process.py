"""A worker as it sees itself: numbers of inputs come in, what each of them gave goes out."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from lmdiag.examine import Examined, examine
from lmdiag.match.cards import Problem
from lmdiag.match.library import Library
from lmdiag.read.paths import Input

if TYPE_CHECKING:
    from lmdiag.read.span import Span

NUMBER = struct.Struct("=i")
"""What comes in."""
SIZE = struct.Struct("=Q")
"""What goes out in front of each message, which is a pickle of At or Done."""
_TOLD_EVERY = 0.1
"""Seconds between two words on how far it is; without a listener it ends."""


class At(NamedTuple):
    """How far a worker is in its input, in bytes of the file."""

    number: int
    position: int


class Done(NamedTuple):
    """What an input gave; and what the worker's own library met so far."""

    number: int
    found: Examined
    problems: tuple[Problem, ...]
    """Those that were not known when the worker started."""
    muted: tuple[tuple[str, int], ...]


class Job(NamedTuple):
    """What all workers of a scan have in common."""

    inputs: Mapping[int, Input]
    library: Library
    span: Span | None = None


def be_worker(job: Job, numbers: int, answers: int) -> NoReturn:
    """Examine inputs until no number can come any more, and end; never return into what the parent was doing."""
    code = 1
    try:
        _Process(job, numbers, answers).run()
        code = 0
    except BrokenPipeError:
        pass  # nobody listens any more
    except BaseException:  # noqa: BLE001 - whatever it is, it is told and ends here
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)


class _Process:
    def __init__(self, job: Job, numbers: int, answers: int) -> None:
        self._job = job
        self._numbers = numbers
        self._answers = answers
        self._known = set(job.library.problems)
        self._interrupted = False
        self._next = 0.0

    def run(self) -> None:
        """Examine the inputs whose numbers come, until none can come any more."""
        if callable(signal.getsignal(signal.SIGINT)):
            signal.signal(signal.SIGINT, self._interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        while data := os.read(self._numbers, NUMBER.size):
            self._examine(*NUMBER.unpack(data))

    def _examine(self, number: int) -> None:
        job, library = self._job, self._job.library
        found = examine(job.inputs[number], library, at=lambda position: self._at(number, position), span=job.span)
        problems = tuple(problem for problem in library.problems if problem not in self._known)
        self._say(Done(number, found, problems, library.muted_patterns))

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True

    def _at(self, number: int, position: int) -> None:
        """Between two blocks: only here an interruption loses nothing that was read, and breaks no message."""
        if self._interrupted:
            raise KeyboardInterrupt
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _TOLD_EVERY
            self._say(At(number, position))

    def _say(self, message: At | Done) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        rest = memoryview(SIZE.pack(len(data)) + data)
        while rest:
            rest = rest[os.write(self._answers, rest) :]
