"""The daemon's numbers: what it counts, and what it knows of itself each second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from lmdiag.forward.status import SinkStatus
from lmdiag.model import SEVERITIES, Loop

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SERIES_LIMIT = 2000
"""How many series a map holds; what would be more is counted together, under OTHER."""
OTHER = "other"
NO_CARD = "none"
"""What stands for the card of an incident without one: Prometheus takes an empty label for a missing one."""
NO_CARD_SEVERITY = "error"
FILE_REASONS = ("flood", "truncated", "truncated after it was rotated", "rotated away", OTHER)
JOURNAL_REASONS = (
    "flood",
    "entry over 8 MiB",
    "end of a line over 1 MiB",
    "not an entry of the journal",
    "journal vacuumed",
    "suppressed by journald",
    OTHER,
)
"""Why something of a file or of a journal is dropped; their series are born at 0. What names a file is OTHER here."""
REPORT_STATES = ("opened", "repeated", "resolved")


class SourceStatus(NamedTuple):
    """One source, as it is now. Sizes are in bytes, times in unix seconds."""

    name: str
    kind: str
    problem: str = ""
    """Why it cannot be read; "" while it can."""
    required: bool = False
    generation: int = 0
    offset: int = 0
    lag: int = 0
    lines: int = 0
    bytes: int = 0
    lines_per_second: float = 0.0
    last_line_at: float | None = None
    """None: no line has been read yet."""
    open_incidents: int = 0


class IncidentStatus(NamedTuple):
    """One incident over time, in short. Its texts are redacted and may hold anything a log holds."""

    id: str
    state: str
    severity: str
    card: str | None
    title: str
    source: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks a status for
    opened_at: float
    last_at: float
    outcome: str
    loop: Loop | None = None


class DaemonStatus(NamedTuple):
    """What the daemon says of itself; made each second, and kept in the state for `lmdiag status`."""

    pid: int
    version: str
    started_at: float
    now: float
    sources: tuple[SourceStatus, ...] = ()
    incidents: tuple[IncidentStatus, ...] = ()
    """Newest first, at most 50."""
    queue: int = 0
    """Reports that are not printed yet."""
    dropped: tuple[tuple[str, str, int], ...] = ()
    """(source, reason, how many bytes or entries)."""
    config_problem: str = ""
    ready: bool = False
    """Every source has been read to its end once."""
    sinks: tuple[SinkStatus, ...] = ()
    """Where reports are forwarded to."""


class Counters:
    """What has been counted since the start. One thread adds; others read copies of the maps.

    A series that begins at 1 is a change that Prometheus' `increase()` does not see, so what is known beforehand
    begins at 0: `know_cards` and `know_source`.
    """

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.records: dict[str, int] = {}
        self.tracebacks: dict[str, int] = {}
        self.dropped: dict[tuple[str, str], int] = {}
        self.incidents: dict[tuple[str, str], int] = {}
        """(source, severity) to how many were reported as opened."""
        self.cards: dict[str, int] = {NO_CARD: 0}
        self.severities: dict[str, str] = {NO_CARD: NO_CARD_SEVERITY}
        """Of each card in `cards`, as the pack has it: an incident's own may be lower, and would be a new series."""
        self.reports: dict[str, int] = dict.fromkeys(REPORT_STATES, 0)
        self.muted_patterns = 0
        """How often slow patterns of cards were stopped or left out; the library counts."""
        self.wakeups = 0
        self.last_step: float | None = None
        """When the loop last went round, in unix seconds."""

    def know_cards(self, cards: Iterable[tuple[str, str]]) -> None:
        """Let the series of cards (id, severity) begin at 0; also after a reload, which may have brought new ones."""
        for card, severity in cards:
            if card in self.cards or len(self.cards) < SERIES_LIMIT:
                self.cards.setdefault(card, 0)
                self.severities[card] = severity

    def know_source(self, source: str) -> None:
        """Let the series of a source begin at 0."""
        for counts in (self.lines, self.bytes, self.records, self.tracebacks):
            _add(counts, source, 0)
        for reason in JOURNAL_REASONS if source.startswith("journal:") else FILE_REASONS:
            _add_pair(self.dropped, (source, reason), 0)
        for severity in SEVERITIES:
            _add_pair(self.incidents, (source, severity), 0)

    def forget_source(self, source: str) -> None:
        """Drop the series of a source that is gone for good, so that nodes with many short-lived containers stay small."""
        for counts in (self.lines, self.bytes, self.records, self.tracebacks):
            counts.pop(source, None)
        for pairs in (self.dropped, self.incidents):
            for key in [key for key in pairs if key[0] == source]:
                del pairs[key]

    def add_lines(self, source: str, lines: int, size: int) -> None:
        """Count a block that was read: its lines, and its size in bytes."""
        _add(self.lines, source, lines)
        _add(self.bytes, source, size)

    def set_records(self, source: str, records: int, tracebacks: int) -> None:
        """Note how many records and tracebacks the lines of a source were put together to, since it was first read."""
        for counts, count in ((self.records, records), (self.tracebacks, tracebacks)):
            if source in counts or len(counts) < SERIES_LIMIT:
                counts[source] = count

    def add_dropped(self, source: str, reason: str, count: int) -> None:
        """Count bytes or entries that were not read or not looked at; as 1 where their number is not known (0)."""
        known = reason in FILE_REASONS or reason in JOURNAL_REASONS
        _add_pair(self.dropped, (source, reason if known else OTHER), max(count, 1))

    def add_incident(self, card: str | None, severity: str, source: str) -> None:
        """Count an incident that was opened, by its source and under its card."""
        _add_pair(self.incidents, (source, severity), 1)
        card = card or NO_CARD
        if card not in self.cards:
            if len(self.cards) >= SERIES_LIMIT:
                card = OTHER
            self.severities.setdefault(card, severity)
        self.cards[card] = self.cards.get(card, 0) + 1

    def add_report(self, state: str) -> None:
        """Count a report that was given out; `state` is opened, repeated or resolved."""
        _add(self.reports, state, 1)

    def add_wakeup(self) -> None:
        """Count a time that the loop was woken."""
        self.wakeups += 1

    def stepped(self, now: float) -> None:
        """Note that the loop has gone round."""
        self.last_step = now


