"""What the tests share: running the pipeline over text, and the logs that several of them use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from lmdiag.match.clues import Clues
from lmdiag.match.settings import Settings
from lmdiag.model import Card, Frame, Incident, Line, Match
from lmdiag.pipeline import Pipeline


class NoCards:
    """A pack without cards: every traceback is a finding without a card."""

    clues = Clues(())
    settings: ClassVar[Settings] = {}

    def match(self, type: str | None, message: str, frames: Sequence[Frame], *, truncated: bool = False) -> Match | None:
        """No card fits."""
        return None

    def card(self, card_id: str) -> Card:
        """There is none to return."""
        raise KeyError(card_id)

    def raise_site(self, *_: object, **__: object) -> None:
        """No raise site is known."""


def lines_of(text: str, source: str = "server.log") -> Iterable[Line]:
    """The physical lines of a log as the reader gives them."""
    for number, line in enumerate(text.split("\n"), 1):
        yield Line(source, number, 0, line.rstrip("\r"))


def diagnose(text: str) -> list[Incident]:
    """The incidents of a log, with no cards loaded."""
    pipeline = Pipeline("server.log", NoCards())
    for line in lines_of(text):
        pipeline.feed(line)
    return pipeline.close()


def roots(incidents: Iterable[Incident]) -> tuple[tuple[str | None, str], ...]:
    """The (type without module, message) of each incident's root."""
    return tuple(((item.root.type or "").rsplit(".", 1)[-1] or None, item.root.message) for item in incidents if item.root)
