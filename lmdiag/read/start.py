"""Where to begin in a log that is read for the first time: what happened before this life of the server is history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice

_BLOCK = 1 << 20
_SEARCHED = 1 << 30
"""Bytes that are searched backwards for a start, and up to which lines are counted."""
_CONTEXT = 64 << 20
_MAX_TRIED = 200_000
_GROUP = 200
"""Lines between two marks of the same start, at most."""
_BANNER_LINES = 5

_ART = rb"(?:[ \t]|\\n|\\u25[0-9a-f]{2}|\xe2\x96[\x80-\x9f])*"
# The shapes of lmdiag.diagnose.lives, as they stand in raw lines: behind vLLM's own `[file.py:1] ` (coloured or not), as
# the text of a JSON record, or at the start of a line. A client's text can hold one only by quoting a log line whole.
_MARK = re.compile(
    rb"(?:\.py:\d+\](?:\\u001b|\x1b)?(?:\[0m)? |\"(?:message|msg|log)\": ?\"|^(?:\(\w+ pid=\d+\) )?)"
    rb"(?:vLLM API server version \S|vLLM server version \S+, serving model|" + _ART + rb"version \d+\.\d|"
    rb"non-default args: \{|args: Namespace\()"
    rb"|(?:^|[\s\"])\$ (?:[^\s]{1,200} ){0,40}vllm serve ",
    re.MULTILINE,
)
_NEEDLES = (b"non-default args: {", b"args: Namespace(", b"vllm serve ", b"version ")
"""Each mark has one of them; looking for these first is ten times as fast."""
_BANNER = re.compile(rb"\.py:\d+\]\S* ?" + _ART + rb"(?:\"[^\n]*)?$")
_BREAK = re.compile(rb"Application startup complete|(?:^|[ m])ERROR(?:[ \x1b]|$)|\"level\": ?\"ERROR\"")


def start_offset(path: str, where: str, boot_time: float | None = None) -> tuple[int, int]:
    r"""Return the byte to begin at, the first of a line, and how many lines stand before it (0 beyond 1 GiB).

    `where`: "start" of the file, its "end", the last server "life" in it (64 MiB back, if none begins in the last
    GiB), or "boot": its end if it was last written to before `boot_time` (unix seconds), else as "life".
    A file that cannot be read begins at its start: who follows it will say why.
    """
    if where == "start":
        return 0, 0
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return 0, 0
    try:
        status = os.fstat(fd)
        old = where == "boot" and boot_time is not None and status.st_mtime < boot_time
        offset = _line_start(fd, status.st_size) if where == "end" or old else _life(fd, status.st_size)
        return offset, _count_lines(fd, offset)
    except OSError:
        return 0, 0
    finally:
        os.close(fd)


def _life(fd: int, size: int) -> int:
    """Find the first line of the last server life."""
    last = _last_mark(fd, size, _SEARCHED)
    if last is None:
        return _line_start(fd, size - _CONTEXT) if size > _CONTEXT else 0
    return _banner_start(fd, _group_start(fd, last))


def life_before(fd: int, until: int, searched: int) -> int | None:
    """Return where the server's life begins that goes on at an offset, or None if that is more than `searched` bytes before."""
    last = _last_mark(fd, until, searched)
    return None if last is None else _banner_start(fd, _group_start(fd, last))


def life_in(block: bytes, behind: int) -> int | None:
    """Return where the last life begins in a block of whole lines, or None if no mark of it stands behind an offset."""
    if not _has_needle(block):
        return None
    tried = islice(_lines_with_needles(block), _MAX_TRIED)
    mark = next((first for first, line in tried if first < behind or _MARK.search(line)), None)
    if mark is None or mark < behind:
        return None
    start = _group_first(_lines_within(block, mark), mark)
    return _banner_first(_lines_within(block, start), start)


