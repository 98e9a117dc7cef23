"""One input through the pipeline, to a value that another process can send back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.blocks import Feeder
from lmdiag.diagnose.cards import Cards
from lmdiag.errors import InputError
from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.archives import RawReader, open_bytes, size
from lmdiag.read.lines import Splitter
from lmdiag.read.paths import Input

if TYPE_CHECKING:
    from lmdiag.read.span import Span

BLOCK = 1 << 20
"""Bytes that are read at once, into one buffer: with it and the page cache's copy a core's second cache is full."""


class Counts(NamedTuple):
    """What was read; the fields are those of Summary."""

    sources: int = 0
    lines: int = 0
    bytes: int = 0
    undecodable_lines: int = 0
    truncated_lines: int = 0
    records: int = 0
    tracebacks: int = 0
    dropped_tracebacks: int = 0


class Examined(NamedTuple):
    """What one input gave, whole, broken or interrupted."""

    incidents: tuple[Incident, ...] = ()
    counts: Counts = Counts()
    problems: tuple[str, ...] = ()
    """Why it could not be read, or not to its end; each names its path first."""
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    """What else to say of it; each names its source first."""


def examine(entry: Input, cards: Cards, *, at: Callable[[int], None], span: Span | None = None) -> Examined:
    """Read an input, or what of it lies in a span of time, and judge it.

    `at` is called after each block with the position in its file, in bytes. An interruption by the keyboard ends it early,
    and what was found so far is returned.
    """
    try:
        raw = _open(entry.path, span)
    except InputError as error:
        return Examined(problems=(str(error),))
    except KeyboardInterrupt:  # a pipe that nobody writes to keeps one waiting
        return Examined(interrupted=True)
    with raw:
        found = _Examination(entry, raw, Feeder(Splitter(entry.source), Pipeline(entry.source, cards))).run(at)
        return found if span is None else _placed(found, raw, entry.source)


def _open(path: str, span: Span | None) -> RawReader:
    if span is None:
        return open_bytes(path)
    from lmdiag.read.span import open_part  # only if a span is asked for, as below

    return open_part(path, span)


def _placed(found: Examined, part: RawReader, source: str) -> Examined:
    from lmdiag.placed import placed
    from lmdiag.read.part import Part

    assert isinstance(part, Part)
    note = part.note()
    return found._replace(incidents=placed(found.incidents, part), notes=(f"{source}: {note}",) if note else ())


class _Examination:
    def __init__(self, entry: Input, raw: RawReader, feeder: Feeder) -> None:
        self._entry = entry
        self._raw = raw
        self._feeder = feeder

    def run(self, at: Callable[[int], None]) -> Examined:
        problems, interrupted = [], False
        try:
            self._read(at)
        except InputError as error:
            problems.append(str(error))
        except KeyboardInterrupt:
            interrupted = True
        self._feeder.finish()
        incidents = tuple(self._feeder.pipeline.close())
        if doubt := self._doubt(found=bool(incidents)):
            problems.append(f"{self._entry.source}: {doubt}")
        return Examined(incidents, self._counts(), tuple(problems), interrupted)

    def _read(self, at: Callable[[int], None]) -> None:
        buffer = bytearray(BLOCK)
        view = memoryview(buffer)
        while count := self._raw.readinto(view):
            self._feeder.feed(buffer, count)
            at(self._raw.position)

    def _counts(self) -> Counts:
        splitter, pipeline = self._feeder.splitter, self._feeder.pipeline
        return Counts(
            sources=1,
            lines=splitter.lines,
            bytes=splitter.bytes,
            undecodable_lines=splitter.undecodable_lines,
            truncated_lines=splitter.truncated_lines,
            records=pipeline.records,
            tracebacks=pipeline.tracebacks,
            dropped_tracebacks=pipeline.dropped,
        )

    def _doubt(self, *, found: bool) -> str:
        """Say why what was read to its end may not be the whole log, or no log at all."""
        splitter, path = self._feeder.splitter, self._entry.path
        if splitter.undecodable_lines > (splitter.lines - splitter.skipped_lines) // 2 and not found:
            return "most of its lines are not text; if it is compressed twice or in another format, decompress it first"
        sized = path != "-" and os.path.isfile(path) and not os.path.realpath(path).startswith("/proc/")
        if sized and (size(path) or 0) < self._raw.position:  # files of /proc say that they are empty
            return f"it shrank while it was read; what stood behind byte {size(path)} may be missing, so scan it again"
        return ""
