"""What the daemon's loop sleeps on: descriptors, a pipe to wake it by, and the kernel's word that a file was written.

A waker only wakes. What has changed is found by `stat` and `read`, and whatever it cannot hear is `deaf` and polled.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import TYPE_CHECKING, Protocol

from lmdiag.read.directories import Directories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

REST = 0.005
"""Seconds between two wake-ups by what is read: a log that is written line by line is read in blocks."""


class Waker(Protocol):
    """What wakes the loop."""

    problems: list[str]
    """Why something can only be polled; each is said once. The loop takes them out."""
    rest: float
    """Seconds between two wake-ups by what is read. The loop may make it longer under load, for larger blocks."""

    def wait(self, timeout: float | None, fds: Collection[int] = ()) -> frozenset[int]:
        """Sleep until something is to be done, at most `timeout` seconds (None: for ever); return the `fds` with data."""

    def wake(self) -> None:
        """End the present or the next `wait`. May be called by any thread and by a signal handler."""

    def dirty(self) -> frozenset[str]:
        """Return the paths that were written, created, moved or deleted since the last call.

        A path of `watch` stands for itself; a root means that an entry under it came or went.
        """

    def watch(self, paths: Collection[str], roots: Collection[tuple[str, bool]] = ()) -> None:
        """Set what to listen for: files, and directories (and whether those in them count too) for new files.

        To be called again from time to time with the same: directories that were made anew are found then.
        """

    def deaf(self, path: str) -> bool:
        """Whether writes to this file may go unheard, so that it must be polled."""

    def close(self) -> None:
        """Give all descriptors back. `wake` may still be called."""


class PollWaker:
    """Hears nothing of files: all are deaf. The pipe and the descriptors wake it."""

    def __init__(self, *, rest: float = REST, clock: Callable[[], float] = time.monotonic) -> None:
        self.problems: list[str] = []
        self.rest = rest
        self._clock = clock
        self._rested = clock()  # until then only `wake` ends a `wait`
        self._woken = False
        self._closed = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wait(self, timeout: float | None, fds: Collection[int] = ()) -> frozenset[int]:
        """See Waker."""
        until = _Deadline(self._clock, timeout)
        pause = self._rested - self._clock()
        # Within the rest there is little to look at yet; but a stop must not wait.
        if pause > 0 and timeout != 0 and self._select((), until.sooner(pause)):
            return frozenset()
        ready = self._wait(until, fds)
        if ready is None:
            return frozenset()
        self._rested = self._clock() + self.rest
        return frozenset(ready)

    def wake(self) -> None:
        """See Waker."""
        if self._woken or self._closed:
            return
        self._woken = True
        with contextlib.suppress(OSError):  # full is as good as written; closed meanwhile is too late
            os.write(self._writer, b"\0")

    def dirty(self) -> frozenset[str]:
        """See Waker."""
        return frozenset()

    def watch(self, paths: Collection[str], roots: Collection[tuple[str, bool]] = ()) -> None:
        """See Waker."""

    def deaf(self, path: str) -> bool:  # noqa: ARG002 (the protocol's)
        """See Waker."""
        return True

    def close(self) -> None:
        """See Waker."""
        if not self._closed:
            self._closed = True
            os.close(self._reader)
            os.close(self._writer)

    def _wait(self, until: _Deadline, fds: Collection[int]) -> set[int] | None:
        """Wait for the pipe or the descriptors; None: nothing is to be read."""
        return self._select(fds, until.left()) - {self._reader} or None

    def _select(self, fds: Collection[int], timeout: float | None) -> set[int]:
        """Wait for the pipe or the descriptors; a descriptor with an error or a hang-up is ready too."""
        poll = select.poll()
        for fd in (self._reader, *fds):
            poll.register(fd, select.POLLIN)
        # Rounded up: a poll that returns a little early would go round without need.
        ready = {fd for fd, _ in poll.poll(None if timeout is None else int(timeout * 1000 + 0.999))}
        if self._reader in ready:
            self._drain()
        return ready

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass
        self._woken = False  # only now: a wake-up while the pipe was emptied ends this very wait


class WatchdogWaker(PollWaker):
    """Hears of writes by inotify. Raises ImportError or OSError where that is not to be had."""

    def __init__(self, *, rest: float = REST, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(rest=rest, clock=clock)
        try:
            self._directories = Directories(self.problems)
        except (ImportError, OSError):
            super().close()
            raise

    def dirty(self) -> frozenset[str]:
        """See Waker."""
        return self._directories.take()

    def watch(self, paths: Collection[str], roots: Collection[tuple[str, bool]] = ()) -> None:
        """See Waker."""
        self._directories.watch(paths, roots)

    def deaf(self, path: str) -> bool:
        """See Waker."""
        return self._directories.deaf(path)

    def close(self) -> None:
        """See Waker."""
        if not self._closed:
            self._directories.close()
        super().close()

    def _wait(self, until: _Deadline, fds: Collection[int]) -> set[int] | None:
        """Wait; events of files that nobody asked for end nothing, and are looked at seldom."""
        heard = self._directories
        while True:
            ready = self._select((*fds, heard.fd), 0 if heard.pending else until.left())
            if heard.fd in ready:
                heard.listen()
            others = ready - {self._reader, heard.fd}
            if others or heard.pending:
                return others
            if self._reader in ready or until.left() == 0:
                return None
            if others := self._select(fds, until.sooner(self.rest)):
                return others - {self._reader} or None


class _Deadline:
    """When a `wait` must end, by a monotonic clock."""

    def __init__(self, clock: Callable[[], float], timeout: float | None) -> None:
        self._clock = clock
        self._end = None if timeout is None else clock() + timeout

    def left(self) -> float | None:
        """How many seconds are left; None: any number of them."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def sooner(self, seconds: float) -> float:
        """How many, but at most `seconds`."""
        left = self.left()
        return seconds if left is None else min(seconds, left)


def open_waker(*, poll: bool = False) -> Waker:
    """Return one that hears of writes, or, where that is not to be had or not wanted (`poll`), one that only polls."""
    if poll:
        return PollWaker()
    try:
        return WatchdogWaker()
    except (ImportError, OSError) as error:
        waker = PollWaker()
        waker.problems.append(f"files are polled, since notification is not to be had: {error}")
        return waker
