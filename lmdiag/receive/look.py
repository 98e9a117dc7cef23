"""A look at the recent part of a log: what the daemon would have found in the current life of its server."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.model import Incident
from lmdiag.read.discover import Discovery
from lmdiag.read.start import start_offset
from lmdiag.read.tail import FileSource
from lmdiag.watch.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmdiag.diagnose.cards import Cards
    from lmdiag.read.discover import Found

MAX_BYTES = 64 << 20
"""Of a log, from its end."""
MAX_LOGS = 20
"""Of an alert, those that were last written to."""


class Look(NamedTuple):
    """What was found in a log."""

    source: str
    incidents: tuple[Incident, ...] = ()
    lines: int = 0
    bytes: int = 0
    records: int = 0
    tracebacks: int = 0
    seconds: float = 0.0
    problem: str = ""
    """Why it was not read, or not to its end."""


def logs_of(patterns: Sequence[str]) -> tuple[list[Found], list[str]]:
    """Find the logs that patterns stand for, the newest first, and what is wrong with the patterns."""
    discovery = Discovery(patterns)
    found = sorted(discovery.sources(), key=lambda one: -_written(one.path))
    problems = list(discovery.problems)
    if len(found) > MAX_LOGS:
        problems.append(f"{len(found)} logs are there; only the newest {MAX_LOGS} were looked at")
    return found[:MAX_LOGS], problems


def look(found: Found, cards: Cards, until: float) -> Look:
    """Read the current life of a log's server until its end, or until then (monotonic seconds)."""
    if found.kind != "file":
        return Look(found.name, problem=f"{found.name} is a pipe: it has no past to look at")
    started = time.monotonic()
    if started >= until:
        return Look(found.name, problem=f"{found.name} was not looked at: the time was over")
    offset, before = _recent(found.path)
    source = FileSource(found.path, found.name, required=True, position=None, start_offset=offset)
    with closing(source):
        stream = Stream(source, cards, lines_before=before)
        read = _feed(stream, until)
        left = source.lag() if time.monotonic() >= until else 0
    incidents = tuple(finding.build() for finding in stream.findings())
    problem = f"{found.name}: the time was over before its last {left} bytes were read" if left else source.problem
    seconds = time.monotonic() - started
    return Look(found.name, incidents, stream.lines - before, read, *stream.records, seconds, problem)


def _feed(stream: Stream, until: float) -> int:
    """Read what is there, and not what goes on being written for ever; return how many bytes that was."""
    read = 0
    while read < MAX_BYTES and time.monotonic() < until and (data := stream.source.read()):
        stream.feed(data, 0.0)
        read += len(data)
    return read


def _recent(path: str) -> tuple[int, int]:
    """Return the offset to begin at, and how many lines stand before it."""
    offset, before = start_offset(path, "life")
    try:
        with open(path, "rb") as file:
            start = os.fstat(file.fileno()).st_size - MAX_BYTES
            if start <= offset:
                return offset, before
            file.seek(offset)
            while (left := start - file.tell()) > 0 and (block := file.read(min(left, 1 << 20))):
                before += block.count(b"\n")
            before += file.readline().endswith(b"\n")
            return file.tell(), before
    except OSError:
        return offset, before


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
