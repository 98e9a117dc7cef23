"""A storm of reports as one summary, so that nobody's telephone rings a hundred times for one cause."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from lmdiag.forward.message import Member, Message
from lmdiag.model import SEVERITIES

WINDOW = 60.0
"""Seconds within which a sink takes `burst` messages one by one."""
LEAST = 3
"""As few messages as this are worth a summary; fewer wait for their turn."""
_LISTED = 50


def summary_of(messages: Sequence[Message], now: float) -> Message:
    """Make one message of several, of which each incident's last one counts; the same messages give the same key."""
    last = {message.incident.id: message for message in messages}
    worst_first = sorted(last.values(), key=_badness)
    worst = worst_first[0]
    name = "storm-" + sha256("\n".join(message.key for message in messages).encode()).hexdigest()[:24]
    return Message(
        key=name,
        incident=worst.incident,
        at=now,
        since=min(message.since for message in worst_first),
        instance=worst.instance,
        alert=name,
        members=tuple(map(_member, worst_first[:_LISTED])),
        left_out=max(0, len(worst_first) - _LISTED),
    )


def _badness(message: Message) -> tuple[bool, int]:
    """What is open comes before what is over, the worst first."""
    return message.incident.state == "resolved", -SEVERITIES.index(message.incident.severity)


def _member(message: Message) -> Member:
    incident = message.incident
    return Member(incident.id, incident.state, incident.severity, incident.card, incident.title, incident.source)
