"""Incidents over time: opened, repeated, resolved, and crash loops. Pure: time and findings come in, reports go out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from lmdiag.diagnose.diagnoser import Finding
from lmdiag.model import FAILURES, SEVERITIES, Incident, Loop
from lmdiag.watch.times import spread

LOOP_TIMES = 3
"""Failures of one cause that make a crash loop."""
LOOP_SECONDS = 1800.0
"""The time within which they must lie: systemd's and Kubernetes' back-off stay below ten minutes for each restart."""
_MAX_TIMES = 50
_MAX_CLOSED = 500


class Schedule(NamedTuple):
    """When an incident is reported again, and when it is taken for over; all in seconds."""

    remind: tuple[float, ...] = (300.0, 900.0, 3600.0, 14400.0, 86400.0)
    """Pauses between two reports of an incident that repeats; the last one stays."""
    quiet: float = 3600.0
    """How long it must not happen in a server that goes on."""
    quiet_down: float = 86400.0
    """How long where the server had died: that it says nothing more is no good sign."""
    severity: str = "warning"
    """The least one that is reported."""


class Report(NamedTuple):
    """What is to be told of an incident: its `state` says whether it opened, repeated or was resolved."""

    incident: Incident
    at: float
    """Unix time."""
    number: int = 0
    """Of the reports of this incident; the resolution has the number of the report before it."""


class Tracked(msgspec.Struct):
    """An incident that is or was open. It is saved as it stands, so that a restart goes on with it."""

    id: str
    source: str
    fingerprint: str
    incident: Incident
    opened_at: float
    last_at: float
    outcome: str
    life: int
    occurrences: int
    """All that the log has shown of it."""
    last_line: int = 0
    base: int = 0
    """Those of them that belong to an earlier incident."""
    count: int = 1
    open: bool = True
    reports: int = 0
    reported_count: int = 0
    reported_severity: str = ""
    """"": it was never reported."""
    next_report: float = 0.0
    times: list[float] = []
    """When the server failed of it: one entry for each life."""
    looping: bool = False
    service: str = ""
    passed: bool = False
    """A later life came up; in a crash loop that does not mean that it is over."""


class Tracker:
    """All incidents of the daemon. What changed since the last save is in `changed` and `removed`."""

    def __init__(self, schedule: Schedule, saved: Iterable[Tracked] = ()) -> None:
        self.schedule = schedule
        self._all: dict[tuple[str, str], Tracked] = {(item.source, item.fingerprint): item for item in saved}
        self._shown: dict[str, set[str]] = {}
        self.changed: dict[str, Tracked] = {}
        self.removed: set[str] = set()

    @property
    def incidents(self) -> list[Tracked]:
        """Those that are open, and the last ones that were, the newest first."""
        return sorted(self._all.values(), key=lambda item: -item.last_at)

    def open_reports(self) -> list[Report]:
        """Return the last word on each incident that is open and was reported, as it would be told to a newcomer."""
        return [
            self._report(item, "opened" if item.reports == 1 else "repeated", item.last_at)
            for item in self._all.values()
            if item.open and item.reported_severity
        ]

    def update(
        self,
        source: str,
        findings: Sequence[Finding],
        now: float,
        *,
        settled: bool,
        baseline: bool = False,
        serving: Mapping[str, int] = MappingProxyType({}),
    ) -> list[Report]:
        """Take what the log of a source shows at present; return what is to be told.

        Unless it has `settled`, more of the same failure may follow within moments: then only what is final counts.
        `baseline`: it is read for the first time, and what was over long ago is no news. `serving`: the first line of
        each service's newest life, of those that came up.
        """
        self._shown[source] = {finding.fingerprint for finding in findings}
        reports = []
        for finding in findings:
            if settled or finding.final:
                reports += self._take(source, finding, now, baseline=baseline)
        if settled:
            reports += self._superseded(source, findings, serving, now)
        return reports

    def rebase(self, source: str, findings: Sequence[Finding]) -> None:
        """Take what a source shows as what was known before: its lines are counted anew, and all that comes is news."""
        shown = {finding.fingerprint: (finding.life, finding.occurrences, finding.last_line) for finding in findings}
        for item in [item for item in self._all.values() if item.source == source]:
            item.life, item.occurrences, item.last_line = shown.get(item.fingerprint, (0, 0, 0))
            item.base = 0
            self._touch(item)

    def tick(self, now: float) -> list[Report]:
        """Return what is to be told because time has passed: reminders, and incidents that have gone quiet."""
        reports = []
        for item in [item for item in self._all.values() if item.open]:
            failed = item.outcome in FAILURES
            quiet = self.schedule.quiet_down if failed else self.schedule.quiet
            if now - item.last_at >= (min(quiet, LOOP_SECONDS) if item.passed else quiet):
                reports += self._close(item, now)
            else:
                reports += self._remind(item, now)
        return reports

    def due(self) -> float | None:
        """Return the time at which `tick` has something to do, or None."""
        times = [self._due(item) for item in self._all.values() if item.open]
        return min(times, default=None)

    def forget(self, source: str) -> None:
        """Take note that a source is not read any more: its closed incidents are among the first to be dropped."""
        self._shown.pop(source, None)

    # -- one finding -------------------------------------------------------------------------------------------------

    def _take(self, source: str, finding: Finding, now: float, *, baseline: bool) -> list[Report]:
        item = self._all.get((source, finding.fingerprint))
        if item is None:
            return self._open(source, finding, now, base=0, old=baseline and finding.over)
        again = finding.life > item.life or finding.occurrences > item.occurrences
        if not item.open and again and now - item.last_at < LOOP_SECONDS and item.reported_severity:
            return self._reopen(item, finding, now)
        if not item.open:
            return self._open(source, finding, now, base=item.occurrences, old=False) if again else []
        if again or finding.outcome != item.outcome:
            self._again(item, finding, now)
        elif finding.last_line > item.last_line:  # it goes on, as a stall does
            item.last_line, item.last_at = finding.last_line, now
            self._touch(item)
        item.passed = finding.over
        if finding.over and loop_of(item) is None:
            return self._close(item, now)
        return self._remind(item, now)

    def _open(self, source: str, finding: Finding, now: float, *, base: int, old: bool) -> list[Report]:
        """Open an incident; one that was over before anybody looked is told and closed at once, an `old` one not told."""
        incident = finding.build()
        earlier = self._all.get((source, finding.fingerprint))
        base = min(base, finding.occurrences - 1)
        item = Tracked(
            # a later incident of the same failure needs an id of its own
            id=incident.id if earlier is None else f"{incident.id}-{round(now):x}",
            source=source,
            fingerprint=finding.fingerprint,
            incident=incident,
            opened_at=now,
            last_at=now,
            outcome=finding.outcome,
            life=finding.life,
            occurrences=finding.occurrences,
            last_line=finding.last_line,
            base=base,
            count=finding.occurrences - base,
            open=not old,
            service=finding.service,
            times=spread(incident, 1 if earlier else incident.facts.restarts + 1, now),
        )
        if earlier is not None:
            self._remove(earlier)
        self._all[source, finding.fingerprint] = item
        self._touch(item)
        self._bound()
        if old:
            return []
        return [*self._remind(item, now), *(self._close(item, now) if finding.over else ())]

    def _reopen(self, item: Tracked, finding: Finding, now: float) -> list[Report]:
        """Go on with an incident that was over only for a while: a server that comes up and dies again is in a loop."""
        item.open, item.next_report = True, 0.0
        self._again(item, finding, now)
        item.passed = finding.over
        reports = self._remind(item, now)
        return [*reports, *(self._close(item, now) if finding.over and loop_of(item) is None else ())]

    def _again(self, item: Tracked, finding: Finding, now: float) -> None:
        """Count what has happened since; the text of the newest occurrence is the one to show."""
        more = finding.occurrences - item.occurrences
        item.count += more if more > 0 else int(finding.life > item.life)
        if self._reportable(item) or finding.outcome != item.outcome:  # a client's mistakes may come by the thousand
            item.incident = finding.build()
        if finding.life > item.life and finding.outcome in FAILURES:
            item.times = [*item.times, *spread(item.incident, 1, now)][-_MAX_TIMES:]
        item.outcome = finding.outcome
        item.life, item.occurrences, item.last_line = finding.life, finding.occurrences, finding.last_line
        item.last_at = now
        self._touch(item)

    def _superseded(
        self, source: str, findings: Sequence[Finding], serving: Mapping[str, int], now: float
    ) -> list[Report]:
        """Close what the log does not show any more, where its server has failed of something else or come up since."""
        failed: dict[str, int] = {}
        for finding in findings:
            if finding.outcome in FAILURES:
                failed[finding.service] = max(finding.life, failed.get(finding.service, 0))
        reports = []
        for item in [item for item in self._all.values() if item.source == source and item.open]:
            gone = item.fingerprint not in self._shown[source]
            if gone and (failed.get(item.service, -1) >= item.life or serving.get(item.service, 0) > item.life):
                reports += self._close(item, now)
        return reports

    # -- reports -----------------------------------------------------------------------------------------------------

    def _remind(self, item: Tracked, now: float) -> list[Report]:
        """Report an open incident if it is new, has become worse, has begun to loop, or if it is time to tell again."""
        loop = loop_of(item)
        severity = item.incident.severity
        level = SEVERITIES.index(severity)
        if not self._reportable(item):
            return []
        worse = not item.reported_severity or level > SEVERITIES.index(item.reported_severity)
        begins = loop is not None and not item.looping
        if not worse and not begins and (item.count <= item.reported_count or now < item.next_report):
            return []
        state = "repeated" if item.reports else "opened"
        pauses = self.schedule.remind
        item.next_report = now + pauses[min(item.reports, len(pauses) - 1)]
        item.reports += 1
        item.reported_count, item.reported_severity, item.looping = item.count, severity, loop is not None
        self._touch(item)
        return [self._report(item, state, now)]

    def _reportable(self, item: Tracked) -> bool:
        return SEVERITIES.index(item.incident.severity) >= SEVERITIES.index(self.schedule.severity)

    def _close(self, item: Tracked, now: float) -> list[Report]:
        item.open = False
        self._touch(item)
        return [self._report(item, "resolved", now)] if item.reported_severity else []

    def _report(self, item: Tracked, state: str, now: float) -> Report:
        shown = item.incident._replace(id=item.id, state=state, occurrences=item.count, loop=loop_of(item))
        return Report(shown, now, item.reports)

    def _due(self, item: Tracked) -> float:
        quiet = self.schedule.quiet_down if item.outcome in FAILURES else self.schedule.quiet
        over = item.last_at + (min(quiet, LOOP_SECONDS) if item.passed else quiet)
        return min(over, item.next_report) if item.reports and item.count > item.reported_count else over

    # -- bounds ------------------------------------------------------------------------------------------------------

    def _touch(self, item: Tracked) -> None:
        self.changed[item.id] = item

    def _remove(self, item: Tracked) -> None:
        del self._all[item.source, item.fingerprint]
        self.changed.pop(item.id, None)
        self.removed.add(item.id)

    def _bound(self) -> None:
        """Drop the oldest closed ones, save those that a log still shows: they would open again."""
        closed = [item for item in self._all.values() if not item.open]
        for item in sorted(closed, key=lambda item: item.last_at)[: max(0, len(closed) - _MAX_CLOSED)]:
            if item.fingerprint not in self._shown.get(item.source, ()):
                self._remove(item)


def loop_of(item: Tracked) -> Loop | None:
    """Return the crash loop that the newest failures make."""
    times = [time for time in item.times if time >= item.times[-1] - LOOP_SECONDS]
    return Loop(len(times), round(times[-1] - times[0], 1)) if len(times) >= LOOP_TIMES else None
