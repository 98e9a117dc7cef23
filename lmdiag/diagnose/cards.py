"""What a diagnosis needs of cards and catalogue; `lmdiag.match.library` provides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lmdiag.model import Card, Frame, Match

if TYPE_CHECKING:
    from lmdiag.match.clues import Clues
    from lmdiag.match.packages import Located
    from lmdiag.match.raise_sites import SiteMatch
    from lmdiag.match.settings import Settings


class Cards(Protocol):
    """What a diagnosis needs of the pack and the catalogue."""

    @property
    def clues(self) -> Clues:
        """What else the cards want to know of a log."""

    @property
    def settings(self) -> Settings:
        """Which releases know which settings."""

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits an exception."""

    def card(self, card_id: str) -> Card:
        """Return a whole card."""

    def raise_site(
        self,
        type: str | None,
        message: str,
        frame: Located | None,
        versions: Mapping[str, str | None],
        *,
        truncated: bool = False,
    ) -> SiteMatch | None:
        """Return where an exception was raised, after the catalogue."""
