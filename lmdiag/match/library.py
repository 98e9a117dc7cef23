"""The pack and its matcher, and the catalogue of raise sites, as one thing: what a diagnosis asks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lmdiag.errors import CatalogError, UsageError
from lmdiag.match.cards import Problem
from lmdiag.match.catalog_format import DIRECTORY, FILE, SETTINGS
from lmdiag.match.clues import Clues
from lmdiag.match.matcher import Matcher
from lmdiag.match.pack import Pack, load_pack, shipped_directory
from lmdiag.match.patterns import TIMEOUT
from lmdiag.model import Card, Frame, Match, RaiseSite

if TYPE_CHECKING:
    from lmdiag.match.packages import Located
    from lmdiag.match.raise_sites import RaiseSites, SiteMatch
    from lmdiag.match.settings import Settings


class Library:
    """What a scan works with. A card's text is read when an incident needs it; so is the catalogue."""

    def __init__(self, pack: Pack, catalogs: Sequence[str] = ()) -> None:
        self.pack = pack
        self.clues = Clues(pack.clues)
        self._settings: Settings | None = None
        self._paths = catalogs
        self._sites: list[RaiseSites] | None = None
        self._broken: list[Problem] = []

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.pack.others, self.pack.book)  # only for a log that has an error

    @property
    def _muted(self) -> Mapping[str, int]:
        return self._matcher.patterns.muted if "_matcher" in vars(self) else {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with cards that were therefore left out, and with catalogues as far as they were asked."""
        slow = [
            Problem(self.pack.own.get(card, ""), "match.pattern", f"took more than {TIMEOUT:g} s and is muted ({card})")
            for card in self._muted
        ]
        return (*self.pack.problems, *self._broken, *slow)

    @property
    def muted_patterns(self) -> tuple[tuple[str, int], ...]:
        """Cards whose pattern took too long, and how often it was stopped or left out."""
        return tuple(sorted(self._muted.items()))

    @property
    def sites(self) -> list[RaiseSites]:
        """The catalogues that can be read; the shipped one is the first."""
        if self._sites is None:
            from lmdiag.match.catalog import read_catalog  # only for a log that has an incident
            from lmdiag.match.raise_sites import RaiseSites

            self._sites = []
            for path in self._paths:
                try:
                    self._sites.append(RaiseSites(read_catalog(path)))
                except CatalogError as error:
                    self._broken.append(Problem("", "", str(error)))
        return self._sites

    @property
    def settings(self) -> Settings:
        """Which releases know which settings; empty where there is no table, or a damaged one."""
        if self._settings is None:
            from lmdiag.match.settings import read_settings  # only for advice that changes something

            path = os.path.join(os.path.dirname(self._paths[0]), SETTINGS) if self._paths else ""
            try:
                self._settings = read_settings(path)
            except CatalogError as error:
                self._settings = {}
                self._broken.append(Problem("", "", str(error)))
        return self._settings

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits an exception best, or None."""
        return self._matcher.match(type, message, frames, truncated=truncated)

    def card(self, card_id: str) -> Card:
        """Return a whole card. Raises CardError if there is none of that id."""
        return self.pack.card(card_id)

    def raise_site(
        self,
        type: str | None,
        message: str,
        frame: Located | None,
        versions: Mapping[str, str | None],
        *,
        truncated: bool = False,
    ) -> SiteMatch | None:
        """Return where an exception was raised, or None.

        None too if the frame is in a package of no catalogue: what copies vLLM's words is not vLLM. Of equal answers
        a site's own catalogue gives the last.
        """
        best: SiteMatch | None = None
        for sites in list(self.sites):
            try:
                if frame and frame.package not in sites.catalog.versions:
                    continue
                found = sites.find(type, message, frame, versions, truncated=truncated)
            except CatalogError as error:
                self._drop(sites, error)
                continue
            if found and (
                best is None or found.rank[:-1] >= best.rank[:-1]
            ):  # the last is a number of its own releases
                best = found
        return best

    def raise_sites_of(self, card: Card) -> tuple[RaiseSite, ...]:
        """Return where a card's messages are raised, after the catalogues and the card itself."""
        from lmdiag.match.card_sites import sites_of_card

        for sites in list(self.sites):
            try:
                return sites_of_card(card, sites)
            except CatalogError as error:
                self._drop(sites, error)
        return card.raised_at

    def _drop(self, sites: RaiseSites, error: CatalogError) -> None:
        """Go on without a catalogue of which a part is damaged."""
        self._broken.append(Problem("", "", str(error)))
        self.sites.remove(sites)


def check_directories(directories: Sequence[str]) -> None:
    """Raise UsageError if a directory of a site's own cards is not there: without a word they would be missing."""
    for directory in directories:
        if not os.path.isdir(directory):
            raise UsageError(f"{directory}: there is no such directory of cards; your own would be missing")


def open_library(rules: Sequence[str] = (), disabled: Sequence[str] = ()) -> Library:
    """Load the shipped cards and catalogue, and those of a site's own directories over them, without those `disabled`."""
    shipped = os.path.join(shipped_directory(), DIRECTORY, FILE)
    own = [os.path.join(directory, DIRECTORY, FILE) for directory in rules]
    return Library(load_pack(rules, disabled=disabled), [shipped, *filter(os.path.exists, own)])
