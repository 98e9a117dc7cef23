"""A report as neutral blocks, and their arrangement into lines of a width, which plain and coloured output share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.report.control import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PROSE_WIDTH = 100
"""Prose is not set wider than this, however wide the terminal is: longer lines are hard to read."""


class Span(NamedTuple):
    """A stretch of text of one style.

    Styles: "" prose · strong · dim · a severity · log (text from a log) · message (of the root) · heading and label,
    which the layout gives · and three that are never broken: raw (a name, a path), code (which stands in backticks)
    and url.
    """

    text: str
    style: str = ""


class Block(NamedTuple):
    """A piece of a report.

    Kinds: title (of an incident) · heading (of a section) · message (of the root) · field (label and text) ·
    paragraph · text (a line that no space sets apart) · item (labelled by a number or a dash) · code (lines to copy,
    never broken) · log (lines of the log). The spans of message, code and log are one line each.
    """

    kind: str
    spans: tuple[Span, ...]
    label: str = ""
    depth: int = 0
    """1: belongs to the item or the section above it, and is set further in."""


SetLine = list[Span]
"""A line as it is shown: spans that need no further treatment."""

_SOLID = frozenset({"raw", "code", "url"})
_SOLID_START = ("http://", "https://", "/", "--")
_TOKEN = lazy(r"[ \n]+|[^ \n]+")
_CODE = lazy(r"`([^`\n]+)`")
_INDENT = {"title": 0, "heading": 2, "message": 2, "field": 2, "code": 6}
_DEEPER = {"field": 2}
_APART = frozenset({"title", "heading", "message"})
_APART_AFTER = {"field": ("title", "message", "paragraph"), "paragraph": ("paragraph",)}
_LABEL_LIMIT = 22


def prose(text: str) -> tuple[Span, ...]:
    """Split a card's text into spans: what stands in backticks is code."""
    parts = _CODE.split(text.strip())
    return tuple(Span(part, "code" if index % 2 else "") for index, part in enumerate(parts) if part)


def lines_of(text: str, style: str = "log") -> tuple[Span, ...]:
    """Split a text into its lines, without blank lines at its ends."""
    return tuple(Span(line.rstrip(), style) for line in visible(text).strip("\n").split("\n"))


def lay_out(blocks: Sequence[Block], width: int) -> Iterator[SetLine]:
    """Arrange blocks into lines of at most `width` terminal cells; only code, URLs and paths may be wider."""
    columns = _label_columns(blocks)
    previous = ""
    for block, column in zip(blocks, columns, strict=True):
        if previous and (block.kind in _APART or previous in _APART_AFTER.get(block.kind, ())):
            yield []
        previous = block.kind
        yield from _set_block(block, column, width if block.kind == "log" else min(width, PROSE_WIDTH))


def cells(text: str) -> int:
    """How many terminal cells the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in {"Mn", "Me", "Cf"} else 2 if east_asian_width(char) in {"W", "F"} else 1 for char in text
    )


def _label_columns(blocks: Sequence[Block]) -> list[int]:
    """Compute the width of each block's label: fields that follow each other share one."""
    columns = [0] * len(blocks)
    start = 0
    for index, block in enumerate(blocks):
        if block.kind != "field":
            columns[index] = len(block.label) + 1 if block.label else 0
            start = index + 1
            continue
        longest = max(len(field.label) for field in blocks[start : index + 1])
        columns[start : index + 1] = [min(longest, _LABEL_LIMIT) + 2] * (index + 1 - start)
    return columns


def _set_block(block: Block, column: int, width: int) -> Iterator[SetLine]:
    indent = _INDENT.get(block.kind, 4) + _DEEPER.get(block.kind, 3) * block.depth
    if block.kind == "code":
        yield from ([Span(" " * indent), Span(one_line(span.text), span.style)] for span in block.spans)
    elif block.kind in {"message", "log"}:
        for span in block.spans:
            yield from _set_verbatim(span, indent, width)
    else:
        spans = [Span(span.text, "heading") for span in block.spans] if block.kind == "heading" else block.spans
        hang = 2 if block.kind == "title" else column
        label = Span(one_line(block.label).ljust(column - 1) + " " * (column > 0), "label")
        for number, line in enumerate(_wrap(spans, width - indent - column, width - indent - hang)):
            yield [Span(" " * indent), label, *line] if number == 0 else [Span(" " * (indent + hang)), *line]


def _set_verbatim(span: Span, indent: int, width: int) -> Iterator[SetLine]:
    """Set a line of the log: its own indentation stays, and what does not fit hangs below it."""
    text = one_line(span.text)
    own = min(len(text) - len(text.lstrip(" ")), 12)
    first = width - indent - own
    for number, line in enumerate(_wrap([Span(text, span.style)], first, first - 2) or [[]]):
        yield [Span(" " * (indent + own + (2 if number else 0))), *line]


def _wrap(spans: Iterable[Span], first: int, rest: int) -> list[SetLine]:
    """Break spans into lines: the first at most `first` cells wide, the others `rest`."""
    lines: list[SetLine] = []
    line: SetLine = []
    room = first
    for gap, word in _words(spans):
        size = sum(cells(span.text) for span in word)
        if line and gap + size > room:
            lines.append(line)
            line, room = [], rest
        if line:
            _extend(line, Span(" " * gap, line[-1].style if line[-1].style == word[0].style else ""))
            room -= gap
        for piece in _pieces(word, size, room, rest):
            if piece is None:
                lines.append(line)
                line, room = [], rest
            else:
                _extend(line, piece)
                room -= cells(piece.text)
    return [*lines, line] if line else lines


def _pieces(word: list[Span], size: int, room: int, rest: int) -> Iterator[Span | None]:
    """Cut a word's spans where they would leave the line (None: go on in the next), unless they must stay whole."""
    if size <= room or any(map(_is_solid, word)):
        yield from word
        return
    for span in word:
        start = 0
        for index, char in enumerate(span.text):
            if room < (taken := cells(char)):
                yield Span(span.text[start:index], span.style)
                yield None
                start, room = index, max(rest, 2)
            room -= taken
        yield Span(span.text[start:], span.style)


def _extend(line: SetLine, span: Span) -> None:
    """Append a span, joined to the one before it where they look alike, so that a terminal gets few colour codes."""
    if line and line[-1].style == span.style:
        line[-1] = Span(line[-1].text + span.text, span.style)
    else:
        line.append(span)


def _is_solid(span: Span) -> bool:
    return span.style in _SOLID or span.text.lstrip("\"'(<[").startswith(_SOLID_START)


def _words(spans: Iterable[Span]) -> Iterator[tuple[int, list[Span]]]:
    """Split spans into what fills a line: (blanks before it, its spans)."""
    gap, word = 0, list[Span]()
    for span in spans:
        text = one_line(span.text)
        tokens = [f"`{text}`" if span.style == "code" else text] if span.style in _SOLID else _TOKEN.findall(text)
        for token in tokens:
            if token.isspace():
                if word:
                    yield gap, word
                    gap, word = 0, []
                gap = 1 if span.style == "" else gap + len(token)
            else:
                word.append(Span(token, span.style))
    if word:
        yield gap, word
