"""Incidents of a part of a log, with the line numbers that they have in the whole log."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.diagnose.verdict import digest
from lmdiag.model import Incident
from lmdiag.read.part import Part


def placed(incidents: Sequence[Incident], part: Part) -> tuple[Incident, ...]:
    """Return those that end in the span, as a scan of the whole log would name them; `part` must not be closed yet."""
    return tuple(_placed(incident, part) for incident in incidents if part.is_inside(incident.last_line))


def _placed(incident: Incident, part: Part) -> Incident:
    first = part.line(incident.first_line)
    return incident._replace(
        id=digest(incident.fingerprint, incident.source, str(first)),
        first_line=first,
        last_line=part.line(incident.last_line),
        earlier=tuple(one._replace(line=part.line(one.line)) for one in incident.earlier),
        clues=tuple(clue._replace(line=part.line(clue.line)) for clue in incident.clues),
    )
