"""The part of a log that lies between two moments, as one reader that knows which lines of the log it gives.

A plain file is bisected (`edges`), anything else is read through (`skim`). In front of the part stands what the server said when
it started (`server_start`), so that a diagnosis has the server's version and arguments.
"""

from __future__ import annotations

import codecs
import os
import stat
import tempfile
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from lmdiag.errors import InputError, UsageError
from lmdiag.read.decoders import MAGIC_SIZE, foreign, sniff
from lmdiag.read.edges import SEARCHED, Edges
from lmdiag.read.files import explain
from lmdiag.read.linetimes import LineTimes
from lmdiag.read.moments import FARTHEST_ZONE, When, local_text, read_duration, read_when
from lmdiag.read.part import Blocks, LineCounter, Part, Range
from lmdiag.read.server_start import start_before
from lmdiag.read.skim import Skim, newest

_NO_TIMES = (
    f"no line in the first {SEARCHED >> 20} MiB begins with a time that lmdiag knows, so all of it was read, "
    "whatever --since, --until or --last say"
)


class Span(NamedTuple):
    """What was asked for: from `since` to `until`, both included, or the `last` seconds of each log."""

    since: When | None
    until: When | None
    last: float
    """0: as `since` says."""
    now: float
    """Unix time."""
    newer: tuple[tuple[str, str], ...] = ()
    """(path, path of the newest part) of rotated parts of a log: `last` counts from the newest part's newest line."""


def read_span(since: str, until: str, last: str, now: float) -> Span | None:
    """Read the flags ("": not given); None if there is none of them. Raises UsageError for what is wrong or contradictory."""
    if last and (since or until):
        other = "--since" if since else "--until"
        raise UsageError(
            f"--last counts back from the newest line of each log, so it cannot go with {other}; leave one out"
        )
    if not (since or until or last):
        return None
    first = read_when(since, "--since", now) if since else None
    end = read_when(until, "--until", now) if until else None
    if first and end and first.seconds > end.seconds:
        raise UsageError(
            f"--since {since} ({local_text(first.seconds)}) is after --until {until} ({local_text(end.seconds)}); "
            "write both with their date"
        )
    return Span(first, end, read_duration(last, "--last") if last else 0.0, now)


def open_part(path: str, span: Span) -> Part:
    """Open the part of an input ("-" is standard input) that lies in a span.

    A pipe is read until the span begins; for `last` it is first copied into a temporary file. Raises InputError as
    `open_bytes` does.
    """
    span = _from_newest(path, span)
    written = _written(path)
    times = LineTimes(span.now if written is None else written)
    if written is None:
        return _piped(path, span, times)
    if span.since and written + span.since.doubt < span.since.in_log(times.latest):
        return Part(Blocks(iter(())), 0, int)  # it was not written to since then
    fd = _open(path)
    try:
        if _is_plain(fd):
            return _found(path, fd, span, times)
    except OSError as error:
        os.close(fd)
        raise explain(path, error) from error
    os.close(fd)
    return _skimmed(path, *_bounds(span, times, lambda: _newest(path, times)), times)


def _from_newest(path: str, span: Span) -> Span:
    """Say by a moment what `last` means in a rotated part of a log; if the newest part has no time, as in any file."""
    newest_part = dict(span.newer).get(path)
    written = _written(newest_part) if newest_part and span.last else None
    if newest_part is None or written is None:
        return span
    times = LineTimes(written)
    try:
        fd = _open(newest_part)
        try:
            end = Edges(fd, os.fstat(fd).st_size, times).newest() if _is_plain(fd) else _newest(newest_part, times)
        finally:
            os.close(fd)
    except (InputError, OSError):
        end = None  # reading it will say why
    if end is None:
        return span
    return span._replace(since=When("", end - span.last, doubt=FARTHEST_ZONE), last=0.0)


def _written(path: str) -> float | None:
    """When a file was last written to, as unix time; None if it is none, or one of /proc, which say that they are empty."""
    try:
        status = os.stat(path) if path != "-" else None
    except (OSError, ValueError):
        return None  # opening it will say why
    return status.st_mtime if status and stat.S_ISREG(status.st_mode) and status.st_size else None


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise explain(path, error) from error


def _is_plain(fd: int) -> bool:
    head = os.pread(fd, MAGIC_SIZE, 0)
    return not (sniff(head) or foreign(head) or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))


def _bounds(span: Span, times: LineTimes, newest_time: Callable[[], float | None]) -> tuple[float | None, float | None]:
    """Return since and until in this log; for `last` in a log without times, neither."""
    if span.last:
        end = newest_time()
        return (None if end is None else end - span.last), None
    since = span.since.in_log(times.latest) if span.since else None
    until = span.until.in_log(times.latest) if span.until else None
    if since is not None and until is not None and until < since:
        until = None  # it is the next year's, and the log ended before
    return since, until


def _found(path: str, fd: int, span: Span, times: LineTimes) -> Part:
    """The span of a plain file; the part closes `fd`."""
    size = os.fstat(fd).st_size
    edges = Edges(fd, size, times)
    since, until = _bounds(span, times, edges.newest)
    if not edges.has_times() or (since is None and until is None):
        part = Part(Range(path, fd, 0, None), 0, int)
        part.note = lambda: _NO_TIMES
        return part
    begin = edges.begin(since) if since is not None else 0
    end = edges.end(until, begin) if until is not None else None
    excerpts = start_before(fd, begin) if begin < (size if end is None else end) else ()
    return Part(Range(path, fd, begin, end), begin, LineCounter(fd), excerpts)


def _newest(path: str, times: LineTimes) -> float | None:
    with Blocks.of(path) as source:
        return newest(source.blocks(), times)


def _piped(path: str, span: Span, times: LineTimes) -> Part:
    if not span.last:
        return _skimmed(path, *_bounds(span, times, lambda: None), times)
    source = Blocks.of(path)
    with source, tempfile.TemporaryFile() as copy:
        try:
            for block in source.blocks():
                copy.write(block)
            copy.flush()
        except OSError as error:
            raise InputError(
                f"{path}: it is copied into {tempfile.gettempdir()} for --last: {error.strerror}"
            ) from error
        part = _found(path, os.dup(copy.fileno()), span, times)
    part.error = source.error
    return part


def _skimmed(path: str, since: float | None, until: float | None, times: LineTimes) -> Part:
    source = Blocks.of(path)
    skim = Skim(times, since, until)
    blocks = skim.blocks(source.blocks())
    first = next(blocks, b"")
    source.give(chain((first,) if first else (), blocks))
    part = Part(source, skim.lines, int, skim.start.excerpts if first else ())
    part.note = lambda: _NO_TIMES if first and not skim.timed else ""
    return part
