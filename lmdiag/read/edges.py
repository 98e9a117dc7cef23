"""Finds by bisection where a span of time begins and ends in a plain file, without reading what lies outside of it.

Times in a log are not quite sorted: several processes write, clocks are set. So a place counts as before a moment only if its
times are MARGIN before it, and as after it only if they are MARGIN after it; what is left between is read line by line. In a log
whose times never run back by more than MARGIN this finds what a reading of all lines finds:

- the span begins at the first line whose time is not before `since`;
- it ends behind the last line whose time is not after `until`, and the lines without a time that follow it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from lmdiag.read.linetimes import LONGEST, LineTimes

MARGIN = 60.0
"""Seconds by which the times of a log may run back."""
SEARCHED = 8 << 20
"""Bytes at the beginning and the end of a log in which a time is looked for, before the log counts as one without times."""

_CHUNK = 1 << 12
_MAX_CHUNK = 1 << 18
_NEAR = 1 << 16
"""Bytes of a log that are looked at in one place, and below which bisecting ends."""
_SAMPLE = 8
"""Timed lines that must agree: one of them may be a client's text, or another process's."""
_CLOSELY = 16 << 20
"""Bytes that are read line by line at an edge; a log that writes more in MARGIN seconds gets a wider span."""

Timed = tuple[int, float]
"""Offset of a line, and its time."""


def margin(moment: float) -> float:
    """Return MARGIN, and in the hours around a clock that is set back (summer time ends) as much more."""
    before, after = (time.localtime(moment + hours * 3600).tm_gmtoff for hours in (-2, 2))
    return MARGIN + max(0, before - after)


class Edges:
    """Looks for moments in an open plain file of `size` bytes."""

    def __init__(self, fd: int, size: int, times: LineTimes) -> None:
        self._fd = fd
        self._size = size
        self._times = times

    def has_times(self) -> bool:
        """Whether a time can be read near the log's beginning or its end."""
        start = next(self._timed(0, min(self._size, SEARCHED)), None)
        return start is not None or self.newest() is not None

    def newest(self) -> float | None:
        """Return the newest time at the log's end, or None if there is none to read."""
        lowest = self._line_start(max(0, self._size - SEARCHED), self._size)
        last = islice(self._timed_back(self._size, lowest), _SAMPLE)
        return max((seconds for _, seconds in last), default=None)

    def begin(self, since: float) -> int:
        """Return the offset of the first line that is not before `since`; the file's size, if all are."""
        before = self._known_before(since - margin(since))
        closely = min(self._size, (before or 0) + _CLOSELY)
        for offset, seconds in self._timed(before or 0, closely):
            if seconds >= since:
                return offset if before is not None else 0
            before = offset
        return self._size if before is not None and closely == self._size else before or 0

    def end(self, until: float, begin: int) -> int:
        """Return the offset behind the last line that is not after `until`, and behind those without a time that follow."""
        end = known = self._known_after(until + margin(until), begin)
        lowest = begin if known - begin <= _CLOSELY else self._line_start(known - _CLOSELY, known)
        for offset, seconds in self._timed_back(known, lowest):
            if seconds <= until:
                break
            end = offset
        return end

    def _known_before(self, moment: float) -> int | None:
        """Return the offset of a line behind which `moment` lies, or None if none is known."""
        low, high = 0, self._size
        known: int | None = None
        while high - low > _NEAR:
            middle = (low + high) // 2
            found = self._sample(middle, high)
            if found and max(seconds for _, seconds in found) < moment:
                low = known = found[-1][0]
            else:
                high = middle
        return known

    def _known_after(self, moment: float, begin: int) -> int:
        """Return the offset of a line before which `moment` lies; the file's size if none is known."""
        low, high, known = begin, self._size, self._size
        while high - low > _NEAR:
            middle = (low + high) // 2
            found = self._sample(middle, high)
            if found and min(seconds for _, seconds in found) > moment:
                known = found[0][0]
                high = middle
            elif found:
                low = found[-1][0]
            else:
                high = middle
        return known

    def _sample(self, offset: int, end: int) -> list[Timed]:
        """Return a few timed lines close together behind an offset: the first that are met in ever longer steps."""
        step = _NEAR
        while offset < end:
            near = min(end, offset + _NEAR)
            start = self._line_start(offset, near)
            found = list(islice(self._timed(start, near), _SAMPLE)) if start < near else []
            if found:
                return found
            offset, step = offset + step, 2 * step
        return []

    def _line_start(self, offset: int, end: int) -> int:
        """Return where the first line begins that begins in [offset, end), or `end`."""
        at, size = max(0, offset - 1), _CHUNK  # a line begins at `offset` if a newline stands before it
        while offset and at < end and (chunk := os.pread(self._fd, min(size, end - at), at)):
            newline = chunk.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at, size = at + len(chunk), min(2 * size, _MAX_CHUNK)
        return end if offset else 0

    def _timed(self, offset: int, end: int) -> Iterator[Timed]:
        """Yield the lines with a time that begin in [offset, end); a line begins at `offset`."""
        return self._with_times(_lines(self._fd, offset, end))

    def _timed_back(self, end: int, lowest: int) -> Iterator[Timed]:
        """Yield the lines with a time that begin in [lowest, end), the last one first; a line begins at either."""
        return self._with_times(_lines_back(self._fd, end, lowest))

    def _with_times(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[Timed]:
        for offset, line in lines:
            seconds = self._times.read(line)
            if seconds is not None:
                yield offset, seconds


def _lines(fd: int, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in [offset, end), each with its offset and at most its first LONGEST bytes."""
    size, held, skipping = _CHUNK, b"", False
    while chunk := os.pread(fd, size, offset + len(held)):
        size = min(2 * size, _MAX_CHUNK)
        data = held + chunk
        position = 0
        while (newline := data.find(b"\n", position)) >= 0:
            if not skipping:
                yield offset + position, data[position : min(newline, position + LONGEST)]
            position, skipping = newline + 1, False
            if offset + position >= end:
                return
        held, offset = data[position:], offset + position
        if len(held) > LONGEST:  # its rest says nothing
            if not skipping:
                yield offset, held[:LONGEST]
            held, offset, skipping = b"", offset + len(held), True
    if held and not skipping:
        yield offset, held


def _lines_back(fd: int, end: int, lowest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of [lowest, end), the last one first, each with its offset and at most its first LONGEST bytes."""
    size, held = _CHUNK, b""  # `held`: the beginning of what is behind the chunk, whose line begins in or before it
    while end > lowest:
        start = max(lowest, end - size)
        chunk = os.pread(fd, end - start, start)
        size = min(2 * size, _MAX_CHUNK)
        data = chunk + held
        stop = len(data)
        while (newline := data.rfind(b"\n", 0, stop)) >= 0:
            if newline + 1 < stop or stop < len(data):
                yield start + newline + 1, data[newline + 1 : min(stop, newline + 1 + LONGEST)]
            stop = newline
        held, end = data[: min(stop, LONGEST)], start
    if held:
        yield lowest, held
