"""Forwarding as a whole: takes reports, puts them into the outbox, and keeps a courier at work for each sink."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.errors import StateError
from lmdiag.forward.courier import GIVE_UP, Courier
from lmdiag.forward.message import RESULTS, Message, card_of
from lmdiag.forward.outbox import DEAD, WAITING, Outbox
from lmdiag.forward.rounds import Rounds, Turn
from lmdiag.forward.routes import wants
from lmdiag.forward.rows import Alert, Count, encoded
from lmdiag.forward.sink import open_sink
from lmdiag.forward.status import SinkStatus

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig, WatchConfig
    from lmdiag.model import Card, Incident

_TRIM_EVERY = 60.0
"""Seconds between two times that the outbox is kept within its bounds."""


class Told(NamedTuple):
    """A report that is to be forwarded."""

    incident: Incident
    number: int
    """Of the reports of this incident; with the state it makes the key."""


class Forwarder:
    """All sinks. One thread puts messages there; each sink has one that delivers. Raises StateError."""

    def __init__(
        self,
        config: WatchConfig,
        cards: Callable[[str], Card],
        clock: Callable[[], float] = time.time,
        *,
        follow: bool = True,
        timeout: float = 0.25,
    ) -> None:
        """`follow`: the end of each incident will be reported too, and open ones are kept alive: what a daemon does.

        `clock` gives unix seconds, which receivers see. `timeout`: seconds that `put` waits for other writers.
        """
        self._config, self._cards, self._clock, self._follow, self._timeout = config, cards, clock, follow, timeout
        self._instance = instance_name(config)
        self._outbox = Outbox(config.state, timeout=timeout)
        self.problem = self._outbox.problem
        """What is wrong with the outbox."""
        try:
            self._turn = Turn(config.state)
        except StateError:
            self._outbox.close()
            raise
        self._rounds: dict[str, Rounds] = {}
        self._ending: dict[str, Rounds] = {}  # by sink: the last ones that were stopped
        self._results: dict[str, Counter[str]] = {}
        self._lost: Counter[tuple[str, str]] = Counter()
        self._trimmed_at: float | None = None

    # -- taking ------------------------------------------------------------------------------------------------------

    def put(self, reports: Iterable[Told]) -> int:
        """Put reports there for each sink that wants them; return how many messages that makes.

        What was put there before is not put there again. Raises StateError, and then none of them is there.
        """
        return self._write(lambda now: [sink for one in reports for sink in self._put(one, self._config.sinks, now)])

    def reconcile(self, open_reports: Sequence[Told]) -> None:
        """Bring sinks up to what is open now, after the state or the outbox was lost, or sinks have changed.

        What a sink takes for open and is not is ended there; what is open and it should know is told. Raises StateError.
        """
        self._write(
            lambda now: [sink for one in self._config.sinks for sink in self._reconciled(one, open_reports, now)]
        )

    def is_there(self) -> bool:
        """Whether the outbox is still the file that was opened; if not, the next `put` begins a new one."""
        return self._outbox.is_there()

    def _write(self, action: Callable[[float], list[str]]) -> int:
        if not self._outbox.is_there():
            self._reopen()
        now = self._clock()
        try:
            with self._outbox.transaction():
                sinks = action(now)
        except StateError as error:
            if _is_damage(error.__cause__):
                self._reopen()
            raise
        for name in set(sinks) & self._rounds.keys():
            self._rounds[name].wake()
        return len(sinks)

    def _reopen(self) -> None:
        self._outbox.close()
        self._outbox = Outbox(self._config.state, timeout=self._timeout)
        self.problem = self._outbox.problem

    def _put(self, report: Told, sinks: Sequence[SinkConfig], now: float) -> list[str]:
        """Put a report there for some sinks; return the names of those for which it is new."""
        return [sink.name for sink in sinks if self._put_for(sink, report, now)]

    def _put_for(self, sink: SinkConfig, report: Told, now: float) -> bool:
        incident = report.incident
        known, over = self._outbox.alert(sink.name, incident.id), incident.state == "resolved"
        card = card_of(incident.card, self._cards)
        if not wants(sink, incident, card.tags if card else (), known, now):
            if over:
                self._outbox.drop_alert(sink.name, incident.id)
            return False
        message = self._message(report, known, now)
        added = [self._outbox.add(sink.name, one, now) for one in _succession(sink, message, known)]
        if over and not added[-1]:
            self._outbox.drop_alert(sink.name, incident.id)  # its end was told before
        elif self._follow and (added[-1] or known is None):
            sent = known.sent if known else self._outbox.is_delivered(sink.name, message.key)
            self._outbox.set_alert(_alert(sink.name, message, now, sent=sent))
        return added[-1]

    def _reconciled(self, sink: SinkConfig, reports: Sequence[Told], now: float) -> list[str]:
        known = self._outbox.alerts(sink.name)
        is_open = {one.incident.id for one in reports}
        ends = [
            Told(message.incident._replace(state="resolved"), round(one.told_at))
            for one in known.values()
            if not one.resolved and one.incident not in is_open and (message := one.message)
        ]
        news = [one for one in reports if one.incident.id not in known]
        return [name for one in (*ends, *news) for name in self._put(one, [sink], now)]

    def _message(self, report: Told, known: Alert | None, now: float) -> Message:
        incident = report.incident
        return Message(
            # the time sets apart what another log shows in the same line
            key=_digest(self._instance, incident.id, incident.state, str(report.number), incident.first_seen or ""),
            incident=incident,
            at=now,
            since=known.since if known else now,
            instance=self._instance,
            alert=known.alert if known else _digest(self._instance, incident.id),
        )

    def tend(self) -> None:
        """Keep the outbox within its bounds; to be called now and then. What fails is in `problem`."""
        now = self._clock()
        if self._trimmed_at is not None and 0 <= now - self._trimmed_at < _TRIM_EVERY:
            return
        self._trimmed_at = now
        try:
            if self._follow:
                self._outbox.abandon([sink.name for sink in self._config.sinks], now - GIVE_UP, now)
            for lost in self._outbox.trim(now, age=self._config.outbox_age, size=self._config.outbox_size):
                self._lost[lost] += 1
            self.problem = ""
        except StateError as error:
            self.problem = str(error)

    # -- delivering --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to deliver, in a thread for each sink."""
        for sink in self._config.sinks:
            before = self._ending.get(sink.name)
            self._rounds[sink.name] = Rounds(self._courier(sink), self._turn, self._clock, before)
            self._rounds[sink.name].start()

    def _courier(self, sink: SinkConfig) -> Callable[[], Courier]:
        results = self._results.setdefault(sink.name, Counter(dict.fromkeys(RESULTS, 0)))

        def make() -> Courier:
            outbox = Outbox(self._config.state, checked=False)
            return Courier(
                sink, open_sink(sink), outbox, lambda name: self._cards(name), self._clock,
                results=results, resends=self._follow,
            )  # fmt: skip

        return make

    def reload(self, config: WatchConfig, cards: Callable[[str], Card]) -> None:
        """Go on with other sinks and cards. What waits for a sink that is there no more stays in the outbox for a day."""
        changed = config.sinks != self._config.sinks
        self._config, self._cards, self._instance = (
            config._replace(state=self._config.state),
            cards,
            instance_name(config),
        )
        if changed:
            self._stop()
            self.start()

    def _stop(self) -> None:
        for rounds in self._rounds.values():
            rounds.stop()
        self._ending |= self._rounds
        self._rounds = {}

    def is_ours(self) -> bool:
        """Whether this process may deliver; if not, another one does."""
        return self._turn.mine()

    def waits(self, sinks: Iterable[str]) -> bool:
        """Whether anything waits for these sinks. Raises StateError."""
        return any(self._outbox.count(sink).waiting for sink in sinks)

    def drain(self, seconds: float) -> None:
        """Wait until everything was tried once, at most so long."""
        end = time.monotonic() + seconds
        for rounds in self._rounds.values():
            rounds.rest(max(0.0, end - time.monotonic()))

    def close(self, seconds: float) -> None:
        """Stop delivering, and wait at most so long for the requests that are on their way.

        A request that takes longer keeps the turn until its end.
        """
        end = time.monotonic() + seconds
        self._stop()
        for rounds in self._ending.values():
            rounds.join(max(0.0, end - time.monotonic()))
        self._outbox.close()
        self._turn.leave()

    def statuses(self) -> tuple[SinkStatus, ...]:
        """Return how each sink is doing."""
        return tuple(self._status(sink) for sink in self._config.sinks)

    def _status(self, sink: SinkConfig) -> SinkStatus:
        rounds = self._rounds.get(sink.name)
        return SinkStatus(
            sink.name,
            sink.type,
            *(rounds.count if rounds else Count()),
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

    *ends, last = succession(message, known.message)
    return [*(one._replace(key=_digest(message.key, "end")) for one in ends), last._replace(key=message.key)]


def _alert(sink: str, message: Message, now: float, *, sent: bool) -> Alert:
    incident = message.incident
    return Alert(
        sink,
        incident.id,
        message.alert,
        message.since,
        now,
        incident.severity,
        incident.loop is not None,
        sent=sent,
        resolved=incident.state == "resolved",
        body=encoded(message),
    )


def _is_damage(cause: BaseException | None) -> bool:
    """Whether SQLite found that the file is none of its own, or broken."""
    return isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError)


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
