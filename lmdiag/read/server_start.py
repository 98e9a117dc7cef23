"""What a server said when it started, before the span of a log that is read: its version, its arguments, that it came up.

Without it an error in the span would be diagnosed without the server's own values. It ends before the first error of the start:
what failed before the span is not told.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from lmdiag.read.start import life_before, life_in

_SEARCHED = 64 << 20
"""Bytes before the span in which a start is looked for in a plain file."""
_MOST = 256 << 10
"""Bytes of a start that are read."""
_BLOCK = 1 << 20
_WINDOW = 64 << 10
"""Bytes that the lines of one start may lie apart in a log that is read through."""
_TROUBLE = re.compile(
    rb"(?:^|[\s\x1bm])(?:ERROR|CRITICAL)[ :\x1b]|Traceback \(most recent|\"level(?:name)?\": ?\"ERROR", re.MULTILINE
)
_READY = re.compile(
    rb"^[^\n]{0,4000}?(?:Application startup complete|Uvicorn running on )[^\n]{0,4000}\n", re.MULTILINE
)
_WORDS = (b"Application startup complete", b"Uvicorn running on ")
_MOST_READY = 8
"""Lines with these words that are taken: a client's may be among them, and the diagnosis knows which one is the server's."""


class Excerpt(NamedTuple):
    """Whole lines from before the span."""

    before: int
    """What stands before them: bytes in a plain file, lines in a log that is read through."""
    data: bytes


def start_before(fd: int, begin: int) -> list[Excerpt]:
    """Return what the server of a plain file's byte `begin` said at its start; nothing if it began 64 MiB before or more."""
    at = life_before(fd, begin, _SEARCHED)
    if at is None:
        return []
    data = os.pread(fd, min(_MOST, begin - at), at)
    whole = _start(data)
    found = [Excerpt(at, whole)]
    offset = at + len(whole)
    while not _is_ready(whole) and len(found) <= _MOST_READY and offset < begin:
        block = os.pread(fd, min(_BLOCK, begin - offset), offset)
        block = block[: block.rfind(b"\n") + 1] or block
        if not block:
            break
        found += [Excerpt(offset + line, text) for line, text in _ready_lines(block)]
        offset += len(block)
    return found[: 1 + _MOST_READY]


class StartSeen:
    """Keeps the newest start of a log that is read through."""

    def __init__(self) -> None:
        self.excerpts: list[Excerpt] = []
        self._window = b""
        self._open = False

    def feed(self, piece: bytes, lines: int) -> None:
        """Take the next piece, before which so many lines stand."""
        window = self._window + piece
        begins = life_in(window, len(self._window))
        if begins is not None:
            before = lines - self._window.count(b"\n") + window.count(b"\n", 0, begins)
            self._set(Excerpt(before, window[begins:][:_MOST]))
        elif self._open:
            self._set(Excerpt(self.excerpts[0].before, (self.excerpts[0].data + piece)[:_MOST]))
        elif self.excerpts and len(self.excerpts) <= _MOST_READY and not _is_ready(self.excerpts[0].data):
            self.excerpts += [Excerpt(lines + piece.count(b"\n", 0, at), text) for at, text in _ready_lines(piece)]
        self._window = window[-_WINDOW:]
        self._window = self._window[self._window.find(b"\n") + 1 :]

    def _set(self, excerpt: Excerpt) -> None:
        """Take a start as far as it has come."""
        whole = _start(excerpt.data)
        self._open = whole == excerpt.data and len(whole) < _MOST
        rest = excerpt.data[len(whole) :]
        before = excerpt.before + whole.count(b"\n")
        ready = [] if _is_ready(whole) else _ready_lines(rest)
        self.excerpts = [
            Excerpt(excerpt.before, whole),
            *(Excerpt(before + rest.count(b"\n", 0, at), text) for at, text in ready),
        ]


def _start(data: bytes) -> bytes:
    """Cut behind the last whole line, and before the first line that tells of trouble."""
    data = data[: data.rfind(b"\n") + 1]
    trouble = _TROUBLE.search(data)
    return data[: data.rfind(b"\n", 0, trouble.start() + 1) + 1] if trouble else data


def _is_ready(data: bytes) -> bool:
    return any(words in data for words in _WORDS)


def _ready_lines(block: bytes) -> list[tuple[int, bytes]]:
    if not _is_ready(block):  # a plain search is a hundred times as fast
        return []
    return [(hit.start(), hit.group()) for hit in _READY.finditer(block)][:_MOST_READY]
