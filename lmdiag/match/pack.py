"""The cards that a scan works with: the shipped ones from their index, a site's own over them.

`python -m lmdiag.match.pack DIR` writes DIR/index.json, so that a thousand cards cost no start-up time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import lmdiag
from lmdiag.errors import CardError
from lmdiag.match.cards import Problem, card_of, load_card, load_cards
from lmdiag.match.index import Entry, Header, Index, build_index
from lmdiag.match.rulebook import Rulebook
from lmdiag.model import Card, Clue, MatchRule

INDEX = "index.json"
DISABLED = "disabled"
"""A file beside a site's own cards: ids of cards that are not to be used."""


class Pack:
    """Cards by id: those of the index, without the `hidden` ones, and others. What is not asked for is not read."""

    def __init__(
        self,
        entries: dict[str, Entry],
        problems: Iterable[Problem],
        own: Mapping[str, str],
        index: Index | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._others = entries
        self._read: dict[str, Card] = {}
        self._index = index
        self.problems = tuple(problems)
        """What is wrong with cards that were therefore left out, and with directories that cannot be read."""
        self.own = own
        """The paths of the cards that come from a site's own directories."""
        self.book = Rulebook(index.rules, index.filing, hidden) if index else None
        """The rules of the index."""
        self._hidden = hidden

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        indexed = self._index.entries if self._index else {}
        shown = {name: entry for name, entry in indexed.items() if name not in self._hidden}
        return dict(sorted((shown | self._others).items()))

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in order."""
        return tuple(self._entries)

    @property
    def headers(self) -> dict[str, Header]:
        """Title, severity and scope of each card."""
        return {name: entry.header for name, entry in self._entries.items()}

    @property
    def others(self) -> tuple[MatchRule, ...]:
        """The rules of cards that are not in the index."""
        return tuple(rule for _, entry in sorted(self._others.items()) if entry.card for rule in entry.card.rules)

    @property
    def rules(self) -> tuple[MatchRule, ...]:
        """All rules."""
        return (*(self.book.shown(self.book.rules) if self.book else ()), *self.others)

    @property
    def clues(self) -> tuple[Clue, ...]:
        """What else the cards want to know of a log."""
        indexed = self._index.clues if self._index else ()
        found = [clue for clue in indexed if clue.card not in self._hidden]
        found += [clue for entry in self._others.values() if entry.card for clue in entry.card.clues]
        return tuple(sorted(found, key=lambda clue: clue.card))

    def card(self, card_id: str) -> Card:
        """Return a whole card, by its id or a former one. Raises CardError if there is none, or its file is bad."""
        entry = self._entry(card_id)
        if entry.card is not None:
            return entry.card
        name = os.path.basename(entry.path).removesuffix(".toml")
        if name not in self._read:
            card = card_of(entry.path, self._index.data(name, entry)) if self._index else None
            if card is None:
                card, problems = load_card(entry.path)
            if card is None:
                raise CardError("\n".join(map(str, problems)))
            self._read[name] = card
        return self._read[name]

    def _entry(self, card_id: str) -> Entry:
        if card_id in self._others:
            return self._others[card_id]
        found = self._index.entry(card_id) if self._index and card_id not in self._hidden else None
        if found is None:
            name = next((name for name, entry in self._entries.items() if card_id in entry.aliases), None)
            if name is None:
                raise CardError(f"there is no card {card_id!r}; `lmdiag cards list` names them all")
            found = self._entries[name]
        return found


def load_pack(rules_dirs: Sequence[str] = (), *, disabled: Iterable[str] = (), shipped: str | None = None) -> Pack:
    """Load the shipped cards (from `shipped` instead of the installed ones, if given), then each directory of a site.

    A later card replaces an earlier one of the same id. Cards are taken out whose ids are `disabled` or named, one a
    line, in the file `disabled` of one of the directories. Nothing here is fatal: see Pack.problems.
    """
    index, others, problems = _shipped(shipped or shipped_directory())
    named = [("", name) for name in disabled]
    if not (rules_dirs or named):  # the entries of the index are not read for nothing
        return Pack(others, problems, {}, index)
    entries = {**(index.entries if index else {}), **others}
    own: dict[str, str] = {}
    for directory in rules_dirs:
        found, more = load_cards(directory, entries)
        entries |= {card.id: _entry(card) for card in found}
        own |= {card.id: card.path for card in found}
        path = os.path.join(directory, DISABLED)
        ids, unreadable = _disabled(path)
        named += [(path, name) for name in ids]
        problems += (*more, *unreadable)
    problems += _take_out(entries, named)
    others = {name: entry for name, entry in entries.items() if entry.card}
    hidden = frozenset(index.entries) - (entries.keys() - others.keys()) if index else frozenset()
    return Pack(others, problems, {name: path for name, path in own.items() if name in entries}, index, hidden)


def _disabled(path: str) -> tuple[list[str], list[Problem]]:
    """Read the ids of a file: one a line, `#` begins a comment."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except FileNotFoundError:
        return [], []
    except (OSError, UnicodeDecodeError) as error:
        return [], [Problem(path, "", f"cannot be read: {error}")]
    return [line for line in lines if line], []


def _take_out(entries: dict[str, Entry], named: Iterable[tuple[str, str]]) -> list[Problem]:
    """Remove cards by id or former id; say which ids there are not."""
    aliases = {alias: name for name, entry in entries.items() for alias in entry.aliases}
    problems = []
    known = {*entries, *aliases}
    for path, name in named:
        if name in known:
            entries.pop(aliases.get(name, name), None)
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`lmdiag cards list` names them all"
        problems.append(Problem(path, "", f"to be disabled, but there is no card {name!r}; {hint}"))
    return problems


def shipped_directory() -> str:
    """Return where the shipped cards lie: the package lmdiag.rules, or `rules` beside lmdiag in a bare checkout."""
    try:
        __import__("lmdiag.rules")  # importlib would be one more module to load
        package = sys.modules["lmdiag.rules"].__file__
    except ImportError:
        package = None
    if package:
        return os.path.dirname(os.path.abspath(package))
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(lmdiag.__file__))), "rules")


def _shipped(directory: str) -> tuple[Index | None, dict[str, Entry], list[Problem]]:
    """Return the index, or without one that can be used the cards; and what is wrong."""
    path = os.path.join(directory, INDEX)
    problems: list[Problem] = []
    try:
        with open(path, "rb") as file:
            return Index(file, directory), {}, problems
    except FileNotFoundError:
        pass  # a checkout: the index is made with the wheel
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        again = f"`python -m lmdiag.match.pack {directory}` makes it again"
        problems.append(Problem(path, "", f"the index cannot be used, the cards are read instead; {again} ({error!r})"))
    cards, found = load_cards(directory)
    return None, {card.id: _entry(card) for card in cards}, [*problems, *found]


def _entry(card: Card) -> Entry:
    return Entry((card.title, card.severity, card.scope), card.aliases, card.path, card)


def main(arguments: Sequence[str]) -> int:
    """Write the index of a directory. Returns 1, and writes nothing, if a card has a problem."""
    directory = arguments[0] if arguments else shipped_directory()
    cards, problems = load_cards(directory)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    if problems:
        return 1
    with open(os.path.join(directory, INDEX), "wb") as file:
        file.write(build_index(cards, directory))
    sys.stdout.write(f"{len(cards)} cards in {os.path.join(directory, INDEX)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
