"""Where reports go: a terminal, a pipe, or the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from lmdiag.forward.message import card_of
from lmdiag.report.jsonl import dumps, incident_object
from lmdiag.report.watched import watched_blocks
from lmdiag.watch.notify import with_priority

if TYPE_CHECKING:
    from lmdiag.model import Card, Incident

_JOURNAL_WIDTH = 100


class Outlet:
    """Prints reports to a stream. Raises OSError where it cannot be written."""

    def __init__(
        self,
        out: TextIO,
        cards: Callable[[str], Card],
        *,
        format: str,
        color: bool | None = None,
        width: int | None = None,
        journal: bool = False,
    ) -> None:
        """`journal`: each line begins with its priority, and times are left to journald."""
        self._out = out
        self.cards = cards
        self._format = format
        self._color = color
        self._width = width
        self._journal = journal
        self.live: Callable[[Incident, Card | None], None] | None = None
        """The live view of a terminal, which prints above itself."""

    def tell(self, incident: Incident) -> None:
        """Print one report, at once."""
        if self.live is not None:
            self.live(incident, card_of(incident.card, self.cards))
            return
        if self._format == "jsonl":
            self._out.write(dumps(incident_object(incident)) + "\n")
        elif self._journal:
            self._out.write(self._prefixed(incident))
        else:
            from lmdiag.report.text import print_blocks

            print_blocks(
                watched_blocks(incident, card_of(incident.card, self.cards)),
                file=self._out,
                color=self._color,
                width=self._width,
            )
            self._out.write("\n")
        self._out.flush()

    def _prefixed(self, incident: Incident) -> str:
        from lmdiag.report.plain import render_plain

        text = render_plain(watched_blocks(incident, card_of(incident.card, self.cards)), self._width or _JOURNAL_WIDTH)
        return with_priority("info" if incident.state == "resolved" else incident.severity, text)
