"""The daemon's round: read what is new, look at what it shows, save, tell. Time comes in; nothing here waits."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TextIO

from lmdiag.errors import StateError
from lmdiag.report.control import visible
from lmdiag.watch.handover import Handover
from lmdiag.watch.notify import with_priority
from lmdiag.watch.store import Pending, Saved

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.forward.forwarder import Forwarder
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
        forwarder: Forwarder | None = None,
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
        """Reports that are not printed yet."""
        self.handover = Handover(forwarder, self.untold)
        self._printed: list[int] = []
        self._told: list[int] = []
        self._err = err
        self._said: dict[str, str] = {}  # source, or "": what was last said of it
        self._cpu = cpu
        self._pulse = pulse
        self._journal = journal
        self._reports: list[Report] = []  # to be saved
        self.told_at = 0.0
        """When something was last told."""
        self.busy = False
        """Whether so much came in the last round that it is better to rest a little before the next."""
        self._saved_at = 0.0
        self._dirty: set[str] = set()
        counters.know_cards((name, severity) for name, (_, severity, _) in library.pack.headers.items())

    # -- the round ---------------------------------------------------------------------------------------------------

    def step(self, now: float, names: Collection[str] | None = None) -> bool:
        """Go round once: read the sources of these names (None: all), and do what is due.

        Returns whether there is more to read at once.
        """
        self._forget()
        self.busy = False
        more = False
        for stream in self.streams.selected(names):
            self._pulse()
            if self._guarded(stream, self._read, now):
                more = True
                self.streams.again(stream.source.name)
        for stream in self.streams.all():
            self._guarded(stream, self._look, now)
        self._reports += self.tracker.tick(now)
        if self._reports or self._due(now):
            self._save(now)
        self._tell(now)
        return more

    def _guarded(self, stream: Stream, action: Callable[[Stream, float], bool], now: float) -> bool:
        """Do it, and go on if it fails: one log that lmdiag cannot digest must not hide the others."""
        try:
            return action(stream, now)
        except Exception as error:  # noqa: BLE001 (the loop's edge)
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.say(
                stream.source.name,
                f"{stream.source.name}: a defect of lmdiag, please report it: {error!r} at {where.filename}:{where.lineno}; "
                "what was open in this log is forgotten",
            )
            self.counters.add_dropped(stream.source.name, "unreadable", 1)
            stream.start_over()
            self.tracker.rebase(stream.source.name, ())
            return False

    def _forget(self) -> None:
        """Drop what was kept of sources that are gone for good."""
        gone, self.streams.gone = self.streams.gone, []
        for name in gone:
            self.tracker.forget(name)
            self.counters.forget_source(name)
            self._dirty.discard(name)
            self._said.pop(name, None)

    def wait(self, now: float) -> float:
        """Return the seconds until something is due that no source wakes us for; at most five."""
        times = [now + 5.0]
        times += [self._next_look(stream) for stream in self.streams.all() if stream.changed_at is not None]
        if (due := self.tracker.due()) is not None:
            times.append(due)
        if self._dirty:
            times.append(self._saved_at + SAVE_EVERY)
        if (due := self.handover.due) is not None:
            times.append(due)
        return max(0.0, min(times) - now)

    def finish(self, now: float) -> None:
        """Look at everything as it stands, tell it and save: the end, or a single pass."""
        for stream in self.streams.all():
            if stream.changed_at is not None:
                self._guarded(stream, self._look_now, now)
        self._dirty |= {stream.source.name for stream in self.streams.all() if stream.since is not None}
        self._save(now)
        self._tell(now)

    def reload(self, config: WatchConfig, library: Library) -> None:
        """Go on with another configuration and other cards."""
        self.config, self.library = config, library
        self.handover.reload()
        self.outlet.cards = library.card
        self.counters.know_cards((name, severity) for name, (_, severity, _) in library.pack.headers.items())
        for stream in self.streams.all():
            stream.attach(library)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _read(self, stream: Stream, now: float) -> bool:
        source, taken, data = stream.source, 0, b""
        if stream.since is None:
            self._begin(stream, now)
        if source.name not in self.counters.lines:
            self.counters.know_source(source.name)
        while taken < _TURN and (data := source.read()):
            taken += len(data)
            before = stream.lines
            self._feed(stream, data, now)
            if stream.crowded and stream.baseline:
                stream.trim()  # the past is judged by how it ended
            elif stream.crowded:
                self._update(stream, now, settled=False)
            self.counters.add_lines(source.name, stream.lines - before, len(data))
        for reason, count in source.lost():
            self.counters.add_dropped(source.name, reason, count)
            self.note(
                f"lmdiag: {visible(source.name)}: lost: {visible(reason)}" + (f" ({count})" if count else ""), "warning"
            )
        self.busy = self.busy or taken > _MUCH
        if taken:
            self._dirty.add(source.name)
        if not data:
            stream.caught_up = True
            stream.flood.calm()
            if stream.changed_at is None and stream.baseline:
                stream.end_baseline()  # it told nothing of the past
                self._dirty.add(source.name)
        problem = source.problem
        self.say(source.name, problem if not problem or source.name in problem else f"{source.name}: {problem}")
        return taken >= _TURN

    def _begin(self, stream: Stream, now: float) -> None:
        """Take up a source. One whose lines are counted anew has nothing in common with what was known of it."""
        if stream.fresh:
            self.tracker.rebase(stream.source.name, stream.findings(settled=False) if stream.lines else ())
        stream.begin(now)
        self._dirty.add(stream.source.name)  # also a log without a line has a place to go on from

    def _feed(self, stream: Stream, data: bytes, now: float) -> None:
        """Feed a block; of one that only repeats, in a source that is far behind, no more than its torn ends."""
        name = stream.source.name
        behind = stream.source.lag() if stream.caught_up else 0
        if behind < self.config.max_behind // _BEHIND:
            stream.feed(data, now)
            return
        start, end = data.find(b"\n") + 1, data.rfind(b"\n") + 1
        if start < end and stream.flood.repeats(data[start:end], hexadecimal=behind > self.config.max_behind):
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
        return stream.look_after if stream.moved else max(stream.look_after, self._settles_at(stream))

    def _look(self, stream: Stream, now: float) -> bool:
        """Look at a stream that has settled, or in which something final may stand.

        The first reading of the past is looked at when it has come to the end.
        """
        due = stream.changed_at is not None and now >= self._next_look(stream)
        if due and (stream.caught_up or not stream.baseline):
            self._update(stream, now, settled=now >= self._settles_at(stream))
        return False

    def _look_now(self, stream: Stream, now: float) -> bool:
        self._update(stream, now, settled=True)
        return False

    def _update(self, stream: Stream, now: float, *, settled: bool) -> None:
        name, began = stream.source.name, self._cpu()
        findings = stream.findings(settled=settled)
        self._reports += self.tracker.update(
            name, findings, now, settled=settled, baseline=stream.baseline, serving=stream.serving
        )
        if stream.caught_up:
            stream.end_baseline()
        share = _BUSY_LOOK_SHARE if self.busy else _LOOK_SHARE
        stream.look_after = now + share * (self._cpu() - began)
        self.counters.set_records(name, *stream.records)

    # -- saving and telling ------------------------------------------------------------------------------------------

    def _due(self, now: float) -> bool:
        waiting = bool(self._dirty or self._told or self.tracker.changed or self.tracker.removed)
        return waiting and now - self._saved_at >= SAVE_EVERY

    def _save(self, now: float) -> None:
        """Save the state of this moment with what is to be told. What cannot be saved is told nevertheless."""
        saved = {
            stream.source.name: Saved(stream.source.position(), stream.save())
            for stream in self.streams.all()
            if stream.source.name in self._dirty
        }
        self._saved_at = now
        tracker, reports = self.tracker, self._reports
        self._reports = []
        numbers = self._attempt(
            lambda: self.store.save(
                saved, now, changed=tracker.changed.values(), removed=tracker.removed, reports=reports, told=self._told
            )
        )
        pending = [
            Pending(number, report) for number, report in zip(numbers or [0] * len(reports), reports, strict=True)
        ]
        self.untold += pending
        self.handover.add(pending)
        if numbers is None:
            return
        self._dirty.clear()
        self._told = []
        tracker.changed.clear()
        tracker.removed.clear()

    def _attempt(self, action: Callable[[], list[int]]) -> list[int] | None:
        try:
            found = action()
        except StateError as error:
            self.say("", str(error))
            return None
        self.say("", "")
        return found

    def _tell(self, now: float) -> None:
        """Tell what is to be told, and note that it was: after a kill it need not be told again."""
        self.say("outbox", self.handover.step(now, self._open_reports))
        self._print(now)
        unsent = self.handover.numbers
        self._told += [number for number in self._printed if number and number not in unsent]
        self._printed = [number for number in self._printed if number in unsent]
        if self._told and self._attempt(lambda: self.store.save({}, 0.0, told=self._told)) is not None:
            self._told = []

    def _open_reports(self) -> Sequence[Report] | None:
        """Return what is open, if all is known of that: every log has been looked at."""
        looked_at = all(one.caught_up and one.changed_at is None for one in self.streams.all())
        return self.tracker.open_reports() if looked_at else None

    def _print(self, now: float) -> None:
        if self.untold:
            self.told_at = now
        while self.untold:
            number, report = self.untold[0]
            self.outlet.tell(report.incident)
            self.counters.add_report(report.incident.state)
            if report.incident.state == "opened":
                self.counters.add_incident(report.incident.card, report.incident.severity, report.incident.source)
            self._printed.append(number)
            del self.untold[0]

    def keep_status(self, status: str) -> None:
        """Keep the status for `lmdiag status`."""
        try:
            self.store.set_meta("status", status)
        except StateError as error:
            self.say("", str(error))

    def say(self, about: str, problem: str) -> None:
        """Tell a problem of a source, or ("") of the daemon, when it begins or has become another one."""
        if problem and self._said.get(about) != problem:
            self.note(f"lmdiag: {visible(problem)}", "warning")
        if problem:
            self._said[about] = problem
        else:
            self._said.pop(about, None)

    def note(self, text: str, severity: str = "info") -> None:
        """Write a line about the daemon itself."""
        print(with_priority(severity, text) if self._journal else text, file=self._err, flush=True)
