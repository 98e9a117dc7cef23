"""Joins the pure stages: lines in, incidents out. Whatever reads the lines drives the same pipeline."""

from __future__ import annotations

from lmdiag.diagnose.cards import Cards
from lmdiag.diagnose.diagnoser import Diagnoser, Finding
from lmdiag.model import Incident, Line
from lmdiag.parse.assembler import Assembler


class Pipeline:
    """The pipeline of one source. It opens nothing, reads no clock and prints nothing.

    It can be pickled between two lines, without the cards: `attach` gives them to a loaded one.
    """

    def __init__(self, source: str, cards: Cards) -> None:
        self._assembler = Assembler(source, heads=cards.clues.heads)
        self._diagnoser = Diagnoser(source, cards)

    def attach(self, cards: Cards) -> None:
        """Work with these cards from now on."""
        self._assembler.attach(cards.clues.heads)
        self._diagnoser.attach(cards)

    def feed(self, line: Line) -> None:
        """Take the next line of the source."""
        for event in self._assembler.feed(line):
            self._diagnoser.feed(event)

    @property
    def busy(self) -> bool:
        """Whether all lines have to be fed. If not, those without an anchor change nothing, and need not be."""
        return self._assembler.busy

    def pass_chatter(self, block: bytes | bytearray, start: int, end: int) -> tuple[int, int]:
        """Take a run of whole lines of chatter without making text of them; return its end, and how many they are."""
        stop, lines, events = self._assembler.pass_chatter(block, start, end)
        for event in events:
            self._diagnoser.feed(event)
        return stop, lines

    def passes(self, text: str) -> bool:
        """Say whether a line with an anchor need not be fed either; asked only when the pipeline is not busy."""
        return self._assembler.passes(text)

    def close(self) -> list[Incident]:
        """Finish what is open and return the incidents, in the order of the log."""
        return [finding.build() for finding in self.findings()]

    def findings(self, *, earlier: bool = False) -> list[Finding]:
        """Finish what is open and judge; nothing can be fed afterwards.

        `earlier`: also failed starts that a later failure of another cause has superseded.
        """
        for event in self._assembler.close():
            self._diagnoser.feed(event)
        return self._diagnoser.findings(earlier=earlier)

    @property
    def serving(self) -> dict[str, int]:
        """The first line of each service's newest life, of those that came up; complete after `findings`."""
        return self._diagnoser.serving

    @property
    def lives(self) -> int:
        """How many lives of a server are kept whole, at most 200."""
        return self._diagnoser.lives

    def trim(self, lives: int) -> None:
        """Keep only so many; of older ones what happened is counted."""
        self._diagnoser.trim(lives)

    @property
    def progress(self) -> int:
        """Grows when what `findings` would give may have changed."""
        return self._diagnoser.fed + self._assembler.accepted

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
