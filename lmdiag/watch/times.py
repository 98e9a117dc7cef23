"""When something happened, after the log's own words: vLLM's times have neither year nor zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from lmdiag.model import Incident

_SHORT = re.compile(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")


def event_time(text: str | None, now: float) -> float | None:
    """Read a record's time as seconds that can be compared within one log, or None.

    `12-01 02:00:00` gets the year of `now` that does not put it into the future; ISO 8601 is read as it stands. A
    time without a zone is taken for UTC: only differences count.
    """
    if not text:
        return None
    if hit := _SHORT.fullmatch(text.strip()):
        today = datetime.fromtimestamp(now, UTC)
        for year in (today.year, today.year - 1):
            try:
                found = datetime(year, *map(int, hit.groups()), tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]
            except ValueError:  # the 29th of February, or no date at all
                continue
            if found <= now + 2 * 86400:
                return found
        return None
    try:
        read = datetime.fromisoformat(text.strip().replace(",", "."))
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def spread(incident: Incident, times: int, now: float) -> list[float]:
    """Return when an incident happened, so many times: the first and the last one are known, others lie evenly between.

    A single time is the last one's.
    """
    last = event_time(incident.last_seen, now)
    first = event_time(incident.first_seen, now)
    if last is None or first is None or times < 2 or first > last:
        return [now if last is None else last] * max(1, min(times, 1))
    return [first + (last - first) * step / (times - 1) for step in range(min(times, 50))]
