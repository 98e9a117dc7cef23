"""Loads card files. All problems of a file are reported together, and a bad card never hides a good one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lmdiag.model import Card, Case, Clue, MatchRule, RaiseSite, Sample, Solution


class Problem(NamedTuple):
    """What is wrong with a card file, and where."""

    path: str
    key: str
    """As in `card.solutions[0].risk`; "" for the file as a whole."""
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


def load_card(path: str) -> tuple[Card | None, tuple[Problem, ...]]:
    """Return the card of a file, or None with everything that is wrong with it. The id is the file's name."""
    data, problem = _read(path)
    if data is None:
        return None, (Problem(path, "", problem),)
    found = tuple(Problem(path, key, message) for key, message in _problems(path, data))
    return (None if found else _card(path, data)), found


def card_of(path: str, data: Any) -> Card | None:
    """Return the card of a file's data, which was checked when its pack was made; None if it cannot be used after all."""
    try:
        return _card(path, data)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def read_data(path: str) -> dict[str, Any] | None:
    """Return the data of a card's file, unchecked; None if it is not TOML, or cannot be read."""
    return _read(path)[0]


def load_cards(directory: str, known: Iterable[str] = ()) -> tuple[tuple[Card, ...], tuple[Problem, ...]]:
    """Return the good cards of a directory and what is below it, sorted by path, and the problems of the others.

    `known` are ids of other packs, to which `related` may refer. Hidden directories are left out: Kubernetes keeps the
    former versions of a mounted ConfigMap in them.
    """
    cards: dict[str, Card] = {}
    paths, problems = _card_files(directory)
    for path in paths:
        card, found = load_card(path)
        problems += found
        if card is not None and card.id in cards:
            problems.append(
                Problem(path, "", f"the id {card.id!r} is taken by {cards[card.id].path}; rename one of the files")
            )
        elif card is not None:
            cards[card.id] = card
    problems += _across(cards, {*known, *(_id(path) for path in paths)})
    return tuple(cards.values()), tuple(problems)


def _card_files(directory: str) -> tuple[list[str], list[Problem]]:
    paths: list[str] = []
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(str(error.filename), "", f"cannot be read: {error.strerror}"))

    for folder, folders, names in os.walk(directory, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [os.path.join(folder, name) for name in names if name.endswith(".toml") and not name.startswith(".")]
    paths = [path for path in paths if not os.path.exists(path) or os.path.isfile(path)]  # a FIFO would be waited for
    return sorted(paths), problems


def _read(path: str) -> tuple[dict[str, Any] | None, str]:
    import tomllib  # only where a card is read: it costs a scan a millisecond

    try:
        with open(path, "rb") as file:
            return tomllib.load(file), ""
    except tomllib.TOMLDecodeError as error:
        return None, f"is not TOML: {error}"
    except UnicodeDecodeError as error:
        return None, f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
    except RecursionError:
        return None, "is nested too deeply"
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"


def _problems(path: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from lmdiag.match.schema import CARD, check_table, is_kebab

    if problem := is_kebab(_id(path)):
        yield "", f"the file's name is the card's id, but {problem}"
    wrong = list(check_table(data, CARD))
    yield from wrong
    if all(message == "still says TODO" and not key.startswith("match") for key, message in wrong):
        from lmdiag.match.card_words import word_problems

        yield from word_problems(data)


def _across(cards: Mapping[str, Card], ids: set[str]) -> Iterator[Problem]:
    """What cards say about each other. A card that could not be loaded still counts as related: it has its own problems."""
    from difflib import get_close_matches

    for card in cards.values():
        for number, related in enumerate(card.related):
            if related == card.id:
                yield Problem(card.path, f"card.related[{number}]", "names the card itself")
            elif related not in ids:
                near = get_close_matches(related, ids - {card.id}, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                yield Problem(card.path, f"card.related[{number}]", f"there is no card {related!r}{hint}")
        for number, alias in enumerate(card.aliases):
            if alias in ids:
                yield Problem(card.path, f"aliases[{number}]", f"{alias!r} is the id of a card")


def _id(path: str) -> str:
    return os.path.basename(path).removesuffix(".toml")


def _tables(value: Any) -> list[dict[str, Any]]:
    return [value] if isinstance(value, dict) else value


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, ())
    return (value,) if isinstance(value, str) else tuple(value)


def _pairs(table: Mapping[str, Any], key: str) -> tuple[tuple[str, Any], ...]:
    return tuple(table.get(key, {}).items())


def _card(path: str, data: dict[str, Any]) -> Card:
    """Build the card from data without problems."""
    text: dict[str, Any] = data["card"]
    example = text.get("example", {})
    return Card(
        id=_id(path),
        title=data["title"],
        severity=data["severity"],
        scope=data["scope"],
        tags=_texts(data, "tags"),
        rules=tuple(
            MatchRule(
                _id(path),
                rule.get("message", ""),
                _texts(rule, "type"),
                _texts(rule, "raised_in"),
                rule.get("pattern", ""),
            )
            for rule in _tables(data["match"])
        ),
        meaning=text["meaning"],
        trigger=text["trigger"],
        situations=_texts(text, "situations"),
        solutions=tuple(
            Solution(item["text"], _pairs(item, "change"), item["risk"], item.get("unless", ""), item.get("when", ""))
            for item in text["solutions"]
        ),
        example_before=example.get("before", ""),
        example_after=example.get("after", ""),
        verify=text.get("verify", {}).get("text", ""),
        related=_texts(text, "related"),
        references=_texts(text, "references"),
        raised_at=tuple(
            RaiseSite(item["project"], item["file"], item["function"], _pairs(item, "lines"), item.get("last", ""))
            for item in data.get("raised_at", ())
        ),
        aliases=_texts(data, "aliases"),
        samples=tuple(Sample(item["log"], _pairs(item, "fields"), _pairs(item, "change")) for item in data["sample"]),
        near_misses=tuple(Sample(item["log"]) for item in data["near_miss"]),
        path=path,
        clues=tuple(Clue(_id(path), item["name"], item["message"]) for item in data.get("clue", ())),
        cases=tuple(Case(item["when"], item["text"]) for item in text.get("cases", ())),
    )
