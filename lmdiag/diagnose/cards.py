"""What a diagnosis needs of the cards; `lmdiag.match.library` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lmdiag.model import Card, Frame, Match


class Cards(Protocol):
    """What a diagnosis needs of the pack."""

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits an exception."""

    def card(self, card_id: str) -> Card:
        """Return a whole card."""
