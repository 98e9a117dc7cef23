"""Several inputs at once, each in a process of its own, since Python's threads would take turns.

A worker examines one input after the other. One that is killed loses the input at hand only.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lmdiag.errors import InputError
from lmdiag.examine import Examined
from lmdiag.match.cards import Problem
from lmdiag.match.library import Library
from lmdiag.read.archives import size
from lmdiag.read.paths import Input
from lmdiag.worker import NOTHING, Worker, start
from lmdiag.worker_process import At, Done, Job

if TYPE_CHECKING:
    from lmdiag.read.span import Span

_LEAVE = 5.0
"""Seconds that workers have to hand over what they found when they are interrupted."""
_LOOK = 500
"""Milliseconds between two looks at whether they have had them."""


class Workers:
    """Examines inputs in processes; `problems` and `muted` are what their libraries met."""

    def __init__(
        self,
        inputs: Mapping[int, Input],
        library: Library,
        jobs: int,
        at: Callable[[int, int], None],
        span: Span | None = None,
    ) -> None:
        """`at` is called with an input's number and the position in it, in bytes."""
        self._job = Job(inputs, library, span)
        self._jobs = min(jobs, len(inputs))
        self._at = at
        self._sizes = {number: size(entry.path) or 0 for number, entry in inputs.items()}
        # The largest first, and of equal ones the first: so the last to end is a small one.
        self._waiting = sorted(inputs, key=lambda number: (self._sizes[number], -number))
        self._running: dict[int, Worker] = {}
        self._poll = select.poll()
        self._done: dict[int, Examined] = {}
        self._muted: dict[int, tuple[tuple[str, int], ...]] = {}
        self._problems: dict[Problem, None] = {}
        self._asked = False  # to end, by the keyboard
        self._ending_since: float | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the keyboard ended it, or one of its workers."""
        return self._ending_since is not None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What the workers' libraries met that this process's one had not."""
        return tuple(self._problems)

    @property
    def muted(self) -> tuple[tuple[str, int], ...]:
        """Of all workers, one behind the other; see Library.muted_patterns."""
        return tuple(item for muted in self._muted.values() for item in muted)

    def run(self) -> dict[int, Examined]:
        """Return what each input gave, by its number.

        Those are missing that were not begun before an interruption, or for which no process could be started. A second
        interruption raises KeyboardInterrupt.
        """
        before = signal.getsignal(signal.SIGINT)
        if callable(before):  # otherwise it is ignored, as behind nohup
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            while len(self._running) < self._jobs and self._start():
                pass
            while self._running and not self._late():
                self._collect()
        finally:
            for worker in self._running.values():
                worker.end(kill=True)
            self._running.clear()
            if callable(before):
                signal.signal(signal.SIGINT, before)
        return self._done

    def _start(self) -> bool:
        """Start one more, if that is possible and of use."""
        if self.interrupted or not self._waiting:
            return False
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # no worker may be missing when one comes
        try:
            worker = start(self._job, self._running.values())
            self._running[worker.answers] = worker
        except OSError:  # of processes, memory or files: those that run go on
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        self._poll.register(worker.answers, select.POLLIN)
        self._give(worker)
        return True

    def _give(self, worker: Worker) -> None:
        worker.give(self._waiting.pop() if self._waiting and not self.interrupted else NOTHING)

    def _collect(self) -> None:
        for answers, _ in self._poll.poll(_LOOK):
            worker = self._running[answers]
            try:
                for message in worker.receive():
                    self._take(worker, message)
            except EOFError:
                self._ended(worker)

    def _take(self, worker: Worker, message: At | Done) -> None:
        if isinstance(message, At):
            self._at(*message)
            return
        self._done[message.number] = message.found
        self._muted[worker.pid] = message.muted
        self._problems.update(dict.fromkeys(message.problems))
        if message.found.interrupted:
            self._recall()
        else:
            self._at(message.number, self._sizes[message.number])
        self._give(worker)

    def _ended(self, worker: Worker) -> None:
        """If a worker dies, its input is lost, and another worker goes on with the others."""
        number = worker.number
        self._poll.unregister(worker.answers)
        del self._running[worker.answers]
        code = worker.end()
        if number == NOTHING or self.interrupted:
            return
        path = self._job.inputs[number].path
        how = f"by signal {-code}" if code < 0 else "unexpectedly"
        problem = f"{path}: the process that read it was ended {how}; scan it again by itself, with --jobs 1"
        self._done[number] = Examined(problems=(str(InputError(problem)),))
        self._start()

    def _interrupt(self, *_: object) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        self._recall()

    def _recall(self) -> None:
        """Let the workers hand over what they have; a terminal has told them too, which is the same to them."""
        if self.interrupted:
            return
        self._ending_since = time.monotonic()
        for worker in self._running.values():
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)

    def _late(self) -> bool:
        return self._ending_since is not None and time.monotonic() > self._ending_since + _LEAVE
