"""`lmdiag scan`: reads each input once, through the pipeline, and reports. Whatever breaks, what was found is printed."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from lmdiag.blocks import Feeder
from lmdiag.config import ScanConfig
from lmdiag.errors import InputError, UsageError
from lmdiag.match.library import Library, check_directories, open_library
from lmdiag.model import SEVERITIES, Card, Incident, Summary
from lmdiag.pipeline import Pipeline
from lmdiag.read.archives import open_bytes, size
from lmdiag.read.lines import LineReader, Splitter
from lmdiag.read.paths import Input, expand, rotated_siblings
from lmdiag.report.control import visible

PROGRESS_FROM = 100 << 20
"""Bytes of input from which a terminal gets a progress bar: what takes a second or more to read."""

Forward = Callable[[Sequence[Incident], Callable[[str], Card]], bool]
"""Takes incidents and a look-up of their cards; returns whether no receiver refused one."""

EXIT_NOTHING, EXIT_FOUND, EXIT_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


class _Tally:
    """What a scan has read and found so far; becomes the summary."""

    def __init__(self, skipped: Sequence[tuple[str, str]]) -> None:
        self.incidents: list[Incident] = []
        self.skipped = list(skipped)
        self.counts: Counter[str] = Counter()
        self.failed = False
        self.interrupted = False
        self.started = time.perf_counter()

    def add(self, pipeline: Pipeline, reader: Splitter) -> None:
        """Finish one input: whole, broken or interrupted."""
        self.incidents += pipeline.close()
        self.counts.update(
            sources=1,
            lines=reader.lines,
            bytes=reader.bytes,
            undecodable_lines=reader.undecodable_lines,
            truncated_lines=reader.truncated_lines,
            records=pipeline.records,
            tracebacks=pipeline.tracebacks,
            dropped_tracebacks=pipeline.dropped,
        )

    def summary(self, library: Library) -> Summary:
        """Return the summary of what was added."""
        severities = Counter(item.severity for item in self.incidents)
        cards = Counter(item.card for item in self.incidents if item.card)
        return Summary(
            **self.counts,
            skipped=tuple(self.skipped),
            by_severity=tuple((name, severities[name]) for name in reversed(SEVERITIES) if severities[name]),
            by_card=tuple(sorted(cards.items())),
            seconds=round(time.perf_counter() - self.started, 3),
            interrupted=self.interrupted,
            muted_patterns=library.muted_patterns,
        )


def scan(
    config: ScanConfig,
    out: TextIO,
    err: TextIO,
    forward: Forward | None = None,
) -> int:
    """Scan the inputs and print the report to `out`, problems to `err`; give the incidents to `forward`, with the cards.

    Returns the exit code: 0 nothing found, 1 an incident of `fail_on` or worse, 2 an input could not be read (to its
    end) or `forward` returned False, 130 interrupted. Raises UsageError if there is nothing at all to read.
    """
    check_directories(config.rules)
    library = open_library(config.rules, config.disabled)
    warned = warn(library, 0, err)
    expansion = expand(config.paths)
    tally = _Tally(expansion.skipped)
    for error in expansion.errors:
        _report(error, tally, err)
    inputs = with_rotated(expansion.inputs) if config.rotated else expansion.inputs
    if not inputs and not expansion.errors:
        raise UsageError(f"no log found in {', '.join(config.paths)}; name the files themselves to have them read")
    progress = _Progress(config, inputs, err)
    try:
        for entry in inputs:
            _scan_input(entry, library, tally, progress, err)
    except KeyboardInterrupt:
        tally.interrupted = True
    progress.stop()
    warn(library, warned, err)
    _print_report(config, library, tally, out)
    if forward is not None and not forward(tally.incidents, library.card):
        tally.failed = True
    return _exit_code(config, tally)


def warn(library: Library, known: int, err: TextIO) -> int:
    """Print the library's problems behind the first `known` ones: the catalogue's show only when it is used."""
    problems = library.problems
    for problem in problems[known:]:
        print(f"lmdiag: {visible(str(problem))}", file=err)
    return len(problems)


def with_rotated(inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Put the rotated siblings of each input before it, unless they are inputs themselves."""
    known = {entry.path for entry in inputs}
    found: list[Input] = []
    for entry in inputs:
        siblings = () if entry.path == "-" else rotated_siblings(entry.path)
        found += [Input(path, path) for path in siblings if path not in known]
        found.append(entry)
    return tuple(found)


