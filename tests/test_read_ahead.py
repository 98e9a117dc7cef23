"""Blocks come in their order, searched or not, whatever happens in the threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.errors import InputError
from lmdiag.read.ahead import read_blocks
from lmdiag.read.files import RawReader


class Pieces(RawReader):
    """An input that gives certain pieces, then ends or breaks off."""

    def __init__(self, pieces: Iterable[bytes], error: InputError | None = None) -> None:
        self._pieces = iter(pieces)
        self._error = error
        self._given = 0

    @property
    def position(self) -> int:
        """Bytes given."""
        return self._given

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Give the next piece."""
        piece = next(self._pieces, b"")
        if not piece and self._error:
            raise self._error
        buffer[: len(piece)] = piece
        self._given += len(piece)
        return len(piece)

    def close(self) -> None:
        """Nothing is open."""


def ones(view: memoryview) -> int:
    """Count a byte."""
    return bytes(view).count(b"1")


def read(raw: RawReader, threads: int) -> list[tuple[bytes, int | None]]:
    """All blocks, copied while they are valid."""
    return [(bytes(block.data[: block.size]), block.found) for block in read_blocks(raw, ones, threads=threads, size=8)]


@given(st.lists(st.binary(min_size=1, max_size=8), max_size=60), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_all_blocks_in_their_order(pieces: list[bytes], threads: int) -> None:
    """With any number of threads; those of a large input are searched."""
    found = read(Pieces(pieces), threads)
    assert [data for data, _ in found] == pieces
    assert [count for _, count in found[:16]] == [None] * min(16, len(pieces))
    assert [count for _, count in found[16:]] == [piece.count(b"1") if threads > 1 else None for piece in pieces[16:]]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_input_that_breaks_off(threads: int) -> None:
    """What came before is given, then the error."""
    got: list[bytes] = []
    with pytest.raises(InputError, match="breaks off"):
        got.extend(bytes(block.data[: block.size]) for block in read_blocks(Pieces([b"1"] * 40, InputError("x: breaks off")), ones, threads=threads))
    blocks = read_blocks(Pieces([b"1"] * 40, InputError("x: breaks off")), ones, threads=threads)
    assert [next(blocks).size for _ in range(40)] == [1] * 40
    with pytest.raises(InputError, match="breaks off"):
        next(blocks)


def test_a_search_that_fails() -> None:
    """Its error is raised where the block would have been given."""

    def search(view: memoryview) -> int:
        raise MemoryError(len(view))

    blocks = read_blocks(Pieces([b"1"] * 40), search, threads=2)
    assert [next(blocks).size for _ in range(16)] == [1] * 16
    with pytest.raises(MemoryError):
        next(blocks)


def test_no_thread_outlives_the_reading() -> None:
    """Neither at the end nor when nobody wants more blocks."""
    read(Pieces([b"1"] * 40), 2)
    blocks = read_blocks(Pieces([b"1"] * 400), ones, threads=2)
    for _ in range(20):
        next(blocks)
    blocks.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "read-ahead":
            thread.join(10)
            assert not thread.is_alive()
