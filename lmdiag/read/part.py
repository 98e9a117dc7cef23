"""Readers of a part of a log: by offsets of a plain file, or of the blocks that are left of what is read through."""

from __future__ import annotations

import codecs
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Self

from lmdiag.errors import InputError
from lmdiag.read.archives import RawReader, open_bytes
from lmdiag.read.files import explain
from lmdiag.read.server_start import Excerpt

_BLOCK = 1 << 18
_COUNTED = 1 << 20


class Part(RawReader):
    """The bytes of a log that lie in a span, whole lines; see RawReader. It can be asked about lines until it is closed.

    Lines are numbered as they come, from 1; `line` says where they stand in the log.
    """

    def __init__(
        self, span: RawReader, begin: int, before: Callable[[int], int], excerpts: Sequence[Excerpt] = ()
    ) -> None:
        """`before`: how many lines stand before `begin`, or before the place of an excerpt."""
        self.note: Callable[[], str] = str
        """Why all of it was read, or ""; known at the end."""
        self.error: InputError | None = None
        """Raised at the end: the input broke off when it was copied."""
        self._span = span
        self._before = before
        self._head = b"".join(excerpt.data for excerpt in excerpts)
        self._places = [excerpt.before for excerpt in excerpts] + [begin]
        lines = accumulate((excerpt.data.count(b"\n") for excerpt in excerpts), initial=0)
        self._firsts = list(lines)  # how many lines come before each excerpt, and before the span

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._span.position

    def close(self) -> None:
        """See RawReader."""
        self._span.close()

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        if not self._head:
            size = self._span.readinto(buffer)
            if not size and self.error:
                raise self.error
            return size
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def is_inside(self, number: int) -> bool:
        """Whether a line lies in the span, and not in what the server said at its start."""
        return number > self._firsts[-1]

    def line(self, number: int) -> int:
        """Return the number of a line in its log. In a plain file this counts all lines before it, once."""
        index = bisect_left(self._firsts, number) - 1
        return self._before(self._places[index]) + number - self._firsts[index]


class Range(RawReader):
    """The bytes of a plain file from one offset to another; None: to its end, wherever that is by then."""

    def __init__(self, path: str, fd: int, begin: int, end: int | None) -> None:
        self._path = path
        self._fd = fd
        self._end = end
        mark = os.pread(fd, len(codecs.BOM_UTF8), 0) if not begin else b""
        self._at = len(mark) if mark == codecs.BOM_UTF8 else begin

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        room = len(buffer) if self._end is None else max(0, min(len(buffer), self._end - self._at))
        try:
            size = os.preadv(self._fd, [memoryview(buffer)[:room]], self._at) if room else 0
        except OSError as error:
            raise explain(self._path, error) from error
        self._at += size
        return size

    def close(self) -> None:
        """See RawReader."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Blocks(RawReader):
    """The blocks of an input, and what is made of them. Where it breaks off, both end, and `readinto` raises the error."""

    def __init__(self, given: Iterator[bytes], raw: RawReader | None = None) -> None:
        self.error: InputError | None = None
        self._given = given
        self._raw = raw
        self._ready = b""

    @classmethod
    def of(cls, path: str) -> Self:
        """Open an input; see `open_bytes`."""
        return cls(iter(()), open_bytes(path))

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._raw.position if self._raw else 0

    def close(self) -> None:
        """See RawReader."""
        if self._raw:
            self._raw.close()

    def __enter__(self) -> Self:
        return self

    def give(self, given: Iterator[bytes]) -> None:
        """Say what `readinto` gives."""
        self._given = given

    def blocks(self) -> Iterator[bytes]:
        """Yield the input to its end, or to where it breaks off."""
        buffer = bytearray(_BLOCK)
        try:
            while self._raw and (size := self._raw.readinto(buffer)):
                yield bytes(memoryview(buffer)[:size])
        except InputError as error:
            self.error = error

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        self._ready = self._ready or next(self._given, b"")
        if not self._ready and self.error:
            raise self.error
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


class LineCounter:
    """Counts the lines before an offset of a plain file; what was counted is not counted again."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._counted = {0: 0}

    def __call__(self, offset: int) -> int:
        """Return how many lines stand before an offset."""
        if offset not in self._counted:
            start = max(known for known in self._counted if known < offset)
            self._counted[offset] = self._counted[start] + self._newlines(start, offset)
        return self._counted[offset]

    def _newlines(self, start: int, end: int) -> int:
        import stringzilla  # only where something was found

        count, view = 0, memoryview(bytearray(_COUNTED))
        with suppress(OSError):  # a disk that fails now costs the lines' numbers, not what was found
            while start < end and (size := os.preadv(self._fd, [view[: end - start]], start)):
                count += stringzilla.count(view[:size], b"\n")
                start += size
        return count
