"""Bytes to lines."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmdiag.errors import InputError
from lmdiag.model import Line
from lmdiag.read.files import RawReader
from lmdiag.read.lines import LineReader


class Chunks(RawReader):
    """Bytes that come in given pieces, and perhaps an error at their end."""

    def __init__(self, chunks: Iterator[bytes], error: InputError | None = None) -> None:
        self._chunks = chunks
        self._error = error
        self._consumed = 0

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._consumed

    def close(self) -> None:
        """See RawReader."""

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        chunk = next(self._chunks, b"")
        if not chunk and self._error:
            raise self._error
        buffer[: len(chunk)] = chunk
        self._consumed += len(chunk)
        return len(chunk)


def reference(data: bytes, limit: int) -> tuple[list[Line], int]:
    """Give the lines, and how many were undecodable, in the plainest way."""
    lines, undecodable, offset = [], 0, 0
    parts = data.split(b"\n")
    for number, part in enumerate(parts[:-1] if not parts[-1] else parts, 1):
        kept = part.lstrip(b"\0")
        cut = len(kept) > limit
        kept = kept[:limit]
        if cut:  # a character that the limit cut in two is left out
            kept = next((kept[: len(kept) - n] for n in range(4) if begins_character(kept[len(kept) - n :])), kept)
        try:
            kept.decode()
        except UnicodeDecodeError:
            undecodable += 1
        text = kept.decode("utf-8", "replace").replace("\0", "").rstrip("\r")
        lines.append(Line("a.log", number, offset, text, cut))
        offset += len(part) + 1
    return lines, undecodable


def begins_character(tail: bytes) -> bool:
    """Whether the bytes could be the beginning of a character, but are not a whole one."""
    try:
        tail.decode()
    except UnicodeDecodeError as error:
        # Python's decoder also waits for the third byte of an encoded surrogate before it refuses it.
        surrogate = len(tail) == 2 and tail[0] == 0xED and 0xA0 <= tail[1] <= 0xBF
        return surrogate or (error.reason == "unexpected end of data" and error.start == 0)
    return False


log_bytes = st.lists(
    st.sampled_from([b"\n", b"\n", b"\r", b"\0", b"\r\n", b"a", b"abcdefgh", "é".encode(), "▄".encode(), "🚀".encode()])
    | st.sampled_from([b"\xe9", b"\xf0\x9f", b"\xed\xa0\x80", "\ufffd".encode()])
    | st.binary(max_size=5),
    max_size=60,
).map(b"".join)


@settings(deadline=None)
@example(data=b"\xe9\xed\xa0\x80", cuts=[1], limit=3)
@given(data=log_bytes, cuts=st.lists(st.integers(1, 50), min_size=1), limit=st.integers(1, 40) | st.just(1000))
def test_any_bytes_in_any_blocks_give_the_same_lines(data: bytes, cuts: list[int], limit: int) -> None:
    positions: list[int] = []
    reader = LineReader("a.log", Chunks(pieces(data, cuts)), limit=limit, block=50, on_bytes=positions.append)
    lines, undecodable = reference(data, limit)
    assert list(reader) == lines
    assert reader.splitter.lines == len(lines)
    assert reader.splitter.bytes == len(data) == (positions or [0])[-1]
    assert reader.splitter.undecodable_lines == undecodable
    assert reader.splitter.truncated_lines == sum(line.truncated for line in lines)


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        size = cuts[start % len(cuts)]
        yield data[start : start + size]
        start += size


def test_lines_are_lines_and_not_bare_tuples() -> None:
    [line] = LineReader("a.log", Chunks(iter([b"one\n"])))
    assert isinstance(line, Line)
    assert line == Line("a.log", 1, 0, "one")


@pytest.mark.parametrize("size", [50, 1 << 12])
def test_the_hole_that_copytruncate_leaves_does_not_cost_the_line_after_it(size: int) -> None:
    data = b"\0" * 2002 + b"ERROR up\r\r\nnext"
    first, second = LineReader("a.log", Chunks(pieces(data, [size])), limit=100, block=size)
    assert first == Line("a.log", 1, 0, "ERROR up")
    assert second == Line("a.log", 2, 2013, "next")


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_error_comes_after_all_lines_before_it(end: bytes) -> None:
    got: list[str] = []
    reader = LineReader("a.log", Chunks(iter([b"one\ntw", b"o" + end]), InputError("breaks off")))
    with pytest.raises(InputError, match="breaks off"):
        got.extend(line.text for line in reader)
    assert got == ["one", "two"]


def test_a_line_of_100_megabytes_is_never_held() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first\n"
        for _ in range(400):
            yield b"x" * (1 << 18)
        yield b"\nlast\n"

    tracemalloc.start()
    try:
        shown = [
            (line.number, line.offset, len(line.text), line.truncated) for line in LineReader("a", Chunks(chunks()))
        ]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown == [(1, 0, 5, False), (2, 6, 1 << 20, True), (3, 6 + (400 << 18) + 1, 4, False)]
    assert peak < 8 << 20
