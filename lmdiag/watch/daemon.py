"""The daemon's round: read what is new, look at what it shows, save, tell. Time comes in; nothing here waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TextIO

from lmdiag.errors import StateError
from lmdiag.report.control import visible
from lmdiag.watch.flood import Flood
from lmdiag.watch.notify import with_priority
from lmdiag.watch.store import Pending, Saved

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.match.library import Library
    from lmdiag.watch.counters import Counters
    from lmdiag.watch.outlets import Outlet
    from lmdiag.watch.sources import Streams
    from lmdiag.watch.store import Store
    from lmdiag.watch.stream import Stream
    from lmdiag.watch.tracker import Report, Tracker

SAVE_EVERY = 5.0
"""Seconds between two saves of mere positions; what there is to report is saved before it is told."""
MAX_SETTLE = 10.0
"""A failure that goes on being logged is looked at after so many seconds, though it has not settled."""
_TURN = 1 << 20
"""Bytes of a source that are read before the next one has its turn."""
_MUCH = 1 << 15
"""Bytes in a round that make a source a busy one."""
_LOOK_SHARE, _BUSY_LOOK_SHARE = 4.0, 20.0
"""A look may take one part in so many of the time; the second where much is written."""
_BEHIND = 4
"""A source that is a part in so many of `max_behind` behind is read without what only repeats."""


class Daemon:
    """All state of `lmdiag watch` but the loop itself. `step` goes round once."""

    def __init__(
        self,
        config: WatchConfig,
        library: Library,
        streams: Streams,
        tracker: Tracker,
        store: Store,
        outlet: Outlet,
        counters: Counters,
        err: TextIO,
        *,
        cpu: Callable[[], float] = time.process_time,
        pulse: Callable[[], object] = bool,
        journal: bool = False,
    ) -> None:
        """`pulse` is called after each source: a round may take long. `journal`: `err` is read by journald."""
        self.config = config
        self.library = library
        self.streams = streams
        self.tracker = tracker
        self.store = store
        self.outlet = outlet
        self.counters = counters
        self.untold: list[Pending] = store.pending()
        self._told: list[int] = []
        self._err = err
        self._said: set[str] = set()
        self._cpu = cpu
        self._pulse = pulse
        self._journal = journal
        self._crowded: list[Report] = []  # of looks that could not wait for the end of a source's turn
        self.busy = False
        """Whether so much came in the last round that it is better to rest a little before the next."""
        self._saved_at = 0.0
        self._dirty: set[str] = set()
        counters.know_cards((name, severity) for name, (_, severity, _) in library.pack.headers.items())
        self._floods: dict[str, Flood] = {}
        self._caught_up: dict[str, bool] = {}
        self._look_after: dict[str, float] = {}

    # -- the round ---------------------------------------------------------------------------------------------------

    def step(self, now: float, names: Collection[str] | None = None) -> bool:
        """Go round once: read the sources of these names (None: all), and do what is due.

        Returns whether there is more to read at once.
        """
        self.counters.stepped(now)
        self._forget()
        self.busy = False
        more = False
        for stream in self.streams.selected(names):
            self._pulse()
            if self._read(stream, now):
                more = True
                self.streams.again(stream.source.name)
        reports, self._crowded = self._crowded, []
        for stream in self.streams.all():
            reports += self._look(stream, now)
        reports += self.tracker.tick(now)
        if reports or self._due(now):
            self._save(reports, now)
        self._tell()
        return more

    def _forget(self) -> None:
        """Drop what was kept of sources that are gone for good."""
        gone, self.streams.gone = self.streams.gone, []
        for name in gone:
            self.tracker.forget(name)
            self.counters.forget_source(name)
            self._dirty.discard(name)
        if gone:
            self._attempt(lambda: self.store.forget(gone))

    def wait(self, now: float) -> float:
        """Return the seconds until something is due that no source wakes us for; at most five."""
        times = [now + 5.0]
        times += [self._next_look(stream) for stream in self.streams.all() if stream.changed_at is not None]
        if (due := self.tracker.due()) is not None:
            times.append(due)
        if self._dirty:
            times.append(self._saved_at + SAVE_EVERY)
        return max(0.0, min(times) - now)

    def finish(self, now: float) -> None:
        """Look at everything as it stands, tell it and save: the end, or a single pass."""
        reports, self._crowded = self._crowded, []
        for stream in self.streams.all():
            if stream.changed_at is not None:
                reports += self._update(stream, now, settled=True)
        self._dirty |= {stream.source.name for stream in self.streams.all()}
        self._save(reports, now)
        self._tell()

    def reload(self, config: WatchConfig, library: Library) -> None:
        """Go on with another configuration and other cards."""
        self.config, self.library = config, library
        self.outlet.cards = library.card
        self.counters.know_cards((name, severity) for name, (_, severity, _) in library.pack.headers.items())
        for stream in self.streams.all():
            stream.attach(library)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _read(self, stream: Stream, now: float) -> bool:
        source, taken, data = stream.source, 0, b""
        stream.begin(now)
        if source.name not in self.counters.lines:
            self.counters.know_source(source.name)
        while taken < _TURN and (data := source.read()):
            taken += len(data)
            before = stream.lines
            self._feed(stream, data, now)
            if stream.crowded:
                self._crowded += self._update(stream, now, settled=False)
            self.counters.add_lines(source.name, stream.lines - before, len(data))
        for reason, count in source.lost():
            self.counters.add_dropped(source.name, reason, count)
            self.say(f"{source.name}: {reason}" + (f" ({count})" if count else ""))
        self.busy = self.busy or taken > _MUCH
        if taken:
            self._dirty.add(source.name)
        if not data:
            self._caught_up[source.name] = True
            if flood := self._floods.pop(source.name, None):
                flood.calm()
        if source.problem:
            self.say(source.problem if source.name in source.problem else f"{source.name}: {source.problem}")
        return taken >= _TURN

    def _feed(self, stream: Stream, data: bytes, now: float) -> None:
        """Feed a block; of one that only repeats, in a source that is far behind, no more than its torn ends."""
        name = stream.source.name
        behind = stream.source.lag() if self._caught_up.get(name) else 0
        if behind < self.config.max_behind // _BEHIND:
            stream.feed(data, now)
            return
        start, end = data.find(b"\n") + 1, data.rfind(b"\n") + 1
        flood = self._floods.setdefault(name, Flood())
        if start < end and flood.repeats(data[start:end], hexadecimal=behind > self.config.max_behind):
            stream.feed(data[:start], now)
            stream.skip(data[start:end])
            stream.feed(data[end:], now)
            self.counters.add_dropped(name, "flood", end - start)
        else:
            stream.feed(data, now)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _settles_at(self, stream: Stream) -> float:
        assert stream.changed_at is not None
        return min(stream.fed_at + self.config.settle, stream.changed_at + MAX_SETTLE)

    def _next_look(self, stream: Stream) -> float:
        """Return when a changed stream is to be looked at: at once if it moved, but not all the time."""
        earliest = self._look_after.get(stream.source.name, 0.0)
        return earliest if stream.moved else max(earliest, self._settles_at(stream))

    def _look(self, stream: Stream, now: float) -> list[Report]:
        """Look at a stream that has settled, or in which something final may stand."""
        if stream.changed_at is None or now < self._next_look(stream) or self._reads_the_past(stream):
            return []
        return self._update(stream, now, settled=now >= self._settles_at(stream))

    def _reads_the_past(self, stream: Stream) -> bool:
        """Whether the first reading of a source goes on; it is looked at when it has come to the end."""
        return stream.baseline and not self._caught_up.get(stream.source.name)

    def _update(self, stream: Stream, now: float, *, settled: bool) -> list[Report]:
        name, began = stream.source.name, self._cpu()
        findings = stream.findings(settled=settled)
        if stream.rebase and settled:
            stream.rebase = False
            self.tracker.rebase(name, findings)
        reports = self.tracker.update(name, findings, now, settled=settled, baseline=stream.baseline)
        if not self._reads_the_past(stream):
            stream.end_baseline()
        share = _BUSY_LOOK_SHARE if self.busy else _LOOK_SHARE
        self._look_after[name] = now + share * (self._cpu() - began)
        self.counters.set_records(name, *stream.records)
        return reports

    # -- saving and telling ------------------------------------------------------------------------------------------

    def _due(self, now: float) -> bool:
        waiting = bool(self._dirty or self._told or self.tracker.changed or self.tracker.removed)
        return waiting and now - self._saved_at >= SAVE_EVERY

    def _save(self, reports: list[Report], now: float) -> None:
        """Save the state of this moment with what is to be told. What cannot be saved is told nevertheless."""
        saved = {
            stream.source.name: Saved(stream.source.position(), stream.save())
            for stream in self.streams.all()
            if stream.source.name in self._dirty
        }
        self._saved_at = now
        tracker = self.tracker
        numbers = self._attempt(
            lambda: self.store.save(
                saved, now, changed=tracker.changed.values(), removed=tracker.removed, reports=reports, told=self._told
            )
        )
        if numbers is None:
            self.untold += [Pending(0, report) for report in reports]
            return
        self.untold += [Pending(number, report) for number, report in zip(numbers, reports, strict=True)]
        self._dirty.clear()
        self._told = []
        tracker.changed.clear()
        tracker.removed.clear()

    def _attempt(self, action: Callable[[], list[int] | None]) -> list[int] | None:
        try:
            return action()
        except StateError as error:
            self.say(str(error))
            return None

    def _tell(self) -> None:
        """Tell what is to be told, and note that it was: after a kill it need not be told again."""
        if not self.untold:
            return
        while self.untold:
            number, report = self.untold[0]
            self.outlet.tell(report.incident)
            self.counters.add_report(report.incident.state)
            if report.incident.state == "opened":
                self.counters.add_incident(report.incident.card, report.incident.severity, report.incident.source)
            if number:
                self._told.append(number)
            del self.untold[0]
        if self._attempt(lambda: self.store.save({}, 0.0, told=self._told)) is not None:
            self._told = []

    def keep_status(self, status: str) -> None:
        """Keep the status for `lmdiag status`."""
        try:
            self.store.set_meta("status", status)
        except StateError as error:
            self.say(str(error))

    def say(self, problem: str) -> None:
        """Tell a problem of the daemon's own, once."""
        if problem in self._said:
            return
        if len(self._said) > 1000:
            self._said.clear()
        self._said.add(problem)
        self.note(f"lmdiag: {visible(problem)}", "warning")

    def note(self, text: str, severity: str = "info") -> None:
        """Write a line about the daemon itself."""
        print(with_priority(severity, text) if self._journal else text, file=self._err, flush=True)
