"""One source's way through the pipeline, from bytes to findings, and its state between two reads."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.blocks import Feeder
from lmdiag.diagnose.diagnoser import Finding
from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter
from lmdiag.watch import frozen
from lmdiag.watch.flood import Flood

if TYPE_CHECKING:
    from lmdiag.diagnose.cards import Cards
    from lmdiag.read.source import Source

MAX_LIVES = 4
"""Lives of a server that are kept whole when they were looked at; of those before only the numbers are."""
CROWDED = 64
"""Lives after which a look cannot wait: 200 are kept."""
MAX_LINE = 1 << 18
"""Bytes of a line; a hundred sources may each hold an unfinished one."""
_MAX_FILES = 8


class _State(NamedTuple):
    feeder: Feeder
    starts: list[int]
    """The first line of each file that stood in the source's place, the newest last; lines are counted through."""
    seen: int
    generation: int
    baseline: bool


class Stream:
    """A source that is followed."""

    def __init__(
        self,
        source: Source,
        cards: Cards,
        *,
        saved: bytes = b"",
        lines_before: int = 0,
        baseline: bool = False,
    ) -> None:
        """`saved`: what `save` returned; the source must stand where it stood then.

        `baseline`: what it tells first is not news, but what has been there for long.
        """
        self.source = source
        self.kind = type(source).__name__.removesuffix("Source").lower()
        """file, journal or pipe."""
        state = frozen.load(saved) if saved else None
        self.fresh = not isinstance(state, _State)
        """There was no state, or none that can be used: its lines are counted anew."""
        if not isinstance(state, _State):
            splitter = Splitter(source.name, limit=MAX_LINE, lines=lines_before)
            pipeline = Pipeline(source.name, cards)
            feeder = Feeder(splitter, pipeline)
            state = _State(feeder, [1], pipeline.progress, source.generation, baseline)
        self._feeder, self._starts, self._seen, self._generation, self.baseline = state
        self.attach(cards)
        self.changed_at: float | None = None
        """When something came that may have changed the findings, and has not been looked at."""
        self.caught_up = False
        """It has been read to its end once since the daemon's start."""
        self.look_after = 0.0
        """When it may be looked at again."""
        self.flood = Flood()
        self.serving: dict[str, int] = {}
        """As of the last look, the first line of each service's life that came up."""
        self.found_at = 0.0
        """When its file was last found."""
        self._saved: bytes | None = None  # as long as nothing is fed
        self.since: float | None = None
        """When it was first read, in unix seconds."""
        self.moved = False
        """Whether something came since the last look that may have changed the findings."""
        self.fed_at = 0.0
        """When something last came that may have changed the findings."""
        self.read_at: float | None = None
        """When anything last came."""

    def begin(self, now: float) -> None:
        """Note the time of the first read. What was saved may not have been looked at, and looking twice does no harm."""
        if self.since is None:
            self.since = self.fed_at = now
            self.changed_at = None if self.fresh and self.changed_at is None else now

    def start_over(self) -> None:
        """Forget what is open: a block could not be digested, and nobody knows what of it was taken."""
        splitter = Splitter(self.source.name, limit=MAX_LINE, lines=self.lines)
        self._feeder = Feeder(splitter, Pipeline(self.source.name, self._cards))
        self._seen, self._saved = self._feeder.pipeline.progress, None
        self.moved, self.changed_at = False, None

    def attach(self, cards: Cards) -> None:
        """Work with these cards from now on."""
        self._cards = cards
        self._feeder.pipeline.attach(cards)

    @property
    def lines(self) -> int:
        """Lines so far, those before the start included."""
        return self._feeder.lines

    @property
    def records(self) -> tuple[int, int]:
        """How many records and tracebacks were read."""
        return self._feeder.pipeline.records, self._feeder.pipeline.tracebacks

    def feed(self, data: bytes, now: float) -> None:
        """Take the next bytes of the source."""
        if self.source.generation != self._generation:
            self._generation = self.source.generation
            self._starts = [*self._starts, self.lines + 1][-_MAX_FILES:]
        self.read_at = now
        self._saved = None
        self._feeder.feed(data)
        if self._feeder.pipeline.progress != self._seen:
            self._seen = self._feeder.pipeline.progress
            self.moved = True
            self.fed_at = now
            self.changed_at = now if self.changed_at is None else self.changed_at

    def end_baseline(self) -> None:
        """Take what comes from now on for news."""
        if self.baseline:
            self.baseline, self._saved = False, None

    def skip(self, body: bytes) -> None:
        """Count whole lines that are left out; the last byte that was fed must have ended a line."""
        self._saved = None
        self._feeder.forget()
        self._feeder.splitter.skip(len(body), body.count(b"\n"))

    def findings(self, *, settled: bool = True) -> list[Finding]:
        """Return what a scan that ended here would find. The lines of incidents are those of their own file.

        Unless it has `settled`, the stream is to be looked at once more.
        """
        self.moved = False
        self.changed_at = None if settled else self.changed_at
        copy = frozen.load(self.save())
        assert copy is not None
        feeder: Feeder = copy.feeder
        pipeline = feeder.pipeline
        pipeline.attach(self._cards)
        feeder.finish()
        self.trim()
        found = pipeline.findings(earlier=True)
        self.serving = pipeline.serving
        return [finding._replace(build=_Placed(finding, self._starts)) for finding in found]

    def trim(self) -> None:
        """Keep only the newest lives; what was saved of all is still right."""
        self._feeder.pipeline.trim(MAX_LIVES)

    @property
    def crowded(self) -> bool:
        """Whether so many lives have passed that some would be lost if nobody looked."""
        return self._feeder.pipeline.lives >= CROWDED

    def save(self) -> bytes:
        """Return the state; with the source's position of the same moment it goes on without a gap."""
        if self._saved is None:
            self._saved = frozen.dump(_State(self._feeder, self._starts, self._seen, self._generation, self.baseline))
        return self._saved


class _Placed:
    """Builds an incident whose lines are those of the file in which it stands."""

    def __init__(self, finding: Finding, starts: list[int]) -> None:
        self._build, self._starts = finding.build, starts

    def __call__(self) -> Incident:
        incident = self._build()
        first, last = self._own(incident.first_line), self._own(incident.last_line)
        return incident._replace(first_line=first, last_line=last if last >= first else first)

    def _own(self, line: int) -> int:
        start = self._starts[max(0, bisect_right(self._starts, line) - 1)]
        return max(1, line - start + 1)
