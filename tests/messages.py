"""Messages that the tests of the sinks share."""

from __future__ import annotations

from collections.abc import Callable

from report_samples import CARD, MATCHED

from lmdiag.forward.message import Member, Message
from lmdiag.model import Incident

NOW = 1_764_720_000.0
"""2025-12-03T00:00:00Z."""


def message(state: str = "opened", change: Callable[[Incident], Incident] = lambda incident: incident) -> Message:
    """Return a report of the sample incident."""
    incident = change(MATCHED._replace(state=state))
    return Message(
        key=f"key-{state}", incident=incident, at=NOW, since=NOW - 60, instance="node7", alert="alert-1", card=CARD
    )


def summary(count: int = 12, left_out: int = 0) -> Message:
    """Return a summary of so many incidents that are listed, and some more."""
    members = tuple(
        Member(f"id-{number}", "opened", "critical", MATCHED.card, f"Failure {number}", f"server-{number}.log")
        for number in range(count)
    )
    return message()._replace(key="key-storm", alert="storm-1", members=members, left_out=left_out)