def _scan_input(entry: Input, library: Library, tally: _Tally, progress: _Progress, err: TextIO) -> None:
    pipeline = Pipeline(entry.source, library)
    try:
        raw = open_bytes(entry.path)
    except InputError as error:
        _report(error, tally, err, entry.source)
        return
    with raw:
        reader = LineReader(entry.source, raw, on_bytes=progress.at)
        feeder = Feeder(reader.splitter, pipeline)
        try:
            for data in reader.blocks():
                feeder.feed(data)
        except InputError as error:
            _report(error, tally, err, entry.source)
        finally:
            feeder.finish()
            tally.add(pipeline, reader.splitter)
        found = any(item.source == entry.source for item in tally.incidents)
        if doubt := _doubt(entry, reader.splitter, raw.position, found=found):
            _report(InputError(f"{entry.source}: {doubt}"), tally, err, entry.source)
    progress.finished(entry.path)


def _doubt(entry: Input, reader: Splitter, position: int, *, found: bool) -> str:
    """Say why what was read to its end may not be the whole log, or no log at all."""
    if reader.undecodable_lines > reader.lines // 2 and not found:
        return "most of its lines are not text; if it is compressed twice or in another format, decompress it first"
    sized = entry.path != "-" and os.path.isfile(entry.path) and not os.path.realpath(entry.path).startswith("/proc/")
    if sized and (size(entry.path) or 0) < position:  # files of /proc say that they are empty
        return (
            f"it shrank while it was read; what stood behind byte {size(entry.path)} may be missing, so scan it again"
        )
    return ""


def _report(error: InputError, tally: _Tally, err: TextIO, source: str = "") -> None:
    tally.failed = True
    path, _, reason = str(error).partition(": ")
    known = not source or path == source
    tally.skipped.append((path, reason) if known else (source, str(error)))
    print(f"lmdiag: {visible(str(error))}", file=err)


def _print_report(config: ScanConfig, library: Library, tally: _Tally, out: TextIO) -> None:
    summary = tally.summary(library)
    if config.format == "jsonl":
        from lmdiag.report.jsonl import dumps, incident_object, summary_object

        for incident in tally.incidents:
            out.write(dumps(incident_object(incident)) + "\n")
        out.write(dumps(summary_object(summary)) + "\n")
    elif config.format == "markdown":
        from lmdiag.report.markdown import render_markdown

        out.write(render_markdown(tally.incidents, summary, library.card))
    else:
        from lmdiag.report.text import print_report

        print_report(
            tally.incidents,
            summary,
            library.card,
            file=out,
            color=config.color,
            width=config.width,
            verbose=config.verbose,
        )


def _exit_code(config: ScanConfig, tally: _Tally) -> int:
    if tally.interrupted:
        return EXIT_INTERRUPTED
    if tally.failed:
        return EXIT_INPUT
    worst = max((SEVERITIES.index(item.severity) for item in tally.incidents), default=-1)
    found = worst >= SEVERITIES.index(config.fail_on)
    return EXIT_FOUND if found and not config.exit_zero else EXIT_NOTHING


class _Progress:
    """How far the reading is, on a terminal and for large inputs only; standard input has no known size."""

    def __init__(self, config: ScanConfig, inputs: Sequence[Input], err: TextIO) -> None:
        wanted = config.progress and err.isatty() and os.environ.get("TERM") != "dumb"
        self._sizes = [size(entry.path) or 0 for entry in inputs if entry.path != "-"] if wanted else []
        self._done = 0
        self._bar: Any = None
        if sum(self._sizes) >= PROGRESS_FROM:
            self._start(err)

    def _start(self, err: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(file=err), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=sum(self._sizes))

    def at(self, position: int) -> None:
        """Show the position in the input that is being read, in bytes of its file."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done + position)

    def finished(self, path: str) -> None:
        """Count an input as read."""
        if self._bar is not None and path != "-":
            self._done += size(path) or 0

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
