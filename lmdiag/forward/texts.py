"""What a message says, in words: the report's blocks in the order of their importance, and texts of a bounded length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.forward.shorten import fitted, line_within
from lmdiag.report.context import first_line, message_of, place_of
from lmdiag.report.control import clip, one_line
from lmdiag.report.incident import OUTCOMES, incident_blocks
from lmdiag.report.layout import PROSE_WIDTH, Block, Span
from lmdiag.report.markdown import escaped, render_blocks
from lmdiag.report.plain import render_plain
from lmdiag.report.raise_site import raise_site
from lmdiag.report.sections import bullet, counted, field, section
from lmdiag.report.watched import watched_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmdiag.forward.message import Member, Message
    from lmdiag.model import Incident

_NAME_LIMIT = 64
"""Characters of a node's or a source's name: Linux takes no longer host name."""
_SITE = "In the source"
_LATE = (
    _SITE,
    "Example",
    "Followed by",
    "Failed starts before this one",
    "From the log",
    "No card for this error yet",
)
"""Sections that are left out before all others, the last one first."""


def headline(message: Message, limit: int = 200) -> str:
    """Say in one line of at most `limit` characters what happened, and where: a title, a notification."""
    incident = message.incident
    if message.members:
        what, where = f"{_many(message)} on {node(message)}", f" · the worst: {_subject(incident)}"
        return clip(f"{_standing(message)}  {what}{where}", limit)
    outcome = "" if incident.state == "resolved" else f" · {OUTCOMES.get(incident.outcome, incident.outcome)}"
    where = f"{outcome} · {_from_behind(incident.source)} on {node(message)}"
    start = f"{_standing(message)}  "
    room = limit - len(start) - len(where)
    # Where the title leaves no room, it goes first: it says more than the place does.
    return (
        start + clip(_subject(incident), room) + where if room > limit // 4 else clip(start + _subject(incident), limit)
    )


def plain(message: Message, limit: int) -> str:
    """Write the report as plain text of at most `limit` characters, shortened from its end."""

    def render(blocks: Sequence[Block]) -> str:
        first, last = render_plain(blocks[:-1], PROSE_WIDTH), render_plain(blocks[-1:], PROSE_WIDTH)
        return f"{first}\n{last.strip()}"

    blocks = _fitted(message, report(message), lambda blocks: len(render(blocks)) <= limit)
    return render(blocks) if blocks else headline(message, limit)


def markdown(message: Message, limit: int) -> str:
    """Write the report as Markdown of at most `limit` characters; what a log said is escaped, or code."""
    blocks = _fitted(message, report(message), lambda blocks: len(render_blocks(blocks)) <= limit)
    if blocks:
        return render_blocks(blocks).rstrip("\n")
    return line_within(lambda size: headline(message, size), escaped, lambda text: len(text) <= limit, limit)


def facts(message: Message) -> list[tuple[str, str]]:
    """Return short labelled values: one line each, whose text may be a log's."""
    incident = message.incident
    if message.members:
        return [("Severity", incident.severity), ("Node", node(message)), ("Incidents", f"{_count(message):,}")]
    pairs = [
        ("Severity", incident.severity),
        ("Node", node(message)),
        ("Where", _from_behind(place_of(incident))),
        ("Card", incident.card or "none"),
        ("Outcome", OUTCOMES.get(incident.outcome, incident.outcome)),
        ("Count", f"{incident.occurrences:,}"),
        ("Incident", incident.id),
    ]
    return [(label, one_line(value)) for label, value in pairs]


def node(message: Message) -> str:
    """Return the name of the node, as it can be shown."""
    return clip(one_line(message.instance), _NAME_LIMIT)


def is_resolved(message: Message) -> bool:
    """Whether nothing of what it tells is open any more; of a summary, whether the storm is over."""
    return message.incident.state == "resolved"


