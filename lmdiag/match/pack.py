"""The cards that a scan works with: the shipped ones from their index, a site's own over them.

`python -m lmdiag.match.pack DIR` writes DIR/index.json, so that a thousand cards cost no start-up time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import lmdiag
from lmdiag.errors import CardError
from lmdiag.match.cards import Problem, load_cards, load_checked_card
from lmdiag.model import Card, Clue, MatchRule

INDEX = "index.json"
DISABLED = "disabled"
"""A file beside a site's own cards: ids of cards that are not to be used."""
FORMAT = 2
Header = tuple[str, str, str]
"""(title, severity, scope)."""


class _Entry(NamedTuple):
    """What must be known of a card before it is needed whole."""

    header: Header
    rules: tuple[MatchRule, ...]
    aliases: tuple[str, ...]
    path: str
    clues: tuple[Clue, ...]
    card: Card | None = None


class Pack:
    """Cards by id. Their texts are read when they are asked for."""

    def __init__(self, entries: dict[str, _Entry], problems: Iterable[Problem], own: Mapping[str, str]) -> None:
        self._entries = dict(sorted(entries.items()))
        self._aliases = {alias: name for name, entry in self._entries.items() for alias in entry.aliases}
        self.problems = tuple(problems)
        """What is wrong with cards that were therefore left out, and with directories that cannot be read."""
        self.ids = tuple(self._entries)
        self.headers = {name: entry.header for name, entry in self._entries.items()}
        self.own = own
        """The paths of the cards that come from a site's own directories."""
        self.rules = tuple(rule for entry in self._entries.values() for rule in entry.rules)
        self.clues = tuple(clue for entry in self._entries.values() for clue in entry.clues)

    def card(self, card_id: str) -> Card:
        """Return a whole card, by its id or a former one. Raises CardError if there is none, or its file is bad."""
        name = card_id if card_id in self._entries else self._aliases.get(card_id)
        if name is None:
            raise CardError(f"there is no card {card_id!r}; `lmdiag cards list` names them all")
        entry = self._entries[name]
        if entry.card is not None:
            return entry.card
        card, problems = load_checked_card(entry.path)
        if card is None:
            raise CardError("\n".join(map(str, problems)))
        self._entries[name] = entry._replace(card=card)
        return card


def load_pack(rules_dirs: Sequence[str] = (), *, disabled: Iterable[str] = (), shipped: str | None = None) -> Pack:
    """Load the shipped cards (from `shipped` instead of the installed ones, if given), then each directory of a site.

    A later card replaces an earlier one of the same id. Cards are taken out whose ids are `disabled` or named, one a
    line, in the file `disabled` of one of the directories. Nothing here is fatal: see Pack.problems.
    """
    entries, problems = _shipped(shipped or shipped_directory())
    own: dict[str, str] = {}
    named = [("", name) for name in disabled]
    for directory in rules_dirs:
        found, more = load_cards(directory, entries)
        entries |= {card.id: _entry(card) for card in found}
        own |= {card.id: card.path for card in found}
        path = os.path.join(directory, DISABLED)
        ids, unreadable = _disabled(path)
        named += [(path, name) for name in ids]
        problems += (*more, *unreadable)
    problems += _take_out(entries, named)
    return Pack(entries, problems, {name: path for name, path in own.items() if name in entries})


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


def _take_out(entries: dict[str, _Entry], named: Iterable[tuple[str, str]]) -> list[Problem]:
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


def build_index(cards: Iterable[Card], directory: str) -> bytes:
    """Return the index of the cards of a directory: JSON, one card a line, the same bytes for the same cards."""
    import json

    rows = [json.dumps(_row(card, directory), ensure_ascii=False) for card in sorted(cards, key=lambda card: card.id)]
    return (f'{{"format": {FORMAT}, "cards": [\n' + ",\n".join(rows) + "\n]}\n").encode()


def _row(card: Card, directory: str) -> dict[str, object]:
    return {
        "path": os.path.relpath(card.path, directory).replace(os.sep, "/"),
        "id": card.id,
        "title": card.title,
        "severity": card.severity,
        "scope": card.scope,
        "aliases": card.aliases,
        "match": [rule[1:] for rule in card.rules],
        "clue": [clue[1:] for clue in card.clues],
    }


def _shipped(directory: str) -> tuple[dict[str, _Entry], list[Problem]]:
    path = os.path.join(directory, INDEX)
    problems: list[Problem] = []
    try:
        return _read_index(path, directory), problems
    except FileNotFoundError:
        pass  # a checkout: the index is made with the wheel
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        again = f"`python -m lmdiag.match.pack {directory}` makes it again"
        problems.append(Problem(path, "", f"the index cannot be used, the cards are read instead; {again} ({error!r})"))
    cards, found = load_cards(directory)
    return {card.id: _entry(card) for card in cards}, [*problems, *found]


def _read_index(path: str, directory: str) -> dict[str, _Entry]:
    import json

    with open(path, "rb") as file:
        data = json.loads(file.read())
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']}, not {FORMAT}")
    if not data["cards"]:
        raise ValueError("it names no card")
    return {row["id"]: _indexed(row, directory) for row in data["cards"]}


def _indexed(row: dict[str, Any], directory: str) -> _Entry:
    rules = tuple(
        MatchRule(row["id"], text, tuple(types), tuple(places), pattern)
        for text, types, places, pattern in row["match"]
    )
    header = (row["title"], row["severity"], row["scope"])
    clues = tuple(Clue(row["id"], name, message) for name, message in row["clue"])
    return _Entry(header, rules, tuple(row["aliases"]), os.path.join(directory, row["path"]), clues)


def _entry(card: Card) -> _Entry:
    return _Entry((card.title, card.severity, card.scope), card.rules, card.aliases, card.path, card.clues, card)


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
