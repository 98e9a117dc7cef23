"""What is in an outbox, for a person and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.forward.data import data, rfc3339
from lmdiag.forward.message import card_of
from lmdiag.forward.outbox import DEAD, MERGED, WAITING
from lmdiag.forward.texts import report
from lmdiag.report.control import clip
from lmdiag.report.incident import incident_blocks
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import bullet, counted, field, section
from lmdiag.report.watched import watched_blocks
from lmdiag.watch.status import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lmdiag.forward.message import Message
    from lmdiag.forward.rows import Delivery
    from lmdiag.model import Card

_TITLE_LIMIT, _DETAIL_LIMIT = 120, 300


def title_block(counts: Mapping[str, int]) -> Block:
    """Say how much waits and is dead; `counts` is by status."""
    waiting, dead = counts.get(WAITING, 0), counts.get(DEAD, 0)
    if not waiting and not dead:
        return Block("title", (Span("Nothing waits", "strong"),))
    letters = counted(dead, "dead letter") if dead else "no dead letters"
    return Block("title", (Span(f"{waiting:,} waiting, {letters}", "warning" if dead else "strong"),))


def item_block(one: Delivery, now: float) -> Block:
    """Say in short what a delivery is and how it stands at `now` (unix seconds)."""
    why = (Span(": "), Span(clip(one.detail, _DETAIL_LIMIT), "log")) if one.detail else ()
    start = (Span(f"{one.number} for "), Span(one.sink, "log"), Span(": "))
    return bullet(*start, *_subject(one, one.message), Span(f", {_standing(one, now)}"), *why)


def delivery_blocks(one: Delivery, now: float) -> Iterator[Block]:
    """Say all of a delivery but the report."""
    message = one.message
    yield Block("title", (Span(f"{one.status.upper()}  {one.number}", "strong"), Span(" for "), Span(one.sink, "log")))
    yield field("About", *_subject(one, message))
    yield field("Since", Span(f"{rfc3339(one.created_at)}, {_standing(one, now)}"))
    if one.detail:
        yield field("Where" if one.status == MERGED else "Why", Span(one.detail, "log"))
    yield field("Key", Span(one.key, "raw"))
    yield field("Incident", Span(one.incident, "raw"))
    if message is not None:
        yield field("Node", Span(message.instance, "raw"))


def report_blocks(messages: Iterable[Message], cards: Callable[[str], Card]) -> list[Block]:
    """Build the newest report of messages about one thing: as it was told, and the incident as a whole."""
    newest = max(messages, key=lambda message: message.at, default=None)
    if newest is None:
        return section("Report", [Block("paragraph", (Span("It is not kept any more, or cannot be read."),))])
    if newest.members:
        more = [bullet(Span(f"and {newest.left_out:,} more", "dim"))] if newest.left_out else []
        return [*report(newest), *more]
    incident, card = newest.incident, card_of(newest.incident.card, cards)
    told = [] if incident.state == "opened" else watched_blocks(incident, card)
    return [*told, *incident_blocks(incident, card, verbose=True)]


def delivery_object(one: Delivery, message: Message | None) -> dict[str, object]:
    """Make a delivery a JSON object: times in unix seconds; what is not kept, or cannot be read, is null."""
    incident = message.incident if message else None
    return {
        "kind": "delivery",
        **{key: value for key, value in one._asdict().items() if key != "body"},
        "state": incident.state if incident else None,
        "severity": incident.severity if incident else None,
        "title": incident.title if incident else None,
    }


def whole_object(one: Delivery, message: Message | None) -> dict[str, object]:
    """Make it a JSON object with its message, whose `data` is what a webhook gets."""
    if message is None:
        return {**delivery_object(one, None), "message": None}
    told = {"at": message.at, "since": message.since, "instance": message.instance, "alert": message.alert}
    return {**delivery_object(one, message), "message": {**told, "data": data(message)}}


def _subject(one: Delivery, message: Message | None) -> list[Span]:
    """Say what it is about, as far as that is kept and can be read."""
    incident = [Span("incident "), Span(one.incident, "raw")]
    if message is None:
        return incident if one.body is None else [Span("what another version of lmdiag wrote of "), *incident]
    severity = message.incident.severity
    named = [Span(severity.upper(), severity), Span(" "), Span(clip(message.incident.title, _TITLE_LIMIT), "log")]
    if message.members:
        count = len(message.members) + message.left_out
        return [Span(f"a summary of {counted(count, 'incident')}, the worst: "), *named]
    return [*named, Span(f" ({message.incident.state})")]


def _standing(one: Delivery, now: float) -> str:
    """Say for how long it waits or is done, and how often it was tried."""
    done = f"{duration(now - (one.done_at or one.created_at))} ago"
    if one.status == MERGED:
        return done
    attempts = counted(one.attempts, "attempt")
    if one.status != WAITING:
        return f"{one.status} {done} after {attempts}"
    due = "now" if one.next_at <= now else f"in {duration(one.next_at - now)}"
    tried = f"{attempts}, the next one {due}" if one.attempts else "not tried yet"
    return f"for {duration(now - one.created_at)}, {tried}"
