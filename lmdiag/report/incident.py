"""An incident as blocks, most important first: what, where, why here, what to change, how to check."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from lmdiag.diagnose.known import known_values
from lmdiag.match.prose import filled
from lmdiag.report.context import cause_elsewhere, clues, earlier, evidence, first_line, message_of, place_of, symptoms
from lmdiag.report.control import clip, shorten
from lmdiag.report.layout import Block, Span, lines_of
from lmdiag.report.raise_site import raise_site
from lmdiag.report.relevant import facts_blocks
from lmdiag.report.sections import (
    bullet,
    counted,
    example,
    field,
    paragraphs,
    references,
    section,
    solutions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmdiag.model import Card, Incident

OUTCOMES = {
    "start_failed": "start failed",
    "died": "server died",
    "degraded": "degraded",
    "request_failed": "request failed",
    "running": "still running",
    "unknown": "outcome unknown",
}
"""What the header says for each of `lmdiag.model.OUTCOMES`."""

_CONFIDENCE = {
    "embedded": "the card's message stands inside a longer one",
    "partial": "the log cut the message off, so the card may be the wrong one",
}
_TITLE_LIMIT = 200
_HEADLINE_LIMIT = 60
_COMMAND_LIMIT = 120
"""Characters up to which a message is repeated in a command."""
_MESSAGE_LIMITS = (1000, 20_000)
_MESSAGE_LINES = (12, 200)


def incident_blocks(incident: Incident, card: Card | None, *, verbose: bool) -> list[Block]:
    """All that the report says about one incident. `card` is the one that `incident.card` names."""
    return [
        *_head(incident, verbose=verbose),
        *(() if incident.cause_visible else cause_elsewhere(incident)),
        *(_card(incident, card, verbose=verbose) if card else _no_card(incident, verbose=verbose)),
        *symptoms(incident, verbose=verbose),
        *earlier(incident, verbose=verbose),
        *evidence(incident, verbose=verbose),
        *(references(card) if card and verbose else ()),
    ]


def compact_block(incident: Incident) -> Block:
    """One or two lines for what nobody needs to act on: a client's mistake, a remark."""
    quoted = message_of(incident.root.type, incident.root.message) if incident.root else incident.title
    what = Span(incident.title, "") if incident.card else Span(clip(first_line(quoted), 90), "log")
    times = f"{counted(incident.occurrences, 'time')}, " if incident.occurrences > 1 else ""
    named = [Span(", card "), Span(incident.card, "raw")] if incident.card else []
    return bullet(what, Span(f" ({times}"), Span(place_of(incident), "raw"), *named, Span(")"))


def _head(incident: Incident, *, verbose: bool) -> list[Block]:
    outcome = OUTCOMES.get(incident.outcome, incident.outcome)
    first = [Span(incident.severity.upper(), incident.severity), Span("  " + outcome, "strong")]
    message = message_of(incident.root.type, incident.root.message) if incident.root else ""
    blocks = [Block("title", (*first, Span("  " + headline(incident), "strong")))]
    if message:
        blocks.append(_message(message, verbose=verbose))
    blocks += [field("Where", *_where(incident)), *_seen(incident)]
    return [*blocks, *raise_site(incident.raised_at)] if incident.raised_at else blocks


def headline(incident: Incident) -> str:
    """Return what an incident is called: its card's title, or else the type of its root."""
    if incident.card or incident.root is None:
        return clip(first_line(incident.title), _TITLE_LIMIT)
    return (incident.root.type or "").rsplit(".", 1)[-1] or clip(first_line(incident.root.message), _HEADLINE_LIMIT)


def _message(text: str, *, verbose: bool) -> Block:
    lines = lines_of(shorten(text, _MESSAGE_LIMITS[verbose]), "message")
    kept = lines[: _MESSAGE_LINES[verbose]]
    more = [Span(f"… {counted(len(lines) - len(kept), 'more line')}", "dim")] if len(lines) > len(kept) else []
    return Block("message", (*kept, *more))


def _where(incident: Incident) -> list[Span]:
    place = Span(place_of(incident), "raw")
    root = incident.root
    if root is None or root.process is None:
        return [place]
    pid = "" if root.pid is None else f" (pid {root.pid})"
    return [Span(root.process, "raw"), Span(f"{pid}, "), place]


def _seen(incident: Incident) -> list[Block]:
    """How often, in which processes, and when; nothing where that would only repeat the line above."""
    spans: list[Span] = []
    if incident.occurrences > 1 or len(incident.processes) > 1:
        shown = incident.processes[:8]
        more = f" and {len(incident.processes) - 8} more" if len(incident.processes) > len(shown) else ""
        spans = [Span(counted(incident.occurrences, "time")), *([Span(", in ")] if shown else [])]
        for index, process in enumerate(shown):
            spans += [Span(", ")] * (index > 0) + [Span(process, "raw")]
        spans.append(Span(more))
    times = list(dict.fromkeys(time for time in (incident.first_seen, incident.last_seen) if time))
    if times:
        spans += [Span("; ")] * bool(spans) + [Span(" to ".join(times), "log")]
    return [field("Seen", *spans)] if spans else []


def _card(incident: Incident, card: Card, *, verbose: bool) -> list[Block]:
    doubt = _CONFIDENCE.get(incident.confidence)
    known = known_values(incident.fields, incident.facts, incident.outcome, incident.clues)
    here = incident.reason or filled(card.trigger, known)
    why = [*paragraphs(here), *clues(incident), *facts_blocks(incident, card, verbose=verbose)]
    advice = solutions(incident.advice, running=incident.outcome != "start_failed") or paragraphs(
        f"What the log shows rules out every solution of the card. `lmdiag explain {card.id}` lists them."
    )
    return [
        field("Card", Span(card.id, "raw"), *([Span(f" ({incident.confidence}: {doubt})")] if doubt else [])),
        *section("Meaning", paragraphs(filled(card.meaning, known))),
        *section("What to change", advice),
        *section("Why it happened here", why),
        *(example(card) if _advises_first(incident, card, known) else ()),
        *section("Check afterwards", paragraphs(filled(card.verify, known))),
    ]


def _advises_first(incident: Incident, card: Card, known: Mapping[str, str]) -> bool:
    """Whether the card's first solution applies here: its example shows that one."""
    return bool(incident.advice) and incident.advice[0].text == filled(card.solutions[0].text, known)


def _no_card(incident: Incident, *, verbose: bool) -> list[Block]:
    facts = section("The server", facts_blocks(incident, None, verbose=verbose))
    if incident.root is None or not incident.root.message:
        return facts
    message = incident.root.message
    if len(message) > _COMMAND_LIMIT or "\n" in message or "'" in message:
        command, how = "lmdiag cards new -", "To write one, paste the message into:"
    else:
        command = f"lmdiag cards new {'-- ' if message.startswith('-') else ''}{quote(message)}"
        how = "To write one, start from the message:"
    blocks = [*paragraphs(how), Block("code", (Span(command, "strong"),))]
    return [*section("No card for this error yet", blocks), *facts]
