"""Forwarding as a whole: takes reports, puts them into the outbox, and keeps a courier at work for each sink."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.errors import CardError, StateError
from lmdiag.forward.courier import GIVE_UP, Courier, defect
from lmdiag.forward.message import RESULTS, Message
from lmdiag.forward.outbox import DEAD, WAITING, Alert, Count, Outbox, encoded
from lmdiag.forward.routes import wants
from lmdiag.forward.sink import open_sink
from lmdiag.forward.status import SinkStatus

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig, WatchConfig
    from lmdiag.model import Card, Incident

LOCK = "outbox.lock"
_POLL = 5.0
"""Seconds between two looks at the outbox, into which other processes put messages too."""
_TRIM_EVERY = 60.0
_NOT_OURS = 1.0
"""Seconds between two tries for the lock, while another process delivers."""


class Told(NamedTuple):
    """A report that is to be forwarded."""

    incident: Incident
    at: float
    """In unix seconds."""
    number: int
    """Of the reports of this incident; with the state it makes the key."""


class Forwarder:
    """All sinks. One thread puts messages there; each sink has one that delivers. Raises StateError."""

    def __init__(
        self,
        directory: str,
        sinks: Sequence[SinkConfig],
        instance: str,
        cards: Callable[[str], Card],
        clock: Callable[[], float],
        *,
        age: float,
        size: int,
        timeout: float = 1.0,
    ) -> None:
        """`age` (seconds) and `size` (bytes) bound the outbox. `timeout`: seconds that `put` waits for other writers."""
        self.sinks, self.instance, self.cards = tuple(sinks), instance, cards
        self._directory, self._clock, self._age, self._size = directory, clock, age, size
        self._outbox = Outbox(directory, timeout=timeout)
        self.problem = self._outbox.problem
        self._turn = Turn(directory)
        self._rounds: dict[str, _Rounds] = {}
        self._results: dict[str, Counter[str]] = {}
        self._lost: Counter[tuple[str, str]] = Counter()
        self._trimmed_at = 0.0

    # -- taking ------------------------------------------------------------------------------------------------------

    def put(self, reports: Iterable[Told], *, follow: bool = True) -> int:
        """Put reports there for each sink that wants them; return how many messages that makes.

        What was put there before is not put there again. `follow`: the end of each incident will be reported too.
        Raises StateError, and then none of them is there.
        """
        now, added, sinks = self._clock(), 0, set()
        with self._outbox.transaction():
            for report in reports:
                for sink in self.sinks:
                    if self._put_for(sink, report, now, follow=follow):
                        added += 1
                        sinks.add(sink.name)
        if now - self._trimmed_at > _TRIM_EVERY:
            self._trim(now)
        for name in sinks & self._rounds.keys():
            self._rounds[name].wake()
        return added

    def _put_for(self, sink: SinkConfig, report: Told, now: float, *, follow: bool) -> bool:
        incident = report.incident
        known = self._outbox.alert(sink.name, incident.id)
        if not wants(sink, incident, self._tags(incident), known, now):
            if known is not None and incident.state == "resolved":
                self._outbox.drop_alert(sink.name, incident.id)
            return False
        message = self._message(report, known)
        for one in _succession(sink, message, known):
            if not self._outbox.add(sink.name, one, now):
                return False
        if follow:
            self._outbox.set_alert(_alert(sink.name, message, known, now))
        return True

    def _message(self, report: Told, known: Alert | None) -> Message:
        incident = report.incident
        return Message(
            # the time sets apart what another log shows in the same line
            key=_digest(self.instance, incident.id, incident.state, str(report.number), incident.first_seen or ""),
            incident=incident,
            at=report.at,
            since=known.since if known else report.at,
            instance=self.instance,
            alert=known.alert if known else _digest(self.instance, incident.id),
        )

    def _tags(self, incident: Incident) -> tuple[str, ...]:
        try:
            return self.cards(incident.card).tags if incident.card else ()
        except CardError:
            return ()

    def reconcile(self, open_incidents: Collection[str]) -> None:
        """Tell the end of what sinks take for open and nobody knows any more, such as after the state was lost."""
        forgotten = [
            Told(message.incident._replace(state="resolved"), self._clock(), round(one.told_at))
            for sink in self.sinks
            for one in self._outbox.alerts(sink.name).values()
            if not one.resolved and one.incident not in open_incidents and (message := one.message)
        ]
        if forgotten:
            self.put(forgotten)

    def _trim(self, now: float) -> None:
        self._trimmed_at = now
        self._outbox.abandon([sink.name for sink in self.sinks], now - GIVE_UP, now)
        for lost in self._outbox.trim(now, age=self._age, size=self._size):
            self._lost[lost] += 1

    # -- delivering --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to deliver, in a thread for each sink."""
        self._trim(self._clock())
        before = self._rounds
        self._rounds = {}
        for sink in self.sinks:
            results = self._results.setdefault(sink.name, Counter(dict.fromkeys(RESULTS, 0)))
            self._rounds[sink.name] = _Rounds(
                self._courier(sink, results), self._turn, self._clock, before.get(sink.name)
            )
        for rounds in self._rounds.values():
            rounds.start()

    def _courier(self, sink: SinkConfig, results: Counter[str]) -> Callable[[], Courier]:
        def make() -> Courier:
            outbox = Outbox(self._directory, checked=False)
            return Courier(sink, open_sink(sink), outbox, lambda name: self.cards(name), self._clock, results=results)

        return make

    def reload(self, sinks: Sequence[SinkConfig], instance: str, cards: Callable[[str], Card]) -> None:
        """Go on with other sinks and cards. What waits for a sink that is there no more stays in the outbox."""
        self.instance, self.cards = instance, cards
        if self.sinks != tuple(sinks):
            self.sinks = tuple(sinks)
            for rounds in self._rounds.values():
                rounds.stop()
            self.start()

    def is_ours(self) -> bool:
        """Whether this process may deliver; if not, another one does."""
        return self._turn.mine()

    def drain(self, seconds: float) -> None:
        """Wait until everything was tried once, at most so long."""
        end = self._clock() + seconds
        for rounds in self._rounds.values():
            rounds.rest(max(0.0, end - self._clock()))

    def close(self, seconds: float) -> None:
        """Stop delivering, and wait at most so long for the requests that are on their way."""
        end = self._clock() + seconds
        for rounds in self._rounds.values():
            rounds.stop()
        for rounds in self._rounds.values():
            rounds.join(max(0.0, end - self._clock()))
        self._outbox.close()
        if not any(rounds.is_alive() for rounds in self._rounds.values()):
            self._turn.release()

    def statuses(self) -> tuple[SinkStatus, ...]:
        """Return how each sink is doing."""
        return tuple(self._status(sink) for sink in self.sinks)

    def _status(self, sink: SinkConfig) -> SinkStatus:
        rounds = self._rounds.get(sink.name)
        count = rounds.count if rounds else Count(0, 0, None)
        return SinkStatus(
            sink.name,
            sink.type,
            *count,
            problem=rounds.problem if rounds else "",
            results=tuple(self._results.get(sink.name, {}).items()),
            lost=tuple((status, self._lost[sink.name, status]) for status in (WAITING, DEAD)),
        )


