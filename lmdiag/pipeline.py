"""Joins the pure stages: lines in, incidents out. Whatever reads the lines drives the same pipeline."""

from __future__ import annotations

from lmdiag.diagnose.cards import Cards
from lmdiag.diagnose.diagnoser import Diagnoser
from lmdiag.model import Incident, Line
from lmdiag.parse.assembler import Assembler


class Pipeline:
    """The pipeline of one source. It opens nothing, reads no clock and prints nothing."""

    def __init__(self, source: str, cards: Cards) -> None:
        self._assembler = Assembler(source, heads=cards.clues.heads)
        self._diagnoser = Diagnoser(source, cards)

    def feed(self, line: Line) -> None:
        """Take the next line of the source."""
        if self._assembler.skips(line):
            return
        for event in self._assembler.feed(line):
            self._diagnoser.feed(event)

    def close(self) -> list[Incident]:
        """Finish what is open and return the incidents, in the order of the log."""
        for event in self._assembler.close():
            self._diagnoser.feed(event)
        return self._diagnoser.close()

    @property
    def records(self) -> int:
        """How many log records were put together so far."""
        return self._assembler.records

    @property
    def tracebacks(self) -> int:
        """How many tracebacks were read so far, echoes included."""
        return self._assembler.tracebacks

    @property
    def dropped(self) -> int:
        """How many different exceptions were beyond the bounds, and are missing in the report."""
        return self._diagnoser.dropped
