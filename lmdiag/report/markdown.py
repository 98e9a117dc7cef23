"""A report to paste into a ticket (GitHub and Jira flavour). Text from a log stays text there: see `escaped`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.lazy_pattern import lazy
from lmdiag.report.control import one_line
from lmdiag.report.document import report_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lmdiag.model import Card, Incident, Summary
    from lmdiag.report.layout import Block, Span

_SPECIAL = lazy(r"[\\`*_{}\[\]<>|~!&]|^(?:[#+=-]|\d+(?=[.)]))")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_REFERENCE = lazy(r"@(?=\w)|#(?=\d)")
_TICKS = lazy("`+")
_URL = lazy(r"https?://[^\s<>()`]+\Z")


def render_markdown(incidents: Iterable[Incident], summary: Summary, cards: Callable[[str], Card]) -> str:
    """Render the report as Markdown, ending in a newline; the arguments are those of `text.print_report`."""
    return render_blocks(report_blocks(incidents, summary, cards, verbose=False))


def render_blocks(blocks: Sequence[Block]) -> str:
    """Blocks as Markdown: an empty line stands between any two that are not items of one list."""
    out: list[str] = []
    previous = ""
    for block in blocks:
        tight = block.kind == previous and block.kind in {"item", "field"}
        out += [] if tight or not out else [""]
        out += _block_lines(block)
        previous = block.kind
    return "\n".join(out) + "\n"


def escaped(text: str) -> str:
    """Prose in which Markdown, HTML and Jira find nothing to act on.

    A mention or an issue number is told apart by a zero-width space, because both are found after escapes are undone.
    """
    plain = _SPECIAL.sub(lambda match: _ENTITIES.get(match[0]) or _backslashed(match[0]), one_line(text))
    return _REFERENCE.sub(lambda match: match[0] + "\u200b", plain)


def inline_code(text: str) -> str:
    """Make a code span that holds any text: its delimiters are longer than each run of backticks inside."""
    text = one_line(text).strip()
    if not text:
        return ""
    ticks = "`" * (_longest(text) + 1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fenced(lines: Iterable[str]) -> list[str]:
    """Make a code block whose fence is longer than any run of backticks inside."""
    body = [one_line(line) for line in lines]
    fence = "`" * max(3, 1 + max(map(_longest, body), default=0))
    return [f"{fence}text", *body, fence]


def _block_lines(block: Block) -> list[str]:
    if block.kind in {"message", "code", "log"}:
        return ["   " * block.depth + line for line in fenced(span.text for span in block.spans)]
    text = "".join(map(_span, block.spans)).strip()
    if block.kind == "title":
        return [f"## {text}"]
    if block.kind == "heading":
        return [f"### {text}"]
    if block.kind == "field":
        return [f"- **{escaped(block.label)}**: {text}" if block.label else f"  {text}"]
    if block.kind == "item":
        return [f"{block.label} {text}"]
    return ["   " * block.depth + text]


def _span(span: Span) -> str:
    if span.style == "url" and _URL.match(span.text):
        return f"<{span.text}>"
    if span.style in {"log", "raw", "code", "url"}:
        return inline_code(span.text)
    return escaped(span.text)


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def _backslashed(text: str) -> str:
    return f"{text}\\" if text[0].isdecimal() else f"\\{text}"
