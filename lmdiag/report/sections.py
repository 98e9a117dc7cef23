"""Blocks that reports on incidents and on cards have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.lazy_pattern import lazy
from lmdiag.report.control import one_line, shorten
from lmdiag.report.layout import Block, Span, lines_of, prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lmdiag.model import Advice, Card, Edit, Solution

_ENVIRONMENT = lazy(r"[A-Z][A-Z0-9_]*\Z")
_TEXT_LIMIT = 2000
_VALUE_LIMIT = 4000


def heading(text: str) -> Block:
    """Make the heading of a section."""
    return Block("heading", (Span(text),))


def field(label: str, *spans: Span, depth: int = 0) -> Block:
    """Make a label and what it says; `depth` is 1 inside a section."""
    return Block("field", spans, label, depth)


def bullet(*spans: Span) -> Block:
    """Make an item of an unordered list."""
    return Block("item", spans, "-")


def section(title: str, body: Sequence[Block]) -> list[Block]:
    """Put a heading before blocks; nothing if there are none."""
    return [heading(title), *body] if body else []


def paragraphs(text: str) -> list[Block]:
    """Split a card's text into paragraphs; an empty line stands between two."""
    parts = (part.strip() for part in shorten(text, _TEXT_LIMIT).split("\n\n"))
    return [Block("paragraph", prose(part)) for part in parts if part]


def solutions(given: Iterable[Advice | Solution], *, running: bool = True) -> list[Block]:
    """List the things to do by number, each with the lines to copy and, for a server that runs, its risk."""
    blocks: list[Block] = []
    for number, solution in enumerate(given, 1):
        blocks.append(Block("item", prose(shorten(solution.text, _TEXT_LIMIT)), f"{number}."))
        blocks += _changes(solution)
        if solution.risk == "disruptive" and running:
            risk = (Span("Disruptive: ", "warning"), Span("it costs running requests, capacity or a feature."))
            blocks.append(Block("text", risk, depth=1))
        if when := getattr(solution, "when", ""):
            blocks.append(Block("text", prose(f"Only where {when}"), depth=1))
        if unless := getattr(solution, "unless", ""):
            blocks.append(Block("text", prose(f"Not where {unless}"), depth=1))
    return blocks


def _changes(solution: Advice | Solution) -> list[Block]:
    """The lines to copy: as edits of what the log shows, or else as the card has them."""
    edits = getattr(solution, "edits", ())
    diff = any(edit.before is not None for edit in edits)
    lines = [Span(text, kind) for edit in edits for text, kind in _edit_lines(edit, diff=diff)]
    if not edits:
        lines = [Span(change_line(key, value), "strong") for key, value in solution.change]
    return [Block("code", tuple(lines), depth=1)] if lines else []


def _edit_lines(edit: Edit, *, diff: bool) -> list[tuple[str, str]]:
    """`- before` and `+ after` where the log shows what is set; else what to set. Only command lines go without a place."""
    place = "" if edit.place == "command line" else f"  # {edit.place}"
    before, after = (
        None if text is None else one_line(shorten(text, _VALUE_LIMIT)) for text in (edit.before, edit.after)
    )
    lines = [] if before is None else [(f"- {before}{place}", "")]
    if after is not None:
        lines.append((f"{'+ ' if diff else ''}{after}{place}", "strong"))
    return lines


def example(card: Card) -> list[Block]:
    """Show the card's configuration before and after."""
    blocks: list[Block] = []
    for name, text in (("before", card.example_before), ("after", card.example_after)):
        if text.strip():
            blocks += [Block("text", (Span(name, "dim"),)), Block("code", lines_of(text, ""))]
    return section("Example", blocks)


def references(card: Card) -> list[Block]:
    """List the card's links."""
    return section("References", [bullet(Span(url, "url")) for url in card.references])


def change_line(key: str, value: str) -> str:
    """Write a change as the operator would: `--flag value`, `ENV=value` or `lmcache.key: value`.

    Values of flags and variables are quoted for a POSIX shell: they may carry text from the log.
    """
    value = one_line(shorten(value, _VALUE_LIMIT))
    from shlex import quote  # not for a report without a change

    from lmdiag.diagnose.edits import UNSET

    if value == UNSET:
        return f"without {key}"
    if key.startswith("-"):
        return f"{key} {quote(value)}" if value else key
    if _ENVIRONMENT.match(key):
        return f"{key}={quote(value) if value else ''}"
    return f"{key}: {value}"


def counted(number: int, noun: str) -> str:
    """`1 line`, `12,345 lines`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
