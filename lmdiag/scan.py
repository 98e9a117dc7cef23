"""`lmdiag scan`: reads each input once, through the pipeline, and reports. Whatever breaks, what was found is printed."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TextIO

from lmdiag.config import ScanConfig
from lmdiag.errors import InputError, UsageError
from lmdiag.examine import Counts, Examined, examine
from lmdiag.match.library import Library, check_directories, open_library
from lmdiag.model import SEVERITIES, Card, Incident, Summary
from lmdiag.read.archives import size
from lmdiag.read.paths import Input, expand, rotated_siblings
from lmdiag.report.control import visible
from lmdiag.scan_progress import Progress

MANY = 128 << 20
"""Bytes of several files from which they are read in processes, unless --jobs asks for those: starting them takes as long as
reading so much of a healthy log, but one of a server that fails all the time, or a compressed one, takes ten times as long."""

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
        self.muted: tuple[tuple[str, int], ...] = ()
        self.problems: list[str] = []
        """Both of the libraries of other processes."""
        self.started = time.perf_counter()

    def add(self, entry: Input, found: Examined, err: TextIO) -> None:
        """Take what one input gave."""
        self.incidents += found.incidents
        self.counts.update(found.counts._asdict())
        self.interrupted = self.interrupted or found.interrupted
        for problem in found.problems:
            _report(InputError(problem), self, err, entry.source)

    def summary(self, library: Library) -> Summary:
        """Return the summary of what was added."""
        severities = Counter(item.severity for item in self.incidents)
        cards = Counter(item.card for item in self.incidents if item.card)
        return Summary(
            **{name: self.counts[name] for name in Counts._fields},
            skipped=tuple(self.skipped),
            by_severity=tuple((name, severities[name]) for name in reversed(SEVERITIES) if severities[name]),
            by_card=tuple(sorted(cards.items())),
            seconds=round(time.perf_counter() - self.started, 3),
            interrupted=self.interrupted,
            muted_patterns=self.muted or library.muted_patterns,
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
    _read(config, inputs, library, tally, err)
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


def _read(config: ScanConfig, inputs: Sequence[Input], library: Library, tally: _Tally, err: TextIO) -> None:
    """Examine the inputs, in several processes where that pays, and tally what they give, in their order."""
    progress = Progress(config, inputs, err)
    found: dict[int, Examined] = {}
    if apart := _apart(config, inputs):
        from lmdiag.workers import Workers

        workers = Workers(apart, library, config.jobs or len(os.sched_getaffinity(0)), progress.at)
        found = workers.run()
        tally.muted, tally.interrupted = workers.muted, workers.interrupted
        known = set(map(str, library.problems))
        tally.problems = [problem for problem in workers.problems if problem not in known]
    for number, entry in enumerate(inputs):
        if number not in found and not tally.interrupted:
            found[number] = examine(entry, library, at=partial(progress.at, number))
            tally.interrupted = found[number].interrupted
    progress.stop()
    for problem in tally.problems:
        print(f"lmdiag: {visible(problem)}", file=err)
    for number in sorted(found):
        tally.add(inputs[number], found[number], err)


def _apart(config: ScanConfig, inputs: Sequence[Input]) -> dict[int, Input]:
    """The inputs that are read in other processes, by their numbers: several files, and large enough."""
    if config.jobs == 1 or len(inputs) < 2:
        return {}
    sizes = {number: size(entry.path) or 0 for number, entry in enumerate(inputs) if entry.path != "-"}
    files = {number: inputs[number] for number, known in sizes.items() if known}
    return files if len(files) > 1 and (config.jobs or sum(sizes.values()) >= MANY) else {}


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