def instance_name(config: WatchConfig) -> str:
    """Return what this node is called in alerts."""
    return config.instance or socket.gethostname()


def _succession(sink: SinkConfig, message: Message, known: Alert | None) -> list[Message]:
    """Return the message, behind the end of an alert that it would not replace, where there is one."""
    if sink.type != "alertmanager" or known is None or known.resolved:
        return [message]
    from lmdiag.forward.alerts import succession

    *ends, last = succession(message, known.severity)
    return [*(one._replace(key=_digest(message.key, known.severity)) for one in ends), last]


def _alert(sink: str, message: Message, known: Alert | None, now: float) -> Alert:
    incident = message.incident
    return Alert(
        sink,
        incident.id,
        message.alert,
        message.since,
        now,
        incident.severity,
        incident.loop is not None,
        sent=known is not None and known.sent,
        resolved=incident.state == "resolved",
        body=encoded(message),
    )


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Turn:
    """Whose turn it is to deliver: one process at a time, or the same message would be sent twice, or out of order."""

    def __init__(self, directory: str) -> None:
        path = os.path.join(directory, LOCK)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; name a directory that this user may write") from error
        self._lock = threading.Lock()
        self._held = False

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

    def release(self) -> None:
        """Leave the turn to others, for good."""
        os.close(self._file)


class _Rounds(threading.Thread):
    """Lets a courier do its work until it is stopped."""

    def __init__(
        self,
        courier: Callable[[], Courier],
        turn: Turn,
        clock: Callable[[], float],
        before: _Rounds | None,
    ) -> None:
        super().__init__(name="courier", daemon=True)
        self.count = Count(0, 0, None)
        self.problem = ""
        self._make, self._turn, self._clock, self._before = courier, turn, clock, before
        self._change = threading.Condition()
        self._asked = 1
        self._rested = 0
        """Up to which of the calls of `wake` everything that is due was done."""
        self._stopped = False

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
        if self._before is not None:
            self._before.join()  # its request may still be on its way: nothing may overtake it
            self._before = None
        courier, asked = None, 0
        while not self._stopped:
            with self._change:
                asked = self._asked
            try:
                courier = courier or self._make()
                pause = self._go(courier)
            except Exception as error:  # noqa: BLE001 (the thread's edge: a sink must not end without a word)
                self.problem, pause = str(error) if isinstance(error, StateError) else defect(error), _POLL
            with self._change:
                if pause:
                    self._rested = asked
                    self._change.notify_all()
                self._change.wait_for(lambda: self._stopped or self._asked != asked, pause)  # noqa: B023
        if courier is not None:
            courier.close()

    def _go(self, courier: Courier) -> float:
        """Let the courier do one thing; return the seconds until the next one."""
        if not self._turn.mine():
            return _NOT_OURS
        due = courier.step()
        self.problem, self.count = courier.problem, courier.count()
        return min(_POLL, max(0.0, due - self._clock()))
