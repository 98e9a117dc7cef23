"""Which sink is told what. Pure: what a sink already knows comes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lmdiag.forward.message import NO_CARD
from lmdiag.model import SEVERITIES

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.rows import Alert
    from lmdiag.model import Incident


def wants(sink: SinkConfig, incident: Incident, tags: Sequence[str], known: Alert | None, now: float) -> bool:
    """Whether a sink is to be told a report. `known` is what it was told of that incident, if it was.

    The end of an incident goes to whoever was told of it, and to nobody else, whatever the incident is like now.
    """
    if incident.state == "resolved":
        return known is not None and not known.resolved and "resolved" in sink.states
    if not _routed(sink, incident, tags):
        return False
    if known is None or known.resolved or _worse(incident, known):
        return "opened" in sink.states or incident.state in sink.states
    # a clock that was set back makes it later than now
    return incident.state in sink.states and not 0 <= now - known.told_at < sink.cooldown


def _routed(sink: SinkConfig, incident: Incident, tags: Sequence[str]) -> bool:
    """Whether a sink is for incidents of this kind."""
    return (
        SEVERITIES.index(incident.severity) >= SEVERITIES.index(sink.severity)
        and incident.scope in sink.scopes
        and _fits(sink.cards, [incident.card or NO_CARD])
        and _fits(sink.tags, tags)
        and _fits(sink.sources, [incident.source])
    )


def _worse(incident: Incident, known: Alert) -> bool:
    """Whether there is news that no cooldown may hold back."""
    return SEVERITIES.index(incident.severity) > SEVERITIES.index(known.severity) or (
        incident.loop is not None and not known.looping
    )


def _fits(patterns: Iterable[str], values: Sequence[str]) -> bool:
    """Whether a value fits one of the patterns, if there are any, and none fits one that begins with !."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return (not wanted or _any(wanted, values)) and not _any(unwanted, values)


def _any(patterns: Iterable[str], values: Sequence[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns for value in values)
