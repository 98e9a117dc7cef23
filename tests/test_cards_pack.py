"""The shipped cards: each is valid, complete, recognises its own samples, and no other card does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmdiag.match.card_sites import rows_of_rule
from lmdiag.match.cards import load_card, load_cards
from lmdiag.match.index import build_index
from lmdiag.match.library import open_library
from lmdiag.match.matcher import Matcher
from lmdiag.match.pack import INDEX
from lmdiag.match.templates import Template
from lmdiag.model import Card, Frame, Match

RULES = Path(__file__).parent.parent / "rules"
PATHS = sorted(RULES.rglob("*.toml"))
FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
EXCEPTION = re.compile(r"(?:^|[\s\]])(?:\w+\.)*([A-Z]\w*(?:Error|Exception)): ")

each_card = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


@pytest.fixture(scope="module")
def cards() -> dict[str, Card]:
    return {card.id: card for card in load_cards(str(RULES))[0]}


def error_line(card: Card, log: str) -> tuple[str | None, str]:
    """The type, if it is there, and the message on the last line that has the first words of one of the card's templates."""
    literals = [Template(rule.message).literals for rule in card.rules if rule.message]
    heads = [(next(filter(str.strip, some)).strip(), bool(some[0])) for some in literals]
    lines = [line for line in log.split("\n") if any(head in line for head, _ in heads)]
    silent = {name for rule in card.rules if not rule.message for name in rule.types}
    if not lines and silent:  # told by its frame alone
        return next(line.split()[-1] for line in log.split("\n") if line.split()[-1:] and line.split()[-1] in silent), ""
    assert lines, f"no line of the sample has one of {heads}"
    kind = EXCEPTION.search(lines[-1])
    if kind:
        return kind.group(1), lines[-1][kind.end() :]
    return None, lines[-1][min(lines[-1].index(head) * first for head, first in heads if head in lines[-1]) :]


def matched(cards: list[Card], card: Card, log: str) -> Match | None:
    """What a matcher of these cards says to the sample's error line; one that its card knows only in part is a cut one."""
    name, message = error_line(card, log)
    frames = [Frame(file, int(line), function) for file, line, function in FRAME.findall(log)]
    cut = Matcher(card.rules).match(name, message, frames) is None
    return Matcher(rule for item in cards for rule in item.rules).match(name, message, frames, truncated=cut)


def test_there_are_cards_and_they_agree_with_each_other() -> None:
    found, problems = load_cards(str(RULES))
    assert list(map(str, problems)) == []
    assert len(found) == len(PATHS) > 0


@each_card
def test_a_card_is_valid_and_complete(path: Path) -> None:
    card, problems = load_card(str(path))
    assert list(map(str, problems)) == []
    assert card is not None
    missing = [
        name for name in ("tags", "references", "example_before", "example_after", "verify") if not getattr(card, name)
    ]
    assert missing == []


@each_card
def test_the_error_line_of_each_sample_gives_this_card(path: Path, cards: dict[str, Card]) -> None:
    card = cards[path.stem]
    found = [matched([*cards.values()], card, sample.log) for sample in card.samples]
    assert [match and match.card for match in found] == [card.id] * len(card.samples)


@each_card
def test_no_other_card_claims_a_sample(path: Path, cards: dict[str, Card]) -> None:
    card = cards[path.stem]
    others = [item for item in cards.values() if item is not card]
    assert [matched(others, card, sample.log) for sample in card.samples] == [None] * len(card.samples)


@each_card
def test_related_cards_exist(path: Path, cards: dict[str, Card]) -> None:
    assert set(cards[path.stem].related) <= cards.keys() - {path.stem}


@each_card
def test_each_message_is_raised_by_a_release(path: Path, cards: dict[str, Card]) -> None:
    """A rule about vLLM's or LMCache's words agrees with the catalogue: text and type."""
    sites = open_library().sites[0]
    rules = [rule for rule in cards[path.stem].rules if rule.message and not cards[path.stem].raised_at]
    assert [rule.message for rule in rules if not rows_of_rule(rule, sites)] == []


@each_card
def test_each_newest_wording_is_covered(path: Path, cards: dict[str, Card]) -> None:
    """What the catalogue knows a card's message to have been reworded to is a message of the card too."""
    sites = open_library().sites[0]
    rows = {row.number: row for rule in cards[path.stem].rules if rule.message for row in rows_of_rule(rule, sites)}
    successors = {new for old, new in sites.catalog.renamed.items() if old in rows}
    assert [sites.catalog.row(number).template for number in successors - rows.keys()] == []


def test_the_index_is_fresh() -> None:
    """`python -m lmdiag.match.pack rules` makes it again."""
    found, _ = load_cards(str(RULES))
    assert (RULES / INDEX).read_bytes() == build_index(found, str(RULES))
