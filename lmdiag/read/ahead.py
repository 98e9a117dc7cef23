"""Reads an input's blocks ahead, and has them searched, in threads of its own.

Reading, decompressing and searching leave Python's lock to others, so that two cores share the work on one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from lmdiag.read.files import RawReader

T = TypeVar("T")

BLOCK = 1 << 19
"""Bytes of a block: it fits a core's second cache beside what is looked for in it."""
_ALONE = 16
"""Blocks that are read without threads first: most logs have fewer, and threads cost an import."""


class Block(NamedTuple, Generic[T]):
    """What was read at once."""

    data: bytearray
    """Valid until the next block is asked for."""
    size: int
    """Bytes of it that were read."""
    found: T | None
    """What the search has found in them; None where the block was not searched."""


def read_blocks(
    raw: RawReader, search: Callable[[memoryview], T], *, threads: int, size: int = BLOCK
) -> Iterator[Block[T]]:
    """Yield the input's blocks in their order, searched from the 17th on, unless `threads` is below 2.

    Raises the InputError of `raw` after all blocks before it.
    """
    buffer = bytearray(size)
    view = memoryview(buffer)
    done = 0
    while threads < 2 or done < _ALONE:
        count = raw.readinto(view)
        if not count:
            return
        yield Block(buffer, count, None)
        done += 1
    yield from _Ahead(raw, search, threads, size).blocks()


class _Ahead(Generic[T]):
    """Threads that take turns: one reads the next block, while the others search what they have read."""

    def __init__(self, raw: RawReader, search: Callable[[memoryview], T], threads: int, size: int) -> None:
        from queue import SimpleQueue
        from threading import Lock

        self._raw = raw
        self._search = search
        self._threads = threads
        self._turn = Lock()
        self._number = 0
        self._over = False
        self._free: Any = SimpleQueue()
        self._ready: Any = SimpleQueue()
        for _ in range(2 * threads):
            self._free.put(bytearray(size))

    def blocks(self) -> Iterator[Block[T]]:
        """Start the threads; yield blocks until the end; let the threads end."""
        from threading import Thread

        for _ in range(self._threads):
            Thread(target=self._work, name="read-ahead", daemon=True).start()
        early: dict[int, Block[T] | BaseException | None] = {}
        number = 0
        try:
            while True:
                while number not in early:
                    at, item = self._ready.get()
                    early[at] = item
                block = early.pop(number)
                if block is None:
                    return
                if isinstance(block, BaseException):
                    raise block
                yield block
                self._free.put(block.data)
                number += 1
        finally:
            self._over = True
            for _ in range(self._threads):
                self._free.put(None)

    def _work(self) -> None:
        while (buffer := self._free.get()) is not None and not self._over:
            view = memoryview(buffer)
            with self._turn:
                number, self._number = self._number, self._number + 1
                item = self._read(view)
            if isinstance(item, int):
                self._ready.put((number, self._searched(buffer, view[:item])))
                continue
            self._ready.put((number, item))
            return

    def _read(self, view: memoryview) -> int | BaseException | None:
        """Return how many bytes were read; None at the end, and behind it; an error as it is."""
        if self._over:
            return None
        try:
            count = self._raw.readinto(view)
        except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
            self._over = True
            return error
        self._over = not count
        return count or None

    def _searched(self, buffer: bytearray, view: memoryview) -> Block[T] | BaseException:
        try:
            return Block(buffer, len(view), self._search(view))
        except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
            return error
