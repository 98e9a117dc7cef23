"""The catalogue of raise sites, unpacked piece by piece as it is asked."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from lmdiag.errors import CatalogError
from lmdiag.match.catalog_format import FORMAT, HOLE, HOWS, LINE_BREAK, MAGIC, OPAQUE, ROWS_PER_BLOCK
from lmdiag.match.versions import release_name

_MAX_HEAD_LINE = 64
_MAX_ROWS = 2048
_MAX_BLOCKS = 8
"""Kept unpacked. All of them would be 36 MB, and a scan needs a few."""


class KnownSite(NamedTuple):
    """A place that raises a message, over the releases of a project."""

    project: str
    file: str
    """Path from the root of the repository."""
    qualname: str
    how: str
    validator: bool
    """pydantic hides its frame and type."""
    changes: list[list[Any]]
    runs: list[list[int]]
    releases: Sequence[str]
    """All releases of the project, oldest first: what `changes` and `runs` count."""

    @property
    def function(self) -> str:
        """The name that a traceback shows."""
        return self.qualname.rpartition(".")[2]

    @property
    def first(self) -> int:
        """The first release that has it, as a number into `releases`."""
        return min(run[0] for run in self.runs)

    @property
    def last(self) -> int:
        """The last release that has it."""
        return max(run[0] + len(run) - 2 for run in self.runs)

    def lines_in(self, release: int) -> tuple[int, ...]:
        """Return its lines in a release, ascending; none where it is not there."""
        found = [sum(run[1 : release - run[0] + 2]) for run in self.runs if _covers(run, release)]
        return (found[0],) if len(found) == 1 else tuple(sorted(found))

    def is_in(self, release: int) -> bool:
        """Whether a release has it."""
        return any(_covers(run, release) for run in self.runs)

    def type_in(self, release: int) -> tuple[str, str]:
        """Return the exception's type and family in a release: `VLLMValidationError` is no ValueError in all of them."""
        _, kind, *family = max((item for item in self.changes if item[0] <= release), key=lambda item: item[0])
        return kind, family[0] if family else kind


def _covers(run: list[int], release: int) -> bool:
    return run[0] <= release <= run[0] + len(run) - 2


class CatalogRow(NamedTuple):
    """One message, and where it is raised."""

    number: int
    key: str
    names: tuple[str, ...]
    """Of its holes; `_` where they have none."""
    sites: tuple[KnownSite, ...]
    """The one that is there longest stands first."""

    @property
    def id(self) -> str:
        """A name for the message that stays the same over releases."""
        return key_id(self.key)

    @property
    def template(self) -> str:
        """The message as a card's template would say it: `{name}` for holes, doubled braces, white space folded."""
        if self.key.startswith(OPAQUE):
            return ""
        literals = self.key.replace(LINE_BREAK, " ").replace("{", "{{").replace("}", "}}").split(HOLE)
        named = (f"{{{name}}}{literal}" for name, literal in zip(self.names, literals[1:], strict=False))
        return literals[0] + "".join(named)


def key_id(key: str) -> str:
    """Return the id of a row's key: ten hexadecimal digits of its SHA-1, line breaks taken as blanks."""
    import hashlib

    return hashlib.sha1(key.replace(LINE_BREAK, " ").encode(), usedforsecurity=False).hexdigest()[:10]