def _lines_within(block: bytes, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines before an offset with the offset of each, the last one first."""
    while end > 0:
        first = block.rfind(b"\n", 0, end - 1) + 1
        yield first, block[first : end - 1]
        end = first


def _last_mark(fd: int, size: int, searched: int) -> int | None:
    tried = 0
    for start, block in _blocks_back(fd, size, searched):
        if not _has_needle(block):
            continue
        for first, line in _lines_with_needles(block):
            tried += 1
            if _MARK.search(line):
                return start + first
            if tried == _MAX_TRIED:  # another program's log, which speaks of versions all the time
                return None
    return None


def _has_needle(block: bytes) -> bool:
    """Whether a block is worth a look from behind, which takes ten times as long."""
    from stringzilla import find  # only where a start is looked for

    return any(find(block, needle) >= 0 for needle in _NEEDLES)


def _lines_with_needles(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that may hold a mark, with the offset of each, the last one first."""
    end = len(block)
    while (at := max(block.rfind(needle, 0, end) for needle in _NEEDLES)) >= 0:
        first = block.rfind(b"\n", 0, at) + 1
        last = block.find(b"\n", at)
        yield first, block[first : last if last >= 0 else len(block)]
        end = first


def known_life(fd: int, until: int) -> tuple[Iterator[bytes], int]:
    """Return what a file says before an offset of the server's life that goes on there, and how many lines stand before.

    Nothing of it, if it is more than 64 MiB.
    """
    offset = _life(fd, until)
    if until - offset > _CONTEXT:
        offset = until
    return _blocks(fd, offset, until), _count_lines(fd, offset)


def _blocks(fd: int, offset: int, until: int) -> Iterator[bytes]:
    while offset < until and (block := os.pread(fd, min(_BLOCK, until - offset), offset)):
        offset += len(block)
        yield block


def _group_start(fd: int, mark: int) -> int:
    """Go back over the marks of the same start: its shell line, its banner, its arguments."""
    return _group_first(_lines_back(fd, mark), mark)


def _group_first(back: Iterable[tuple[int, bytes]], mark: int) -> int:
    first, between = mark, 0
    for offset, line in back:
        between += 1
        if between > _GROUP or _BREAK.search(line):
            break
        if _MARK.search(line):
            first, between = offset, 0
    return first


def _banner_start(fd: int, mark: int) -> int:
    """Go back over the lines of the banner that stand before the one with the version."""
    return _banner_first(_lines_back(fd, mark), mark)


def _banner_first(back: Iterable[tuple[int, bytes]], mark: int) -> int:
    first = mark
    for number, (offset, line) in enumerate(back):
        if number == _BANNER_LINES or not _BANNER.search(line):
            break
        first = offset
    return first


def _lines_back(fd: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines before an offset with the offset of each, the last one first, as far as a group can reach."""
    for start, block in _blocks_back(fd, end, _SEARCHED):
        lines = block.removesuffix(b"\n").split(b"\n")
        offset = start + len(block.removesuffix(b"\n")) + 1
        for line in reversed(lines):
            offset -= len(line) + 1
            yield offset, line


def _blocks_back(fd: int, end: int, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of whole lines before an offset, the last block first; longer lines come in pieces."""
    lowest = max(0, end - limit)
    while end > lowest:
        start = max(lowest, end - _BLOCK)
        block = os.pread(fd, end - start, start)
        if not block:
            return
        cut = block.find(b"\n", 0, -1) + 1 if start else 0
        yield start + cut, block[cut:]
        end = start + cut


def _line_start(fd: int, offset: int) -> int:
    """Return where the line begins that an offset is in; the offset, if that is more than 1 MiB before."""
    start = max(0, offset - _BLOCK)
    newline = os.pread(fd, offset - start, start).rfind(b"\n")
    return start + newline + 1 if newline >= 0 or not start else offset


def _count_lines(fd: int, end: int) -> int:
    if end > _SEARCHED:
        return 0
    return sum(os.pread(fd, min(_BLOCK, end - offset), offset).count(b"\n") for offset in range(0, end, _BLOCK))
