"""A thread for each sink, in which its courier works, and the turn that one process at a time has."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from lmdiag.errors import StateError
from lmdiag.forward.courier import Courier, defect
from lmdiag.forward.rows import Count

LOCK = "outbox.lock"
POLL = 5.0
"""Seconds between two looks at the outbox, into which other processes put messages too."""
_NOT_OURS = 1.0
"""Seconds between two tries for the turn, while another process has it."""
_COUNT_EVERY = 1.0


class Turn:
    """Whose turn it is to deliver: one process at a time, or the same message would be sent twice, or out of order."""

    def __init__(self, directory: str) -> None:
        """Open the lock's file. Raises StateError."""
        path = os.path.join(directory, LOCK)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; see that this user may write there") from error
        self._lock = threading.Lock()
        self._held = False
        self._users = 1

    def mine(self) -> bool:
        """Take the turn if nobody has it; return whether it is ours."""
        with self._lock:
            if not self._held:
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._held = True
                except BlockingIOError:
                    return False
            return True

    def share(self) -> None:
        """Count a user more, who will `leave`."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count a user less; the last one leaves the turn to other processes, for good."""
        with self._lock:
            self._users -= 1
            if not self._users:
                os.close(self._file)


class Rounds(threading.Thread):
    """Lets a courier do its work until it is stopped. The process does not wait for it at its end."""

    def __init__(
        self, courier: Callable[[], Courier], turn: Turn, clock: Callable[[], float], before: Rounds | None
    ) -> None:
        """`courier` is called in the thread. `before`: those of the same sink that may not have ended yet."""
        super().__init__(name="courier", daemon=True)
        self.count = Count()
        self.problem = ""
        self._make, self._turn, self._clock, self._before = courier, turn, clock, before
        self._courier: Courier | None = None
        self._change = threading.Condition()
        self._asked = 1
        self._rested = 0
        """Up to which of the calls of `wake` everything that is due was done."""
        self._counted_at = 0.0
        self._stopped = False
        turn.share()

    def wake(self) -> None:
        """Look at the outbox at once."""
        with self._change:
            self._asked += 1
            self._change.notify_all()

    def stop(self) -> None:
        """End after the request that is on its way."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def rest(self, seconds: float) -> None:
        """Wait until nothing is due, at most so long."""
        with self._change:
            self._change.wait_for(lambda: self._rested >= self._asked or not self.is_alive(), seconds)

    def run(self) -> None:
        """Go round; to be called by `start`."""
        if self._before is not None:
            self._before.join()  # its request may still be on its way: nothing may overtake it
            self._before = None
        try:
            while not self._stopped:
                with self._change:
                    asked = self._asked
                self._wait(self._guarded(), asked)
        finally:
            self._close()
            self._turn.leave()

    def _wait(self, pause: float, asked: int) -> None:
        with self._change:
            if pause:
                self._rested = asked
                self._change.notify_all()
            self._change.wait_for(lambda: self._stopped or self._asked != asked, pause)

    def _guarded(self) -> float:
        try:
            return self._go()
        except StateError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 (the thread's edge: a sink must not end without a word)
            self.problem = defect(error)
        return POLL

    def _go(self) -> float:
        """Let the courier do one thing; return the seconds until the next one."""
        if not self._turn.mine():
            return _NOT_OURS
        if self._courier is not None and not self._courier.outbox.is_there():
            self._close()  # it was removed; what belongs into it is put into a new one
        self._courier = self._courier or self._make()
        due = self._courier.step()
        pause = min(POLL, max(0.0, due - self._clock()))
        self.problem = self._courier.problem
        if pause or time.monotonic() - self._counted_at >= _COUNT_EVERY:
            self.count = self._courier.outbox.count(self._courier.config.name)
            self._counted_at = time.monotonic()
        return pause

    def _close(self) -> None:
        if self._courier is not None:
            with suppress(StateError):
                self._courier.close()
            self._courier = None
