"""A process that examines inputs, one after the other, as its parent sees it.

It is forked, so the cards are there at once. `multiprocessing` would take longer to import than a worker to start.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress

from lmdiag.worker_process import NUMBER, SIZE, At, Done, Job, be_worker

NOTHING = -1
"""In place of an input's number: a worker that has nothing to do."""
_CHUNK = 1 << 16


class Worker:
    """Holds the ends of the pipes to the process."""

    def __init__(self, pid: int, numbers: int, answers: int) -> None:
        self.pid = pid
        self._numbers: int | None = numbers
        self.answers = answers
        """A file descriptor that can be read when the worker says something, or has ended."""
        self.number = NOTHING
        """The input at hand."""
        self._unread = bytearray()

    @property
    def ends(self) -> tuple[int, ...]:
        """The file descriptors that are open."""
        return (self.answers,) if self._numbers is None else (self.answers, self._numbers)

    def give(self, number: int) -> None:
        """Give it its next input, or with NOTHING let it go."""
        self.number = number
        if self._numbers is None:
            return
        if number == NOTHING:
            os.close(self._numbers)
            self._numbers = None
        else:
            with suppress(BrokenPipeError):  # it has died, which its answers will tell
                os.write(self._numbers, NUMBER.pack(number))

    def receive(self) -> Iterator[At | Done]:
        """Yield what it has said. Waits for it if it has not; raises EOFError if it has ended."""
        data = os.read(self.answers, _CHUNK)
        if not data:
            raise EOFError
        self._unread += data
        while (message := self._message()) is not None:
            yield message

    def _message(self) -> At | Done | None:
        if len(self._unread) < SIZE.size:
            return None
        end = SIZE.size + SIZE.unpack_from(self._unread)[0]
        if len(self._unread) < end:
            return None
        message: At | Done = pickle.loads(self._unread[SIZE.size : end])  # noqa: S301 - from our own process
        del self._unread[:end]
        return message

    def end(self, *, kill: bool = False) -> int:
        """Wait for its end and return its exit code, or minus the signal that ended it."""
        self.give(NOTHING)
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.answers)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def start(job: Job, others: Iterable[Worker]) -> Worker:
    """Start a worker beside others, while SIGINT is blocked. Raises OSError if there can be no further process.

    Nothing may have threads yet: a lock that one of them held would stay locked in the worker for ever.
    """
    pipes: list[int] = []
    try:
        pipes += os.pipe()
        pipes += os.pipe()
        pid = os.fork()
    except OSError:
        _close(pipes)
        raise
    its_numbers, numbers, answers, its_answers = pipes
    if pid == 0:
        # A copy of the parent's ends would keep them open when the parent dies, and no worker would notice.
        _close((numbers, answers, *(end for other in others for end in other.ends)))
        be_worker(job, its_numbers, its_answers)
    _close((its_numbers, its_answers))
    return Worker(pid, numbers, answers)


def _close(ends: Iterable[int]) -> None:
    for end in ends:
        os.close(end)
