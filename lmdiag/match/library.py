"""The pack and its matcher as one thing: what a diagnosis asks for cards."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.match.cards import Problem
from lmdiag.match.matcher import Matcher
from lmdiag.match.pack import Pack, load_pack
from lmdiag.model import Card, Frame, Match


class Library:
    """The cards that a scan works with. A card's text is read when an incident needs it."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self._matcher = Matcher(pack.rules)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with cards that were therefore left out."""
        return tuple(self.pack.problems)

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits an exception best, or None."""
        return self._matcher.match(type, message, frames, truncated=truncated)

    def card(self, card_id: str) -> Card:
        """Return a whole card. Raises CardError if there is none of that id."""
        return self.pack.card(card_id)


def open_library(rules: Sequence[str] = ()) -> Library:
    """Load the shipped cards, and those of a site's own directories over them."""
    return Library(load_pack(rules))
