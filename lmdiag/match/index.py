"""The index of the shipped cards: lines of JSON, of which a scan reads those that it needs.

In front stand the format and a checksum of all that follows: the clues, a line for each word with the places of the rules that
are filed under it, the same for beginnings, a line for each rule, and one for each card. Behind it stand the cards' whole data,
each read when it is asked for.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple, cast

from lmdiag.match.cards import read_data
from lmdiag.match.rulebook import Filing
from lmdiag.model import Card, Clue, MatchRule

FORMAT = 3
_MAX_ASKED = 4096
Header = tuple[str, str, str]
"""(title, severity, scope)."""


class Entry(NamedTuple):
    """What must be known of a card before it is needed whole."""

    header: Header
    aliases: tuple[str, ...]
    path: str
    card: Card | None = None
    place: tuple[int, int] = (0, 0)
    """Where the card's data stand in the index, and how long they are."""


class Rules:
    """Rules, each by the place of its line; one is read when it is asked for."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data, self._start, self._end = data, start, end
        self._read: dict[int, MatchRule] = {}

    def __getitem__(self, place: int) -> MatchRule:
        rule = self._read.get(place)
        if rule is None:
            start = self._start + place
            rule = self._read[place] = _rule(self._data[start : self._data.index(b"\n", start)])
        return rule

    def __iter__(self) -> Iterator[MatchRule]:
        return map(_rule, self._data[self._start : self._end].splitlines())


class _Filing(Filing):
    """Lines that begin with a word, in order: a dictionary of them would cost a scan more than it asks."""

    def __init__(
        self, data: bytes, start: int, end: int, beginnings: bytes, silent: list[int], patterns: list[int]
    ) -> None:
        super().__init__(())
        self._data, self._start, self._end = data, start, end
        self._beginnings = beginnings
        self.silent = silent
        self.patterns = patterns
        self._asked: dict[str, list[int]] = {}

    def under(self, word: str) -> list[int]:
        found = self._asked.get(word)
        if found is None:
            if len(self._asked) >= _MAX_ASKED:
                self._asked.clear()
            found = self._asked[word] = self._find(f"{word} ".encode("utf-8", "replace"))
        return found

    def _find(self, key: bytes) -> list[int]:
        lines, low, high = self._data, self._start, self._end
        while low < high:
            middle = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = lines.index(b"\n", middle)
            if lines.startswith(key, middle):
                return [int(number) for number in lines[middle + len(key) : end].split()]
            if lines[middle:end] < key:
                low = end + 1
            else:
                high = middle
        return []

    @cached_property
    def beginnings(self) -> dict[str, list[int]]:
        return cast("dict[str, list[int]]", json.loads(self._beginnings))


class Index:
    """An index in memory. Raises ValueError, KeyError or TypeError if it is not one, or damaged."""

    def __init__(self, file: BinaryIO, directory: str) -> None:
        head = file.readline()
        form, checksum, length = json.loads(head)
        if form != FORMAT:
            raise ValueError(f"its format is {form}, not {FORMAT}")
        data = file.read(length)
        if zlib.adler32(data) != checksum or len(data) != length:
            raise ValueError("it is cut off, or was changed")
        self._path, self._texts = file.name, len(head) + length
        self._directory = directory
        end = data.index(b"\n") + 1
        about = json.loads(data[:end])
        words, beginnings, rules, cards, last = accumulate(about["sizes"], initial=end)
        if cards == last:
            raise ValueError("it names no card")
        self._data, self._cards = data, cards  # nothing is copied: it may be megabytes
        self.clues = [Clue(*clue) for clue in about["clues"]]
        self.rules = Rules(data, rules, cards)
        found = about["silent"], about["patterns"]
        self.filing: Filing = _Filing(data, words, beginnings, data[beginnings:rules], *found)

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All cards."""
        return dict(map(self._entry, self._data[self._cards :].splitlines()))

    def entry(self, card_id: str) -> Entry | None:
        """Return a card by its id."""
        start = self._data.find(f'\n["{card_id}",'.encode("utf-8", "replace"), self._cards - 1) + 1
        return self._entry(self._data[start : self._data.index(b"\n", start)])[1] if start else None

    def _entry(self, line: bytes) -> tuple[str, Entry]:
        name, title, severity, scope, aliases, path, start, size = json.loads(line)
        path, place = os.path.join(self._directory, path), (start, size)
        return name, Entry((title, severity, scope), tuple(aliases), path, None, place)

    def data(self, card_id: str, entry: Entry) -> Any:
        """Return a card's data, or None if they are not there: it is another file by now. Reading TOML takes far longer."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._texts + entry.place[0])
                found, data = json.loads(file.read(entry.place[1]))
        except (OSError, ValueError, TypeError):
            return None
        return data if found == card_id else None


def build_index(cards: Iterable[Card], directory: str) -> bytes:
    """Return the index of the cards of a directory, the same bytes for the same cards."""
    known = sorted(cards, key=lambda card: card.id)
    rules = [rule for card in known for rule in card.rules]
    lines = [_line(rule) for rule in rules]
    places = list(accumulate(map(len, lines), initial=0))
    filing = Filing(rules)
    words = {word: [places[number] for number in numbers] for word, numbers in filing.words.items()}
    beginnings = {text: [places[number] for number in numbers] for text, numbers in filing.beginnings.items()}
    filed = sorted(f"{word} {' '.join(map(str, numbers))}\n".encode() for word, numbers in words.items())
    texts = [_line((card.id, read_data(card.path))) for card in known]
    rows = b"".join(map(_line, _rows(known, directory, list(map(len, texts)))))
    parts = b"".join(filed), _line(beginnings), b"".join(lines), rows
    about = {
        "sizes": list(map(len, parts)),
        "clues": [clue for card in known for clue in card.clues],
        "silent": [places[number] for number in filing.silent],
        "patterns": [places[number] for number in filing.patterns],
    }
    rest = b"".join((_line(about), *parts))
    return _line((FORMAT, zlib.adler32(rest), len(rest))) + rest + b"".join(texts)


def _rows(cards: Iterable[Card], directory: str, sizes: Sequence[int]) -> Iterator[tuple[object, ...]]:
    for card, start, size in zip(cards, accumulate(sizes, initial=0), sizes, strict=False):
        path = os.path.relpath(card.path, directory).replace(os.sep, "/")
        yield card.id, card.title, card.severity, card.scope, card.aliases, path, start, size


def _line(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _rule(line: bytes) -> MatchRule:
    card, message, types, places, pattern = json.loads(line)
    return MatchRule(card, message, tuple(types), tuple(places), pattern)