class Catalog:
    """A catalogue in memory. Raises CatalogError when a part that is asked for is damaged."""

    def __init__(self, data: bytes, path: str) -> None:
        self.path = path
        self._data = data
        try:
            magic, form, length = data[: data.index(b"\n", 0, _MAX_HEAD_LINE)].split()
            if magic.decode() != MAGIC or int(form) != FORMAT:
                raise CatalogError(f"{path}: not a catalogue of format {FORMAT}; `lmdiag catalog build` makes one")
            self._start = data.index(b"\n") + 1
            head = self._unpack([0, int(length)])
            self._start += int(length)
            self.versions: dict[str, list[str]] = head["versions"]
            self._parts: dict[str, list[int]] = head["parts"]
            self._blocks: list[list[int]] = head["blocks"]
            end = self._start + max(map(sum, (*self._parts.values(), *self._blocks)))
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(path, error) from None
        if end != len(data):
            raise _damaged(path, "it is cut off")
        self._projects = list(self.versions)
        self._numbers = {name: {version: n for n, version in enumerate(found)} for name, found in self.versions.items()}
        self._unpacked: dict[int, list[Any]] = {}
        self._rows: dict[int, CatalogRow] = {}

    def _bytes(self, place: Sequence[int]) -> bytes:
        start = self._start + place[0]
        try:
            return zlib.decompress(self._data[start : start + place[1]])
        except zlib.error as error:
            raise _damaged(self.path, error) from None

    def _unpack(self, place: Sequence[int]) -> Any:
        import json

        try:
            return json.loads(self._bytes(place))
        except ValueError as error:
            raise _damaged(self.path, error) from None

    def _lines(self, name: str) -> list[str]:
        text = self._bytes(self._parts[name]).decode()
        return text.split("\n") if text else []

    @cached_property
    def texts(self) -> list[str]:
        """The key of each row, by its number."""
        return self._lines("texts")

    @cached_property
    def _words(self) -> list[str]:
        """Lines that begin with a word, sorted; a dictionary of them would cost most scans more than they ask."""
        return self._lines("words")

    def filed_under(self, word: str) -> list[int]:
        """Return the numbers of the rows that are filed under a word."""
        lines = self._words
        index = bisect_left(lines, f"{word} ")
        found, _, numbers = lines[index].partition(" ") if index < len(lines) else ("", "", "")
        return [int(number) for number in numbers.split()] if found == word else []

    @cached_property
    def _files(self) -> dict[str, str]:
        return {path: numbers for path, _, numbers in (line.partition(" ") for line in self._lines("files"))}

    @cached_property
    def renamed(self) -> dict[int, int]:
        """Row -> the row that took its place when the message was reworded."""
        return {int(old): int(new) for old, new in map(str.split, self._lines("renamed"))}

    def row(self, number: int) -> CatalogRow:
        """Return a row by its number."""
        row = self._rows.get(number)
        if row is None:
            block, index = divmod(number, ROWS_PER_BLOCK)
            names, *sites = self._block(block)[index]
            found = tuple(self._site(*site) for site in sites)
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

    def _site(self, project: int, file: str, qualname: str, how: str, changes: list[Any], runs: list[Any]) -> KnownSite:
        name = self._projects[project]
        return KnownSite(name, file, qualname, HOWS[how[0]], how.endswith("v"), changes, runs, self.versions[name])

    def release_of(self, project: str, version: str | None) -> int | None:
        """Return the release that a version is, as a number: `0.27.1+cu129` is 0.27.1; a nightly build is none."""
        if version is None or project not in self._numbers:
            return None
        return self._numbers[project].get(release_name(version))

    def rows_of_file(self, path: str) -> Iterator[CatalogRow]:
        """Yield the rows that have a site in a file, and others of their blocks."""
        for block in map(int, self._files.get(path, "").split()):
            first = block * ROWS_PER_BLOCK
            yield from map(self.row, range(first, first + len(self._block(block))))

    def number_of(self, row_id: str) -> int | None:
        """Return the number of the row of an id, or of the beginning of one if it is the only one."""
        found = [number for number, key in enumerate(self.texts) if key_id(key).startswith(row_id)]
        return found[0] if len(found) == 1 else None


def _damaged(path: str, error: object) -> CatalogError:
    return CatalogError(
        f"{path}: the catalogue is damaged ({error}); raise sites are left out until it is restored or built again"
    )


def read_catalog(path: str) -> Catalog:
    """Read the catalogue in a file. Raises CatalogError if there is none, or it is damaged or of another format."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CatalogError(
            f"{path}: no catalogue can be read there ({error.strerror}); raise sites are left out"
        ) from None
    return Catalog(data, path)
