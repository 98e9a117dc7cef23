"""What is sent: one report of an incident, or a summary of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lmdiag.errors import CardError
from lmdiag.model import Card, Incident


class Member(NamedTuple):
    """One incident of a summary, in short."""

    id: str
    state: str
    severity: str
    card: str | None
    title: str
    source: str


class Message(NamedTuple):
    """What a sink is given. The incident's text is redacted already; the sink shortens it to what its service takes."""

    key: str
    """The idempotency key: the same in each attempt, another one for each report. Letters, digits, - and _ only."""
    incident: Incident
    """`state` says whether it opened, repeated or was resolved. Of a summary: its worst member."""
    at: float
    """When this was reported, in unix seconds."""
    since: float
    """When the incident opened."""
    instance: str
    """The node on which lmdiag runs."""
    alert: str
    """What a service with a memory knows it by, over all of its reports, until it is resolved. Unlike the incident's id
    it differs between nodes; the members of a summary share one."""
    members: tuple[Member, ...] = ()
    """Of a summary, the newest report of each incident, the worst first; empty for a single report."""
    left_out: int = 0
    """Members that are not listed: a summary has a bounded size."""
    card: Card | None = None
    """The incident's card, if it can be had."""


class Outcome(NamedTuple):
    """What became of an attempt."""

    result: str
    """One of RESULTS."""
    detail: str = ""
    """Why, for a person: one line without secrets. "" if it was delivered."""
    after: float | None = None
    """Seconds after which the receiver wants it again, if it said so."""
    answer: str = ""
    """What the receiver answered, for `lmdiag forward test`: some lines, shortened, without secrets."""


NO_CARD = "none"
"""How an incident without a card is named where cards are: Alertmanager takes an empty label for a missing one."""
MAX_AFTER = 3600.0
"""Seconds: no receiver puts a message off for longer."""
DELIVERED, RETRY, REJECTED, GONE = "delivered", "retry", "rejected", "gone"
RESULTS = (DELIVERED, RETRY, REJECTED, GONE)
"""retry: it may be taken later. rejected: this message never will be. gone: the receiver wants nothing more, ever."""


def card_of(name: str | None, cards: Callable[[str], Card]) -> Card | None:
    """Return an incident's card; None if it has none, or none that can be read any more."""
    try:
        return cards(name) if name else None
    except CardError:
        return None
