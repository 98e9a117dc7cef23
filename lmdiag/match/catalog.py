"""The catalogue of raise sites, unpacked piece by piece as it is asked."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, overload

from lmdiag.errors import CatalogError
from lmdiag.match.catalog_format import FORMAT, MAGIC, ROWS_PER_BLOCK
from lmdiag.match.known_sites import CatalogRow, site_of
from lmdiag.match.versions import release_name

_MAX_HEAD_LINE = 64
_MAX_PART = 64 << 20
"""Bytes of a part when it is unpacked; the largest has two million."""
_MAX_ROWS = 2048
_MAX_BLOCKS = 8
"""Kept unpacked. All of them would be 36 MB, and a scan needs a few."""


class Catalog:
    """A catalogue in memory. Raises CatalogError when a part that is asked for is damaged."""

    def __init__(self, data: bytes, path: str) -> None:
        self.path = path
        self._data = data
        with _Reading(path):
            magic, form, length = data[: data.index(b"\n", 0, _MAX_HEAD_LINE)].split()
            if magic.decode() != MAGIC or int(form) != FORMAT:
                raise CatalogError(f"{path}: not a catalogue of format {FORMAT}; `lmdiag catalog build` makes one")
            self._start = data.index(b"\n") + 1
            head = self._unpack([0, int(length)])
            self._start += int(length)
            self.versions: dict[str, list[str]] = {
                name: list(map(str, found)) for name, found in head["versions"].items()
            }
            self._parts: dict[str, list[int]] = head["parts"]
            self._blocks: list[list[int]] = head["blocks"]
            places: list[list[int]] = head["texts"]
            if self._start + max(map(sum, (*self._parts.values(), *places, *self._blocks))) != len(data):
                raise ValueError("it is cut off")
            if not len(places) == len(self._blocks) == -(-head["rows"] // ROWS_PER_BLOCK):
                raise ValueError("it has more texts than rows, or fewer")
            self.texts: Sequence[str] = _Texts(self, head["rows"], places)
            """The key of each row, by its number."""
        self._numbers = {name: {version: n for n, version in enumerate(found)} for name, found in self.versions.items()}
        self._unpacked: dict[int, list[Any]] = {}
        self._rows: dict[int, CatalogRow] = {}

    def _bytes(self, place: Sequence[int]) -> bytes:
        start, unpacker = self._start + place[0], zlib.decompressobj()
        data = unpacker.decompress(self._data[start : start + place[1]], _MAX_PART)
        if not unpacker.eof:
            raise ValueError("a part is cut off, or larger than any")
        return data

    def _unpack(self, place: Sequence[int]) -> Any:
        import json

        return json.loads(self._bytes(place))

    def _lines(self, name: str) -> list[str]:
        with _Reading(self.path):
            text = self._bytes(self._parts[name]).decode()
        return text.split("\n") if text else []

    def keys(self, place: Sequence[int], count: int) -> list[str]:
        """Return the keys of a block of so many rows."""
        with _Reading(self.path):
            keys = self._bytes(place).decode().split("\n")
            if len(keys) != count:
                raise ValueError("it has more texts than rows, or fewer")
            return keys

    @cached_property
    def _words(self) -> list[str]:
        """Lines that begin with a word, sorted; a dictionary of them would cost most scans more than they ask."""
        return self._lines("words")

    def filed_under(self, word: str) -> list[int]:
        """Return the numbers of the rows that are filed under a word."""
        lines = self._words
        index = bisect_left(lines, f"{word} ")
        found, _, numbers = lines[index].partition(" ") if index < len(lines) else ("", "", "")
        return self._numbers_in(numbers, len(self.texts)) if found == word else []

    def _numbers_in(self, text: str, end: int) -> list[int]:
        with _Reading(self.path):
            numbers = [int(number) for number in text.split()]
            if numbers and not 0 <= min(numbers) <= max(numbers) < end:
                raise ValueError("a number of no row")
            return numbers

    @cached_property
    def _files(self) -> dict[str, str]:
        return {path: numbers for path, _, numbers in (line.partition(" ") for line in self._lines("files"))}

    @cached_property
    def renamed(self) -> dict[int, int]:
        """Row -> the row that took its place when the message was reworded."""
        pairs = [self._numbers_in(line, len(self.texts)) for line in self._lines("renamed")]
        with _Reading(self.path):
            return {old: new for old, new in pairs}  # noqa: C416 - a pair that is none is noticed

    def row(self, number: int) -> CatalogRow:
        """Return a row by its number."""
        row = self._rows.get(number)
        if row is None:
            block, index = divmod(number, ROWS_PER_BLOCK)
            with _Reading(self.path):
                names, first, *more = self._block(block)[index]
                found = tuple(site_of(site, self.versions) for site in (first, *more))
                row = CatalogRow(number, self.texts[number], tuple(names.split()), found)
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            self._rows[number] = row
        return row

    def _block(self, number: int) -> list[Any]:
        if number not in self._unpacked:
            if len(self._unpacked) >= _MAX_BLOCKS:
                self._unpacked.clear()
            self._unpacked[number] = self._unpack(self._blocks[number])
        return self._unpacked[number]

    def release_of(self, project: str, version: str | None) -> int | None:
        """Return the release that a version is, as a number: `0.27.1+cu129` is 0.27.1; a nightly build is none."""
        if version is None or project not in self._numbers:
            return None
        return self._numbers[project].get(release_name(version))

    def rows_of_file(self, path: str) -> Iterator[CatalogRow]:
        """Yield the rows that have a site in a file, and others of their blocks."""
        for block in self._numbers_in(self._files.get(path, ""), len(self._blocks)):
            first = block * ROWS_PER_BLOCK
            yield from map(self.row, range(first, min(first + ROWS_PER_BLOCK, len(self.texts))))


class _Texts(Sequence[str]):
    """The keys of all rows; a block is unpacked when one of it is asked for: a message is compared with a few dozen."""

    def __init__(self, catalog: Catalog, count: int, places: Sequence[Sequence[int]]) -> None:
        self._catalog, self._count, self._places = catalog, count, places
        self._blocks: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        block, index = divmod(number, ROWS_PER_BLOCK)
        keys = self._blocks.get(block)
        if keys is None:
            count = min(ROWS_PER_BLOCK, self._count - block * ROWS_PER_BLOCK)
            keys = self._blocks[block] = self._catalog.keys(self._places[block], count)
        return keys[index]


class _Reading:
    """Whatever goes wrong while a part is read says that the file is damaged."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError | TypeError | LookupError | AttributeError | RecursionError | zlib.error):
            raise _damaged(self._path, error) from None


def _damaged(path: str, error: object) -> CatalogError:
    return CatalogError(
        f"{path}: the catalogue is damaged ({error}); raise sites are left out until it is restored or built again"
    )


def read_catalog(path: str) -> Catalog:
    """Read the catalogue in a file. Raises CatalogError if there is none, or it is damaged or of another format."""
    try:
        if not os.path.isfile(path) and os.path.exists(path):  # a pipe would never end
            raise CatalogError(f"{path}: not a file; raise sites are left out")
        with open(path, "rb") as file:
            data = file.read(_MAX_PART)
    except OSError as error:
        raise CatalogError(
            f"{path}: no catalogue can be read there ({error.strerror}); raise sites are left out"
        ) from None
    return Catalog(data, path)
