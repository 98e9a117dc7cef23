"""The moments that a person names on the command line: `--since`, `--until` and `--last`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from lmdiag.errors import UsageError

DAY = 86_400.0
_HALF_A_YEAR = 182 * DAY
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY}
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([smhd])(?: ago)?", re.ASCII)
_CLOCK = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?", re.ASCII)
_SHORT = re.compile(r"(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?", re.ASCII)
_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?)? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_FORMS = '"2026-12-01 02:00", "2026-12-01T02:00:00Z", "12-01 02:00:00", "02:00" or "10m" (ago)'
FARTHEST_ZONE = 14 * 3600.0
"""Seconds that a time without a zone may lie away."""
_LEAP = 8
"""Years that may lie between two 29ths of February: 1896 to 1904, 2096 to 2104."""


class When(NamedTuple):
    """A moment as it was named. Without a year it is another one in each log, see `in_log`."""

    text: str
    seconds: float
    """Unix time; without a year, as it is now."""
    short: tuple[int, ...] = ()
    """Month, day, hour, minute, second of a moment without a year."""
    doubt: float = 0.0
    """How many seconds it may lie away, because it has no zone and the log may have been written in another one."""

    def in_log(self, latest: float) -> float:
        """Return the unix time that is meant in a log that ends before `latest`.

        Without a year it is the newest such moment, but in a log that ended half a year before that one, the log's newest.
        """
        if self.short and self.seconds - latest > _HALF_A_YEAR:
            return newest_year(self.short, latest) or self.seconds
        return self.seconds


def read_when(text: str, flag: str, now: float) -> When:
    """Read a moment; `now` is unix time. A moment without a zone is local time. Raises UsageError, which names the flag."""
    given = text.strip()
    if hit := _AGO.fullmatch(given):
        return When(text, now - float(hit[1]) * _UNITS[hit[2]])
    try:
        found = _clock(given, now) or _short(given, now) or _date(given)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None:
        raise UsageError(f"{flag} {text!r} is no moment; write for example {_FORMS}")
    return found


def read_duration(text: str, flag: str) -> float:
    """Read "30s", "10m", "2h" or "1d" as seconds. Raises UsageError, which names the flag."""
    hit = _AGO.fullmatch(text.strip())
    seconds = float(hit[1]) * _UNITS[hit[2]] if hit and not text.strip().endswith("ago") else 0.0
    if not seconds:
        raise UsageError(f'{flag} {text!r} is no duration; write for example "30s", "10m", "2h" or "1d"')
    return seconds


def newest_year(short: tuple[int, ...], latest: float) -> float | None:
    """Return the unix time of month, day, hour, minute, second in the latest year that does not put it after `latest`."""
    newest = datetime.fromtimestamp(latest).year
    for year in range(newest, newest - _LEAP - 1, -1):
        try:
            found = datetime(year, *short).timestamp()  # type: ignore[arg-type]
        except (ValueError, OverflowError):  # the 29th of February, or no date at all
            continue
        if found <= latest:
            return found
    return None


def unix_time(parts: tuple[int, ...], zone: str) -> float:
    """Return the unix time of year, month, day, hour, minute, second; "" is the zone of this machine.

    An hour that the clocks go through twice is taken for the first of the two. Raises ValueError for what is no date.
    """
    return datetime(*parts, tzinfo=_zone(zone)).timestamp()  # type: ignore[arg-type,misc]


def local_text(seconds: float) -> str:
    """Write a unix time as a person types it, in local time."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


def _zone(text: str) -> timezone | None:
    if text in ("", "Z"):
        return timezone.utc if text else None  # noqa: UP017 - the alias is no type
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _clock(text: str, now: float) -> When | None:
    hit = _CLOCK.fullmatch(text)
    if hit is None:
        return None
    today = datetime.fromtimestamp(now)
    moment = today.replace(hour=int(hit[1]), minute=int(hit[2]), second=int(hit[3] or 0), microsecond=0, fold=0)
    if moment.timestamp() > now:
        moment -= timedelta(days=1)
    return When(text, moment.timestamp(), doubt=FARTHEST_ZONE)


def _short(text: str, now: float) -> When | None:
    hit = _SHORT.fullmatch(text)
    if hit is None:
        return None
    short = tuple(int(part or 0) for part in hit.groups())
    seconds = newest_year(short, now + DAY)
    return None if seconds is None else When(text, seconds, short, FARTHEST_ZONE)


def _date(text: str) -> When | None:
    hit = _DATE.fullmatch(text)
    if hit is None:
        return None
    *parts, zone = hit.groups()
    seconds = unix_time(tuple(int(part or 0) for part in parts), zone or "")
    return When(text, seconds, doubt=0.0 if zone else FARTHEST_ZONE)
