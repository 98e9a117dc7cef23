"""Runs the samples of cards through the whole pipeline: what a card promises is what a scan does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lmdiag.diagnose.cards import Cards
from lmdiag.match.cards import Problem
from lmdiag.match.clues import Clues
from lmdiag.match.matcher import Matcher
from lmdiag.match.settings import Settings
from lmdiag.model import Card, Frame, Incident, Line, Match, Sample
from lmdiag.pipeline import Pipeline


class CardSet:
    """Cards that are in memory already, in the role of the pack."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self._cards = {card.id: card for card in cards}
        self._matcher = Matcher(rule for card in self._cards.values() for rule in card.rules)
        self.clues = Clues(clue for card in self._cards.values() for clue in card.clues)
        self.settings: Settings = {}

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits an exception best, or None."""
        return self._matcher.match(type, message, frames, truncated=truncated)

    def card(self, card_id: str) -> Card:
        """Return a card of the set."""
        return self._cards[card_id]

    def raise_site(self, *_: object, **__: object) -> None:
        """Return nothing: samples are of cards, not of raise sites."""


def sample_problems(cards: Sequence[Card], others: Sequence[Card] = ()) -> Iterator[Problem]:
    """Yield what is wrong: a sample that gives another card, no card or other fields, a near miss that fires.

    `others` are cards that are used beside them; those of the same id are replaced.
    """
    library = CardSet([*others, *cards])
    for card in cards:
        for number, sample in enumerate(card.samples):
            yield from _sample(card, f"sample[{number}]", diagnose(sample.log, library), sample)
        for number, near in enumerate(card.near_misses):
            if any(item.card == card.id for item in diagnose(near.log, library)):
                yield Problem(card.path, f"near_miss[{number}].log", "this log must not match the card, but does")


def diagnose(log: str, library: Cards) -> list[Incident]:
    """Return the incidents of a log given as text."""
    pipeline = Pipeline("sample", library)
    for number, line in enumerate(log.split("\n"), 1):
        pipeline.feed(Line("sample", number, 0, line.rstrip("\r")))
    return pipeline.close()


def _sample(card: Card, key: str, incidents: list[Incident], sample: Sample) -> Iterator[Problem]:
    mine = [item for item in incidents if item.card == card.id]
    others = sorted({item.card or item.title for item in incidents if item.card != card.id})
    if not mine:
        yield Problem(
            card.path, f"{key}.log", f"this log must match the card, but gives {', '.join(others) or 'nothing'}"
        )
    elif others:
        yield Problem(card.path, f"{key}.log", f"beside the card this log also gives {', '.join(others)}")
    elif dict(sample.fields) != dict(mine[0].fields):
        said = dict(sample.fields)
        yield Problem(card.path, f"{key}.fields", f"the log gives {dict(mine[0].fields)}, the card says {said}")
    else:
        given = [pair for advice in mine[0].advice for pair in advice.change]
        for name, value in sample.change:
            if (name, value) not in given:
                others = [other for name_, other in given if name_ == name]
                yield Problem(card.path, f"{key}.change.{name}", f"the advice has {others or 'none'}, not {value!r}")