def _add(counts: dict[str, int], key: str, count: int) -> None:
    if key in counts:
        counts[key] += count
    else:
        key = key if len(counts) < SERIES_LIMIT else OTHER
        counts[key] = counts.get(key, 0) + count


def _add_pair(counts: dict[tuple[str, str], int], key: tuple[str, str], count: int) -> None:
    """Count by source and what (of which there are few): beyond the bound the source is given up."""
    if key not in counts and len(counts) >= SERIES_LIMIT:
        key = (OTHER, key[1])
    counts[key] = counts.get(key, 0) + count


def status_to_json(status: DaemonStatus) -> str:
    """Write a status as one JSON object, as the state keeps it."""
    from lmdiag.report.jsonl import dumps

    return dumps(status_object(status))


def status_object(status: DaemonStatus) -> dict[str, Any]:
    """Make a status a JSON object; what its keys mean is said by the fields of the same names."""
    return {
        **status._asdict(),
        "sources": [source._asdict() for source in status.sources],
        "incidents": [
            {**incident._asdict(), "loop": incident.loop._asdict() if incident.loop else None}
            for incident in status.incidents
        ],
        "dropped": [{"source": source, "reason": reason, "count": count} for source, reason, count in status.dropped],
        "sinks": [{**sink._asdict(), "results": dict(sink.results), "lost": dict(sink.lost)} for sink in status.sinks],
    }


def status_from_json(text: str) -> DaemonStatus:
    """Read what `status_to_json` wrote, also that of an older or newer release.

    Keys that are not known are left out, missing ones have their default. Raises ValueError for anything else.
    """
    import json

    data = _object(json.loads(text))
    return DaemonStatus(
        **_plain(DaemonStatus, data),
        sources=tuple(SourceStatus(**_plain(SourceStatus, item)) for item in _objects(data, "sources")),
        incidents=tuple(
            IncidentStatus(**_plain(IncidentStatus, item), loop=_loop(item)) for item in _objects(data, "incidents")
        ),
        dropped=tuple(_dropped(item) for item in _objects(data, "dropped")),
        sinks=tuple(_sink(item) for item in _objects(data, "sinks")),
    )


_TYPES: dict[object, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (int, float),
    bool: (bool,),
    str | None: (str, type(None)),
    float | None: (int, float, type(None)),
}
"""The types of fields that are read as they are, and those that JSON may give for them."""


def _plain(kind: type[Any], data: dict[str, Any]) -> dict[str, Any]:
    """Take the fields that need no conversion, once their types are right and no field without a default is missing."""
    fields = {name: hint for name, hint in get_type_hints(kind).items() if hint in _TYPES}
    values = {name: data[name] for name in fields if name in data}
    for name, value in values.items():
        if type(value) not in _TYPES[fields[name]]:
            raise ValueError(f"{kind.__name__}.{name} is of type {type(value).__name__}")
    if missing := [name for name in fields if name not in values and name not in kind._field_defaults]:
        raise ValueError(f"{kind.__name__} lacks {', '.join(missing)}")
    return values


def _loop(item: dict[str, Any]) -> Loop | None:
    loop = item.get("loop")
    return None if loop is None else Loop(**_plain(Loop, _object(loop)))


def _sink(item: dict[str, Any]) -> SinkStatus:
    plain = _plain(SinkStatus, item)
    return SinkStatus(**plain, results=_pairs(item, "results"), lost=_pairs(item, "lost"))


def _pairs(item: dict[str, Any], key: str) -> tuple[tuple[str, int], ...]:
    pairs = tuple(_object(item.get(key, {})).items())
    if not all(type(count) is int for _, count in pairs):
        raise ValueError(f"{key} counts what is no number")
    return pairs


def _dropped(item: dict[str, Any]) -> tuple[str, str, int]:
    source, reason, count = (item.get(key) for key in ("source", "reason", "count"))
    if not (isinstance(source, str) and isinstance(reason, str) and isinstance(count, int)):
        raise ValueError("dropped is not of source, reason and count")  # noqa: TRY004
    return source, reason, count


def _objects(data: dict[str, Any], key: str) -> Sequence[dict[str, Any]]:
    items = data.get(key, [])
    if not isinstance(items, list):
        raise ValueError(f"{key} is no list")  # noqa: TRY004 (what is wrong is the text, for which ValueError stands)
    return [_object(item) for item in items]


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("no JSON object where one belongs")  # noqa: TRY004
    return value
