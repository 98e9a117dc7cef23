"""A report of the daemon as blocks: whole when an incident opens, short when it repeats or is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.report.context import place_of
from lmdiag.report.incident import headline, incident_blocks
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import counted, field, paragraphs

if TYPE_CHECKING:
    from lmdiag.model import Card, Incident


def watched_blocks(incident: Incident, card: Card | None) -> list[Block]:
    """Build the blocks of one report. `card` is the one that `incident.card` names, if it can be had."""
    if incident.state == "opened":
        return [*incident_blocks(incident, card, verbose=False), field("Incident", Span(incident.id, "raw"))]
    return _resolved(incident) if incident.state == "resolved" else _repeated(incident)


def loop_text(incident: Incident) -> str:
    """Say that restarts do not help, if the server loops; else ""."""
    if incident.loop is None:
        return ""
    times, seconds = incident.loop
    minutes = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
    return f"The same cause {counted(times, 'time')} in {minutes}: a restart will not help."


def _repeated(incident: Incident) -> list[Block]:
    first = [
        Span(incident.severity.upper(), incident.severity),
        Span(f"  again, {counted(incident.occurrences, 'time')} so far"),
    ]
    blocks = [Block("title", (*first, Span("  " + headline(incident), "strong"))), *_named(incident)]
    if incident.advice:
        blocks += [field("Try first", Span(incident.advice[0].text))]
    return blocks + paragraphs(loop_text(incident))


def _resolved(incident: Incident) -> list[Block]:
    title = (Span("RESOLVED", "info"), Span("  " + headline(incident), "strong"))
    return [Block("title", title), field("Happened", Span(counted(incident.occurrences, "time"))), *_named(incident)]


def _named(incident: Incident) -> list[Block]:
    card = [field("Card", Span(incident.card, "raw"))] if incident.card else []
    return [field("Where", Span(place_of(incident), "raw")), *card, field("Incident", Span(incident.id, "raw"))]
