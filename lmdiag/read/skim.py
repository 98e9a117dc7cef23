"""The span of time of a log that can only be read through: compressed files, pipes, standard input.

It begins and ends where `lmdiag.read.edges` finds it in a plain file. Before the span a block costs a look at its last lines,
within it too; only around its edges lines are looked at one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from lmdiag.read.edges import SEARCHED, margin
from lmdiag.read.linetimes import LONGEST, LineTimes
from lmdiag.read.server_start import StartSeen

_SAMPLE = 8
_LONG = 1 << 20
"""Bytes after which a line is taken in pieces."""


class Pieces:
    """Blocks cut anew: each piece is whole lines, or a part of a line that is longer than 1 MiB."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the pieces, and of each whether it begins a line. The last one may have no newline."""
        held, begins = b"", True
        for block in self._blocks:
            data = held + block
            cut = data.find(b"\n") + 1 if not begins else 0
            if cut:
                yield data[:cut], False
                begins = True
            end = data.rfind(b"\n") + 1 or cut
            if end > cut:
                yield data[cut:end], True
            held = data[end:]
            if held and (not begins or len(held) > _LONG):
                yield held, begins
                held, begins = b"", False
        if held:
            yield held, begins


def newest(blocks: Iterator[bytes], times: LineTimes) -> float | None:
    """Read a log to its end for the newest time there."""
    found: float | None = None
    for piece, begins in Pieces(blocks):
        if begins:
            found = max((seconds for _, seconds in islice(_timed_back(piece, times), _SAMPLE)), default=found)
    return found


class Skim:
    """Takes the blocks of a log, gives those between two moments; None: from its beginning, to its end."""

    def __init__(self, times: LineTimes, since: float | None, until: float | None) -> None:
        self.lines = 0
        """How many lines were left out in front of the span; known once its first block is there."""
        self.timed = False
        """A time was found. If none is, all is given."""
        self.start = StartSeen()
        """What a server said at its start, before the span."""
        self._earlier = False  # a line was before `since`
        self._times = times
        self._since = since
        self._until = until

    def blocks(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the span."""
        pieces = iter(Pieces(blocks))
        if self._since is not None:
            pieces = self._from(pieces, self._since)
        if self._until is not None:
            pieces = self._to(pieces, self._until)
        return (piece for piece, _ in pieces)

    def _from(self, pieces: Iterator[tuple[bytes, bool]], since: float) -> Iterator[tuple[bytes, bool]]:
        held: list[tuple[bytes, bool]] = []  # no line before it has a time
        size = 0
        for piece, begins in pieces:
            at = self._first(piece, since) if begins else None
            if self._earlier:
                for one, _ in held:
                    self._leave_out(one)
                held.clear()
                self._leave_out(piece[:at])
            if at is not None:
                yield from held
                yield (piece[at:], True) if self._earlier else (piece, begins)
                break
            if not self._earlier:
                held.append((piece, begins))
                size += len(piece)
                if size > SEARCHED:
                    yield from held
                    break
        else:
            yield from held
        yield from pieces

    def _leave_out(self, piece: bytes) -> None:
        self.start.feed(piece, self.lines)
        self.lines += piece.count(b"\n")

    def _first(self, piece: bytes, since: float) -> int | None:
        """Return the offset of the first line that is not before `since`, or None if all are, or none has a time."""
        last = [seconds for _, seconds in islice(_timed_back(piece, self._times), _SAMPLE)]
        self.timed = self.timed or bool(last)
        if last and max(last) < since - margin(since):
            self._earlier = True
            return None
        for at, seconds in _timed(piece, self._times) if last else ():
            if seconds >= since:
                return at
            self._earlier = True
        return None

    def _to(self, pieces: Iterator[tuple[bytes, bool]], until: float) -> Iterator[tuple[bytes, bool]]:
        """Hold lines after `until` back as long as one that is not may follow."""
        held: deque[tuple[bytes, bool]] = deque()
        size = 0
        for piece, begins in pieces:
            cut, inside = self._cut(piece, until) if begins else (len(piece), False)
            if held and not inside:  # lines without a time belong to those before them
                cut = 0
            if cut:
                yield from held
                held.clear()
                size = 0
                yield piece[:cut], begins
            rest = piece[cut:]
            if rest:
                held.append((rest, begins))
                size += len(rest)
            if size > SEARCHED or (rest and begins and self._is_past(rest, until)):
                return

    def _cut(self, piece: bytes, until: float) -> tuple[int, bool]:
        """Return where the lines begin that are after `until`, and whether one that is not stands before them."""
        end = len(piece)
        for at, seconds in _timed_back(piece, self._times):
            self.timed = True
            if seconds <= until:
                return end, True
            end = at
        return end, False

    def _is_past(self, piece: bytes, until: float) -> bool:
        """Whether nothing can follow that is not after `until`."""
        last = [seconds for _, seconds in islice(_timed_back(piece, self._times), _SAMPLE)]
        return bool(last) and min(last) > until + margin(until)


def _timed(piece: bytes, times: LineTimes) -> Iterator[tuple[int, float]]:
    start = 0
    while start < len(piece):
        end = piece.find(b"\n", start)
        end = len(piece) if end < 0 else end
        seconds = times.read(piece[start : min(end, start + LONGEST)])
        if seconds is not None:
            yield start, seconds
        start = end + 1


def _timed_back(piece: bytes, times: LineTimes) -> Iterator[tuple[int, float]]:
    end = len(piece.removesuffix(b"\n"))
    while end >= 0 and piece:
        start = piece.rfind(b"\n", 0, end) + 1
        seconds = times.read(piece[start : min(end, start + LONGEST)])
        if seconds is not None:
            yield start, seconds
        end = start - 1
