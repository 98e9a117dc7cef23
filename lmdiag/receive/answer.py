"""What was found for the alerts, as JSON for a program and as text for a person."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.model import SEVERITIES, Incident, Summary
from lmdiag.report.control import clip
from lmdiag.report.document import report_blocks
from lmdiag.report.jsonl import SCHEMA_VERSION, dumps, incident_object
from lmdiag.report.layout import Block, Span
from lmdiag.report.plain import render_plain
from lmdiag.report.text import TICKET_WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmdiag.model import Card
    from lmdiag.receive.look import Look
    from lmdiag.receive.payload import Alert

_MAX_INCIDENTS = 100
_NAMED = ("alertname", "instance", "namespace", "pod", "job")
"""Labels that a person knows an alert by."""
_VALUE_LIMIT = 80


class Answered(NamedTuple):
    """An alert, and what was found for it."""

    alert: Alert
    looks: tuple[Look, ...] = ()
    """At each of its logs, the newest first."""
    problems: tuple[str, ...] = ()

    @property
    def incidents(self) -> list[Incident]:
        """Those of all logs, the worst first, and of those the newest; at most 100."""
        found = [incident for look in self.looks for incident in sorted(look.incidents, key=_place)]
        return sorted(found, key=lambda incident: -SEVERITIES.index(incident.severity))[:_MAX_INCIDENTS]

    @property
    def problem(self) -> str:
        """What could not be looked at, as one text; "" if nothing."""
        left_out = sum(len(look.incidents) for look in self.looks) - _MAX_INCIDENTS
        more = (f"{left_out} more incidents are left out",) if left_out > 0 else ()
        return "; ".join((*self.problems, *(look.problem for look in self.looks if look.problem), *more))


def as_json(answered: Sequence[Answered], left_out: int) -> bytes:
    """Write the answer; `left_out`: alerts beyond those that are looked at."""
    alerts = [
        {
            "status": one.alert.status,
            "labels": one.alert.labels,
            "logs": [look.source for look in one.looks],
            "incidents": [incident_object(incident) for incident in one.incidents],
            "problem": one.problem,
        }
        for one in answered
    ]
    found = {"schema_version": SCHEMA_VERSION, "kind": "answer", "alerts": alerts, "left_out": left_out}
    return (dumps(found) + "\n").encode()


def as_text(answered: Sequence[Answered], left_out: int, cards: Callable[[str], Card]) -> bytes:
    """Write the answer as `lmdiag scan` writes its report. Raises CardError."""
    blocks = [block for one in answered for block in _blocks(one, cards)]
    if left_out:
        blocks.append(Block("title", (Span(f"{left_out} more alerts were not looked at."),)))
    return render_plain(blocks, TICKET_WIDTH).encode("utf-8", "replace")


def _blocks(one: Answered, cards: Callable[[str], Card]) -> list[Block]:
    title = Block("title", (Span(f"{one.alert.status.upper()}  ", "strong"), Span(_name(one.alert), "raw")))
    if one.alert.status == "resolved":
        return [title]
    summary = Summary(
        sources=len(one.looks),
        lines=sum(look.lines for look in one.looks),
        bytes=sum(look.bytes for look in one.looks),
        records=sum(look.records for look in one.looks),
        tracebacks=sum(look.tracebacks for look in one.looks),
        seconds=sum(look.seconds for look in one.looks),
        by_severity=tuple(Counter(incident.severity for incident in one.incidents).items()),
    )
    problem = [Block("text", (Span(one.problem, "log"),))] if one.problem else []
    return [title, *report_blocks(one.incidents, summary, cards, verbose=False), *problem]


def _name(alert: Alert) -> str:
    return ", ".join(f"{name}={clip(alert.labels[name], _VALUE_LIMIT)}" for name in _NAMED if alert.labels.get(name))


def _place(incident: Incident) -> int:
    return -incident.last_line
