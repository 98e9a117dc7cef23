"""`lmdiag scan`: reads each input once, through the pipeline, and reports. Whatever breaks, what was found is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from lmdiag.config import ScanConfig
from lmdiag.errors import UsageError
from lmdiag.match.cards import Problem
from lmdiag.match.library import Library, check_directories, open_library
from lmdiag.model import SEVERITIES, Card, Incident, Summary
from lmdiag.read.paths import expand
from lmdiag.report.control import visible
from lmdiag.scan_inputs import newest_parts, read_inputs, with_rotated
from lmdiag.tally import Tally

if TYPE_CHECKING:
    from lmdiag.read.span import Span

Forward = Callable[[Sequence[Incident], Callable[[str], Card]], bool]
"""Takes incidents and a look-up of their cards; returns whether no receiver refused one."""

EXIT_NOTHING, EXIT_FOUND, EXIT_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


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
    span = _span(config)
    check_directories(config.rules)
    library = open_library(config.rules, config.disabled)
    warned = warn(library, 0, err)
    expansion = expand(config.paths)
    tally = Tally(expansion.skipped, err)
    for error in expansion.errors:
        tally.report(error)
    inputs = with_rotated(expansion.inputs) if config.rotated else expansion.inputs
    if not inputs and not expansion.errors:
        raise UsageError(f"no log found in {', '.join(config.paths)}; name the files themselves to have them read")
    if span and config.rotated:
        span = span._replace(newer=newest_parts(expansion.inputs))
    everything = read_inputs(config, inputs, library, err, span)
    for entry, found in everything.found:
        tally.add(entry, found)
    tally.interrupted = tally.interrupted or everything.interrupted
    if span and inputs and not (tally.counts["lines"] or tally.failed or tally.interrupted):
        print("lmdiag: nothing lies in this span of time; a time without a zone is this machine's local time", file=err)
    warn(library, warned, err, everything.problems)
    _print_report(config, library, tally.incidents, tally.summary(everything.muted), out)
    if forward is not None and not forward(tally.incidents, library.card):
        tally.failed = True
    return _exit_code(config, tally)


def warn(library: Library, known: int, err: TextIO, others: Sequence[Problem] = ()) -> int:
    """Print the library's problems behind the first `known` ones: the catalogue's show only when it is used.

    `others` are those that the libraries of other processes met; what several met is printed once.
    """
    problems = library.problems
    for problem in dict.fromkeys((*problems[known:], *others)):
        print(f"lmdiag: {visible(str(problem))}", file=err)
    return len(problems)


def _span(config: ScanConfig) -> Span | None:
    if not (config.since or config.until or config.last):
        return None
    from lmdiag.read.span import read_span

    return read_span(config.since, config.until, config.last, time.time())


def _print_report(
    config: ScanConfig, library: Library, incidents: Sequence[Incident], summary: Summary, out: TextIO
) -> None:
    if config.format == "jsonl":
        from lmdiag.report.jsonl import dumps, incident_object, summary_object

        for incident in incidents:
            out.write(dumps(incident_object(incident)) + "\n")
        out.write(dumps(summary_object(summary)) + "\n")
    elif config.format == "markdown":
        from lmdiag.report.markdown import render_markdown

        out.write(render_markdown(incidents, summary, library.card))
    else:
        from lmdiag.report.text import print_report

        print_report(
            incidents,
            summary,
            library.card,
            file=out,
            color=config.color,
            width=config.width,
            verbose=config.verbose,
        )


def _exit_code(config: ScanConfig, tally: Tally) -> int:
    if tally.interrupted:
        return EXIT_INTERRUPTED
    if tally.failed:
        return EXIT_INPUT
    worst = max((SEVERITIES.index(item.severity) for item in tally.incidents), default=-1)
    found = worst >= SEVERITIES.index(config.fail_on)
    return EXIT_FOUND if found and not config.exit_zero else EXIT_NOTHING
