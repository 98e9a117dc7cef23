"""Bytes to lines: bounded in memory, and with as little Python per line as possible."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate, chain, count, repeat
from operator import add

from lmdiag.errors import InputError
from lmdiag.model import Line
from lmdiag.read.files import RawReader

REPLACED = "\ufffd"
_REPLACED_BYTES = REPLACED.encode()
_WHOLE = repeat(False)  # noqa: FBT003 (the `truncated` of lines that are not)

# Line._make checks the length in Python, which made a line a third dearer.
_new_line: Callable[[Iterable[object]], Line] = partial(tuple.__new__, Line)


class Splitter:
    """Blocks of bytes to lines, for one source. It can be pickled between two blocks.

    Lines end at a newline byte; carriage returns at their end and all NUL bytes are not part of the text. Invalid
    UTF-8 becomes U+FFFD. A line of more than `limit` bytes (NULs at its start, which a log rotated by copytruncate
    has, do not count) is cut there and marked as truncated. Offsets count in the bytes that were fed.
    """

    def __init__(self, source: str, *, limit: int = 1 << 20, lines: int = 0) -> None:
        """`lines`: how many lines stand before the first block, so that the next one has the number after them."""
        self.lines = lines
        self.bytes = 0
        self.undecodable_lines = 0
        self.truncated_lines = 0
        self.skipped_lines = 0
        """Of all lines, those that were not looked at; the two counts above are of the others."""
        self._source = source
        self._limit = limit
        self._offset = 0  # of the next line's start
        self._held = bytearray()  # the unfinished line: without NULs at its start, at most limit + 1 bytes
        self._size = 0  # how long the unfinished line really is

    def feed(self, data: bytes) -> Iterator[Line]:
        """Return the lines that end in this block; the rest is held for the next one."""
        self.bytes += len(data)
        return chain.from_iterable(self._split(data))

    @property
    def holds(self) -> bool:
        """Whether the last block ended within a line."""
        return self._size > 0

    def skip(self, size: int, lines: int) -> None:
        """Count whole lines that nobody wants to see, of so many bytes; no line may be held."""
        self.bytes += size
        self._offset += size
        self.lines += lines
        self.skipped_lines += lines

    def finish(self) -> tuple[Line, ...]:
        """Release the held line, if there is one."""
        if not self._size:
            return ()
        line = self._single(bytes(self._held), self._size)
        self._held.clear()
        self._size = 0
        return (line,)

    def _split(self, data: bytes) -> Iterator[Iterable[Line]]:
        """Yield the lines that end in this block: the one begun before, then all others at once; the rest is held."""
        end = data.rfind(b"\n")
        start = 0
        if end >= 0 and self._size:
            start = data.find(b"\n") + 1
            self._hold(data[: start - 1])
            yield self.finish()
        if start <= end:
            yield self._body(data[start:end])
        self._hold(data[end + 1 :])

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if not self._held:
            part = part.lstrip(b"\0")
        self._held += part[: self._limit + 1 - len(self._held)]

    def _body(self, body: bytes) -> Iterable[Line]:
        """Complete lines, the last one without its newline: whole blocks are decoded and split, not single lines."""
        if len(body) > self._limit:
            return self._singly(body)
        text = body.decode("utf-8", "replace")
        if REPLACED in text:
            self.undecodable_lines += sum(map(_undecodable, text.split("\n"), body.split(b"\n")))
        parts = text.split("\n")
        sizes = map(len, parts if text.isascii() else body.split(b"\n"))
        offsets = map(add, accumulate(sizes, initial=self._offset), count())  # a newline after each line
        numbers = count(self.lines + 1)
        self.lines += len(parts)
        self._offset += len(body) + 1
        texts = _clean(text, parts)
        return map(_new_line, zip(repeat(self._source), numbers, offsets, texts, _WHOLE))

    def _singly(self, body: bytes) -> list[Line]:
        return [self._single(part.lstrip(b"\0"), len(part)) for part in body.split(b"\n")]

    def _single(self, part: bytes, size: int) -> Line:
        """One line that is `size` bytes long, of which `part` is the beginning without NULs."""
        cut = len(part) > self._limit
        kept = part[: self._limit]
        # The limit may have cut a character in two, which is no fault of the log: its beginning is left out.
        text = codecs.utf_8_decode(kept, "replace", not cut)[0]
        self.undecodable_lines += _undecodable(text, kept)
        self.lines += 1
        self.truncated_lines += cut
        line = Line(self._source, self.lines, self._offset, text.replace("\0", "").rstrip("\r"), cut)
        self._offset += size + 1
        return line


class LineReader:
    """The lines of one input, once, as `Splitter` makes them.

    Iteration raises the InputError of `raw` after all lines before it, the unfinished last one included.
    `on_bytes` is called after each block with `raw.position`. The counters are ahead of the iteration by at most one
    block.
    """

    def __init__(
        self,
        source: str,
        raw: RawReader,
        *,
        limit: int = 1 << 20,
        block: int = 1 << 18,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self.splitter = Splitter(source, limit=limit)
        self._raw = raw
        self._block = block
        self._on_bytes = on_bytes

    def __iter__(self) -> Iterator[Line]:
        return chain.from_iterable(self._batches())

    def blocks(self) -> Iterator[bytes]:
        """Yield the input as it is read; whoever takes it this way feeds the splitter."""
        buffer = bytearray(self._block)
        view = memoryview(buffer)
        while size := self._raw.readinto(view):
            if self._on_bytes is not None:
                self._on_bytes(self._raw.position)
            yield bytes(view[:size])

    def _batches(self) -> Iterator[Iterable[Line]]:
        try:
            yield from map(self.splitter.feed, self.blocks())
        except InputError:
            yield self.splitter.finish()
            raise
        yield self.splitter.finish()


def _undecodable(text: str, source: bytes) -> bool:
    """Whether a decoded line has a U+FFFD that does not itself stand in the bytes."""
    return text.count(REPLACED) > source.count(_REPLACED_BYTES)


def _clean(text: str, parts: list[str]) -> list[str]:
    """Strip NULs, and carriage returns at the lines' ends; most texts have neither."""
    if "\0" in text:
        parts = text.replace("\0", "").split("\n")
    if "\r" in text:
        parts = [part.rstrip("\r") for part in parts]
    return parts
