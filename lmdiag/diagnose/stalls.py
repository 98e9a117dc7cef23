"""Finds that a server works no more though it logs no error: requests are there, and no tokens come.

Three signs of it, each of which must last; a statistics line with tokens in it, or without requests, ends them all.

- Statistics lines with requests and without tokens. V0 up to 0.6.4 and V1 up to 0.8 write them at INFO always. Since then an
  engine that made no tokens in two intervals counts as idle, whatever waits in it, and its lines are written at DEBUG only: at
  INFO a stall begins with a single such line, and that alone is no proof, since clients may have given up.
- Behind that single line, requests that go on to arrive (`Added request`) while no engine has any statistics to write.
- "No available shared memory broadcast block found": with more than one worker process, one of them does not answer. At INFO from
  0.11 on. While the server starts, it may compile or warm up kernels for minutes.

An engine process that is silent shows as the first sign: the API server writes the lines, with the last numbers it was told.
"""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.model import Record
from lmdiag.parse.progress import ALL, Sign, read_sign

LASTING = 180.0
"""Seconds that a stall lasts before it is one: the prefill of a very long prompt makes no tokens for a minute or two."""
STARTING = 600.0
"""The same for workers that do not answer while the server starts."""
_MAX_GAP = 180.0
"""Seconds between two signs beyond which they do not belong together."""
_LEAST = {"stalled": 4, "broadcast": 3}
_MAX_OPEN = 256
_MAX_PAST = 8
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAY = 86_400.0
_STAMP = lazy(r"(?:\d{4}-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)")
_EPOCH = lazy(r"(\d{9,10})(?:\d{3})?(?:\.\d+)?$")


class Stall(NamedTuple):
    """A stretch of time without progress."""

    first: Record
    last: Record
    text: str
    """The words of its last sign."""
    over: bool
    """The engine went on afterwards."""
    starting: bool
    """The server had not come up when it began."""
    number: int
    """How many of its kind this life has seen, with it."""


class _Stretch:
    """Signs of one kind in a row."""

    def __init__(self, record: Record, text: str, *, starting: bool) -> None:
        self.first = self.last = record
        self.text = text
        self.time = record.time or ""
        self.starting = starting
        self.signs = 1
        self.seconds = 0.0
        self.alone = True
        """No other engine has told of its work since."""

    def add(self, record: Record, seconds: float) -> None:
        self.signs += 1
        self.seconds += seconds
        self.last, self.time = record, record.time or ""

    def lasts(self, kind: str) -> bool:
        return self.signs >= _LEAST[kind] and self.seconds >= (STARTING if self.starting else LASTING)


class Stalls:
    """Follows the progress of one life of a server. Bounded: it keeps the open stretches and the last few that are over."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str], _Stretch] = {}
        self._past: list[Stall] = []
        self._ended = dict.fromkeys(_LEAST, 0)
        self._serving = False

    def started(self) -> None:
        """The server has come up: what went before is over."""
        self._end(ALL)
        self._serving = True

    def note(self, record: Record) -> None:
        """Take a record, of any kind. Records of one place and one second are one: each line is looked at."""
        if record.time is None or record.level not in ("INFO", "DEBUG"):
            return
        for line in record.text.split("\n"):
            sign = read_sign(record.file, line, record.origin.process)
            if sign is not None:
                self._take(sign, line, record)

    def _take(self, sign: Sign, line: str, record: Record) -> None:
        if sign.kind == "arrival":
            self._arrival(record)
        elif sign.kind == "moving":
            self._serving = True
            self._end(sign.engine)
        else:
            self._serving = self._serving or sign.kind == "stalled"
            process = record.origin.process or "" if sign.kind == "broadcast" else ""
            self._stop(sign, process, line, record)

    def _stop(self, sign: Sign, process: str, line: str, record: Record) -> None:
        where = (sign.kind, sign.engine, process)
        stretch = self._open.get(where)
        seconds = seconds_between(stretch.time, record.time or "") if stretch else None
        gap = max(_MAX_GAP, 3.0 * sign.interval)
        if stretch is not None and seconds is not None and (seconds <= gap or stretch.lasts(sign.kind)):
            stretch.add(record, seconds)
            stretch.text = line
        elif len(self._open) < _MAX_OPEN or where in self._open:
            self._open[where] = _Stretch(record, line, starting=not self._serving)

    def _arrival(self, record: Record) -> None:
        """A request that comes in makes a working engine write statistics."""
        for (kind, _, _), stretch in self._open.items():
            seconds = seconds_between(stretch.time, record.time or "")
            if kind == "stalled" and stretch.alone and seconds is not None and seconds <= _MAX_GAP:
                stretch.add(record, seconds)

    def _end(self, engine: str) -> None:
        for where, stretch in list(self._open.items()):
            stretch.alone = False
            if engine in (where[1], ALL):
                del self._open[where]
                if stretch.lasts(where[0]):
                    self._ended[where[0]] += 1
                    self._past = [*self._past[1 - _MAX_PAST :], _stall(stretch, self._ended[where[0]], over=True)]

    def found(self) -> list[Stall]:
        """Return the stalls that lasted: those that go on, statistics before broadcasts, then the past ones, newest first."""
        going = [(where, stretch) for where, stretch in self._open.items() if stretch.lasts(where[0])]
        going.sort(key=lambda item: (item[0][0] != "stalled", item[1].first.origin.first_line))
        stalls = [_stall(stretch, self._ended[where[0]] + 1, over=False) for where, stretch in going]
        return [*stalls, *reversed(self._past)]


def _stall(stretch: _Stretch, number: int, *, over: bool) -> Stall:
    return Stall(stretch.first, stretch.last, stretch.text, over, stretch.starting, number)


def seconds_between(first: str, last: str) -> float | None:
    """Return the seconds from one record's time to a later one's, or None where the times cannot be read.

    vLLM writes no year: the later time is the next one that fits, over the turn of a year, leap or not. The year and the
    zone of other formats are not looked at; two records of one logger have the same.
    """
    epochs = _EPOCH.match(first), _EPOCH.match(last)
    if epochs[0] and epochs[1]:
        return max(0.0, float(epochs[1][1]) - float(epochs[0][1])) if epochs[1][1] >= epochs[0][1] else None
    start, end = _moment(first), _moment(last)
    if start is None or end is None:
        return None
    found = [
        (end[0] + end_leap - start[0] - start_leap + turn) * _DAY + end[1] - start[1]
        for start_leap, end_leap, turn in _years(start[2], end[2])
    ]
    return min((seconds for seconds in found if seconds >= 0), default=None)


def _years(start_month: int, end_month: int) -> list[tuple[int, int, int]]:
    """The leap days before either moment, and the days of the years between them: in one year, or over its turn."""
    leap = (int(start_month > 2), int(end_month > 2))
    return [(0, 0, 0), (*leap, 0), (0, 0, 365), (leap[0], 0, 366), (0, leap[1], 365)]


def _moment(time: str) -> tuple[int, float, int] | None:
    """The day of a year without a leap day, the second of the day, the month."""
    hit = _STAMP.match(time)
    if hit is None or not 1 <= int(hit[1]) <= 12:
        return None
    month, day, hour, minute, second = (int(part) for part in hit.groups())
    return _DAYS_BEFORE[month - 1] + day, hour * 3600.0 + minute * 60.0 + second, month