def report(message: Message) -> list[Block]:
    """Build the blocks of a message, the title first, in the order of their importance."""
    if message.members:
        title = [Span(_standing(message), message.incident.severity), Span(f"  {_many(message)} on ", "strong")]
        return [
            Block("title", (*title, Span(node(message), "raw"))),
            *(_member(member, over=is_resolved(message)) for member in message.members),
        ]
    blocks = _opened(message) if message.incident.state == "opened" else watched_blocks(message.incident, message.card)
    first = next((index for index, block in enumerate(blocks) if block.kind == "field"), len(blocks))
    return [*blocks[:first], field("Node", Span(node(message), "raw")), *blocks[first:]]


def note(message: Message, left_out: Sequence[Block]) -> Block:
    """Make the last line of each message: what was left out of it, and how the whole is seen."""
    if message.members:
        count = message.left_out + sum(block.kind == "item" for block in left_out)
        missing = f"… and {counted(count, 'more incident')}. " if count else ""
    else:
        names = [block.spans[0].text for block in left_out if block.kind == "heading"]
        missing = f"… left out: {', '.join(names) or 'details'}. " if left_out else ""
    command = Span(f"lmdiag outbox show {message.key}", "code")
    return Block("paragraph", (Span(f"{missing}The whole: "), command, Span(" on "), Span(node(message), "raw")))


def body(message: Message, fits: Callable[[Sequence[Block]], bool]) -> list[Block]:
    """Return as much of the report as fits, for a service that gets the headline apart; at least the note."""
    blocks = report(message)[1:]
    return _fitted(message, blocks, fits) or [note(message, blocks)]


def _fitted(message: Message, blocks: Sequence[Block], fits: Callable[[Sequence[Block]], bool]) -> list[Block]:
    return fitted(blocks, lambda left_out: note(message, left_out), fits)


def _opened(message: Message) -> list[Block]:
    """Put the report of `lmdiag scan` into the order of a message; the raise site becomes a section."""
    incident = message.incident
    site = raise_site(incident.raised_at) if incident.raised_at else []
    blocks = [block for block in incident_blocks(incident, message.card, verbose=False) if block not in site]
    starts = [index for index, block in enumerate(blocks) if block.kind == "heading"] or [len(blocks)]
    parts = [blocks[start:end] for start, end in zip(starts, [*starts[1:], len(blocks)], strict=True)]
    parts = sorted([section(_SITE, site), *parts], key=_rank)
    return [
        *blocks[: starts[0]],
        field("Incident", Span(incident.id, "raw")),
        *(block for part in parts for block in part),
    ]


def _rank(part: list[Block]) -> int:
    title = part[0].spans[0].text if part else ""
    return _LATE.index(title) + 1 if title in _LATE else 0


def _member(member: Member, *, over: bool) -> Block:
    state = " resolved" if over else {"resolved": " resolved", "repeated": " again"}.get(member.state, "")
    title = Span(clip(one_line(member.title), 120), "" if member.card else "log")
    card = [Span(", card "), Span(member.card, "raw")] if member.card else []
    start = (Span(member.severity.upper(), member.severity), Span(f"{state}  "), title)
    return bullet(*start, Span(" ("), Span(_from_behind(member.source), "raw"), *card, Span(")"))


def _standing(message: Message) -> str:
    if is_resolved(message):
        return "RESOLVED"
    again = " AGAIN" if message.incident.state == "repeated" and not message.members else ""
    return message.incident.severity.upper() + again


def _many(message: Message) -> str:
    return counted(_count(message), "incident")


def _count(message: Message) -> int:
    return len(message.members) + message.left_out


def _subject(incident: Incident) -> str:
    """Name what happened: the card's title, or what the root said."""
    root = incident.root
    if incident.card or root is None:
        return first_line(incident.title)
    return first_line(message_of((root.type or "").rsplit(".", 1)[-1], root.message))


def _from_behind(name: str) -> str:
    """Shorten a path at its beginning: its end tells it from others."""
    name = one_line(name)
    return name if len(name) <= _NAME_LIMIT else "…" + name[1 - _NAME_LIMIT :]
