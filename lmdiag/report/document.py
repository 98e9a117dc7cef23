"""A whole report as blocks: incidents from the worst down, then what needs no action, then what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.model import SEVERITIES
from lmdiag.report.amounts import size
from lmdiag.report.context import first_line, message_of, place_of
from lmdiag.report.control import clip
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import bullet, counted, heading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lmdiag.model import Card, Incident, Summary

_SKIPPED_LIMIT = 10
_OVERVIEW_LIMIT = 40
_CALLED_LIMIT = 90


def report_blocks(
    incidents: Iterable[Incident], summary: Summary, cards: Callable[[str], Card], *, verbose: bool
) -> list[Block]:
    """Build the blocks of a report. `cards` gives the card of an id; it is asked only for cards that incidents name."""
    ordered = sorted(incidents, key=lambda incident: -SEVERITIES.index(incident.severity))
    acting = [incident for incident in ordered if verbose or not _is_quiet(incident)]
    blocks: list[Block] = []
    for incident in acting:
        from lmdiag.report.incident import incident_blocks  # not for a log in which all is well

        blocks += incident_blocks(incident, cards(incident.card) if incident.card else None, verbose=verbose)
    if ordered and not verbose:
        blocks += _quiet(ordered)
    return blocks + _overview(acting) + _closing(summary, found=bool(ordered))


def _overview(acting: list[Incident]) -> list[Block]:
    """Name each incident once more: the first screen has scrolled away, and a directory gives many."""
    rows = [
        bullet(
            Span(incident.severity, incident.severity),
            Span(f": {_called(incident)} ("),
            Span(place_of(incident), "raw"),
            Span(")"),
        )
        for incident in acting[:_OVERVIEW_LIMIT]
    ]
    if len(acting) > len(rows):
        rows.append(bullet(Span(f"and {len(acting) - len(rows):,} more", "dim")))
    return [Block("title", (Span("In short", "strong"),)), *rows] if rows else []


def _called(incident: Incident) -> str:
    if incident.card or incident.root is None:
        from lmdiag.report.incident import headline

        return headline(incident)
    return clip(first_line(message_of(incident.root.type, incident.root.message)), _CALLED_LIMIT)


def _is_quiet(incident: Incident) -> bool:
    return incident.scope == "request" or incident.severity == "info"


def _quiet(incidents: list[Incident]) -> list[Block]:
    from lmdiag.report.incident import compact_block

    requests = [compact_block(incident) for incident in incidents if incident.scope == "request"]
    others = [compact_block(one) for one in incidents if _is_quiet(one) and one.scope != "request"]
    blocks: list[Block] = []
    for title, items in (("Clients' own mistakes", requests), ("For information", others)):
        blocks += [Block("title", (Span(title, "strong"),)), *items] if items else []
    return blocks


def _closing(summary: Summary, *, found: bool) -> list[Block]:
    blocks = [Block("title", tuple(_read(summary, found=found)))]
    if summary.interrupted:
        blocks.append(
            Block("text", (Span("Interrupted", "warning"), Span(": the report covers what was read until then.")))
        )
    return blocks + _skipped(summary)


def _read(summary: Summary, *, found: bool) -> list[Span]:
    lines = counted(summary.lines, "line")
    amount = f"{counted(summary.sources, 'source')}, {lines}, {size(summary.bytes)}, in {summary.seconds:.2f} s"
    if found:
        kept = f"{counted(summary.records, 'record')}, {counted(summary.tracebacks, 'traceback')}"
        spans = [Span(f"Read {amount}: {kept}"), *_severities(summary)]
    else:
        spans = [Span(f"No failure found in {amount}" if summary.lines else f"Nothing read: {amount}")]
    lost = _lost(summary)
    return [*spans, *([Span("; "), Span(lost, "warning")] if lost else []), Span(".")]


def _severities(summary: Summary) -> Iterator[Span]:
    counts = dict(summary.by_severity)
    for severity in reversed(SEVERITIES):
        if counts.get(severity):
            yield from (Span(", "), Span(f"{counts[severity]} {severity}", severity))


def _lost(summary: Summary) -> str:
    """Say what the report may have missed."""
    counts = (
        (summary.undecodable_lines, "line", "not valid UTF-8"),
        (summary.truncated_lines, "line", "cut for length"),
        (summary.dropped_tracebacks, "traceback", "counted but not kept"),
    )
    return ", ".join(f"{counted(number, noun)} {what}" for number, noun, what in counts if number)


def _skipped(summary: Summary) -> list[Block]:
    if not summary.skipped:
        return []
    items = [
        bullet(Span(path, "raw"), Span(": "), Span(reason, "log")) for path, reason in summary.skipped[:_SKIPPED_LIMIT]
    ]
    more = len(summary.skipped) - len(items)
    if more:
        items.append(bullet(Span(f"and {more:,} more", "dim")))
    return [heading("Not read, or not to the end"), *items]
