"""When a line of a log was written: the time at its beginning, behind what carried it here, read from the raw bytes.

Nothing behind the beginning is believed, since it may be a client's. The shapes are those of `lmdiag.parse`, which takes them
off for good; here only the outermost time is wanted, and most lines are never looked at.
"""

from __future__ import annotations

import re
from typing import Any

from lmdiag.read.moments import DAY, newest_year, unix_time

LONGEST = 1 << 16
"""Bytes of a line that may be needed to read its time: docker's json-file has it at the end of up to 16 KiB of text."""

_HEAD = 320
_DATE = rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)?"
_SHORT = rb"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,]\d{1,9})?"
_LEVEL = rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_PROCESS = rb"\(?(?:[\w:./-]{1,60} (?:[\w=:-]{1,60} )?)?pid=\d+(?:, ip=[\w.:]+)?\) "
_KNOWN = rb"(?=\(?(?:[\w:.-]{1,60} )?pid=\d|" + _LEVEL + rb" |\[?\d{4}-\d\d-\d\d[T ])"
_CARRIERS = re.compile(
    rb"(?:(?:> ?){1,8}|\*\*|`|vLLM STD(?:OUT|ERR): ?|"
    + _PROCESS
    + rb"|\[?[A-Za-z][\w.-]{0,80}\]?(?: {2,80}|(?<=\d) ?)\| ?|\[pod/[^\]\s]{1,200}\] ?|\[?(?:rank|default)\d{1,6}\]: ?"
    rb"|[a-z0-9][\w.-]{0,80} [\w.-]{1,80} "
    + _KNOWN
    + rb"| {0,4}[\w.-]{1,80}(?<!Error)(?<!Exception): "
    + _KNOWN
    + rb"){1,8}"
)
_STAMPED = re.compile(
    rb"(?: {0,8}\| )?\[?" + _DATE + rb"(?=[\]\s|]|$)"
    rb"|(?:\[[\w -]{1,30}\] |[\w.=/:-]{1,40} )??" + _LEVEL + rb" (?:" + _SHORT + rb"|" + _DATE + rb") \[?[\w./<>-]+:\d"
    rb"|([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) [\w.-]+ [\w./@:-]+?(?:\[\d+\])?:"
)
_COLOUR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_MARKS = b"\0\r\xef\xbb\xbf"
_MONTHS = {name: number for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_TIME_KEYS = ("time", "asctime", "timestamp", "ts", "@timestamp", "__REALTIME_TIMESTAMP", "created")
_TEXT_KEYS = ("log", "MESSAGE", "message", "msg", "line", "text")
_TEXT_TIME = re.compile(_DATE + rb"$|" + _SHORT + rb"$")
_EPOCHS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""From which number on a time counts in so many parts of a second."""


class LineTimes:
    """Reads the times of one log's lines."""

    def __init__(self, written: float) -> None:
        """`written`: when the log was last written to, as unix time; a day later nothing in it is believed."""
        self.latest = written + DAY
        self._stamp: tuple[bytes | None, ...] = ()
        self._seconds: float | None = None

    def read(self, line: bytes) -> float | None:
        """Return a line's time as unix time in whole seconds, or None. `line`: at most its first LONGEST bytes."""
        return self._read(line, carried=False)

    def _read(self, line: bytes, *, carried: bool) -> float | None:
        head = line[:_HEAD]
        if head[:1] in (b"\0", b"\r", b"\xef"):
            line = line.lstrip(_MARKS)
            head = line[:_HEAD]
        if b"\x1b" in head:
            head = _COLOUR.sub(b"", head)
        hit = _STAMPED.match(head)
        if hit is None and (carriers := _CARRIERS.match(head)):
            if head.startswith(b"{", carriers.end()):
                line, head = line[line.find(b"{") :], b"{"
            else:
                hit = _STAMPED.match(head, carriers.end())
        if hit is not None:
            return self._of_stamp(hit.groups())
        return self._of_json(line) if head[:1] == b"{" and not carried else None

    def _of_stamp(self, stamp: tuple[bytes | None, ...]) -> float | None:
        """Many lines in a row have the same time."""
        if stamp != self._stamp:
            self._stamp, self._seconds = stamp, self._believed(stamp)
        return self._seconds

    def _believed(self, stamp: tuple[bytes | None, ...]) -> float | None:
        date = stamp[:7] if stamp[0] else stamp[12:19]
        if date[0]:
            return self._of_date(date)
        if stamp[19]:  # syslog
            month = _MONTHS.get(stamp[19])
            return newest_year((month, *_numbers(stamp[20:24])), self.latest) if month else None
        return newest_year(_numbers(stamp[7:12]), self.latest)

    def _of_date(self, date: tuple[bytes | None, ...]) -> float | None:
        try:
            seconds = unix_time(_numbers(date[:6]), (date[6] or b"").decode())
        except (ValueError, OverflowError):
            return None
        return seconds if seconds <= self.latest else None

    def _of_json(self, line: bytes) -> float | None:
        import json

        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        times = (self._of_value(found[key]) for key in _TIME_KEYS if key in found)
        if (seconds := next((time for time in times if time is not None), None)) is not None:
            return seconds
        text = next((found[key] for key in _TEXT_KEYS if isinstance(found.get(key), str)), "")
        return self._read(text[:_HEAD].encode("utf-8", "replace"), carried=True)

    def _of_value(self, value: object) -> float | None:
        text = str(value)[:64].strip().encode("utf-8", "replace")
        if hit := _TEXT_TIME.match(text):
            date = hit.groups()
            return self._of_date(date[:7]) if date[0] else newest_year(_numbers(date[7:]), self.latest)
        try:
            number = float(text)
        except ValueError:
            return None
        seconds = next((number // parts for least, parts in _EPOCHS if least <= number < 1e20), None)
        return seconds if seconds is not None and seconds <= self.latest else None


def _numbers(parts: tuple[bytes | None, ...]) -> tuple[int, ...]:
    return tuple(int(part or 0) for part in parts)
