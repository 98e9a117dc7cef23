"""One card for a person or a program: what `explain` and `cards show` print."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from lmdiag.report.layout import Block, Span, lines_of, prose
from lmdiag.report.raise_site import PROJECTS
from lmdiag.report.sections import (
    bullet,
    example,
    field,
    paragraphs,
    references,
    section,
    solutions,
)

if TYPE_CHECKING:
    from lmdiag.model import Card, MatchRule, RaiseSite, Sample


def card_blocks(card: Card) -> list[Block]:
    """Build the card's blocks: what it matches, what that means, what to change."""
    return [
        Block("title", (Span(card.severity.upper(), card.severity), Span("  " + card.title, "strong"))),
        *_names(card),
        *section("Matches", [block for rule in card.rules for block in _rule(rule)]),
        *section("Meaning", paragraphs(card.meaning)),
        *section("When it happens", paragraphs(card.trigger)),
        *section("How people get there", [bullet(*prose(situation)) for situation in card.situations]),
        *section("What to change", solutions(card.solutions)),
        *example(card),
        *section("Check afterwards", paragraphs(card.verify)),
        *section("Raised at", [bullet(*_site(site)) for site in card.raised_at]),
        *section("Related cards", [bullet(Span(related, "raw")) for related in card.related]),
        *references(card),
    ]


def print_card(card: Card, *, file: TextIO, color: bool | None, width: int | None) -> None:
    """Write the card to `file`; see `text.print_report` for `color` and `width`."""
    from lmdiag.report.text import print_blocks

    print_blocks(card_blocks(card), file=file, color=color, width=width)


def render_card_markdown(card: Card) -> str:
    """Render the card as Markdown."""
    from lmdiag.report.markdown import render_blocks

    return render_blocks(card_blocks(card))


def card_object(card: Card) -> dict[str, object]:
    """Every field of the card as JSON values, under the names of `lmdiag.model.Card`."""
    return {
        **card._asdict(),
        "rules": [rule._asdict() for rule in card.rules],
        "solutions": [{**solution._asdict(), "change": dict(solution.change)} for solution in card.solutions],
        "raised_at": [{**site._asdict(), "lines": dict(site.lines)} for site in card.raised_at],
        "samples": [_sample(sample) for sample in card.samples],
        "near_misses": [_sample(sample) for sample in card.near_misses],
    }


def _sample(sample: Sample) -> dict[str, object]:
    return {"log": sample.log, "fields": dict(sample.fields), "change": dict(sample.change)}


def _names(card: Card) -> list[Block]:
    pairs = (
        ("Card", card.id),
        ("Scope", card.scope),
        ("Tags", ", ".join(card.tags)),
        ("Formerly", ", ".join(card.aliases)),
        ("File", card.path),
    )
    return [field(label, Span(value, "raw")) for label, value in pairs if value]


def _rule(rule: MatchRule) -> list[Block]:
    said = rule.message or (f"/{rule.pattern}/" if rule.pattern else "(no message)")
    message = f"{' or '.join(rule.types)}: {said}" if rule.types else said
    places = [Block("text", (Span("raised in "), Span(place, "raw"))) for place in rule.raised_in]
    return [Block("code", lines_of(message, "")), *places]


def _site(site: RaiseSite) -> list[Span]:
    """`file in function, since vLLM 0.9.0 (now line 508)`."""
    spans = [Span(site.file, "raw"), Span(" in "), Span(site.function, "raw")]
    if not site.lines:
        return spans
    (first, _), (_, line) = site.lines[0], site.lines[-1]
    project = PROJECTS.get(site.project, site.project)
    until = f"{project} {first} to {site.last}" if site.last else f"{project} {first} and later"
    return [*spans, Span(f", line {line} at last ({until})", "dim")]
