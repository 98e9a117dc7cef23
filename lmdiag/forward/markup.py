"""Reports in the markup of chat services, where what a log said stays text: see `Markup`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report.control import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lmdiag.report.layout import Block, Span

_URL = re.compile(r"https?://[^\s<>()|`]+\Z")
_CODE = frozenset({"log", "raw", "code", "url", "message"})
_FENCE = re.compile("`{3,}")
_TOUCHING = re.compile(r"[\w`]{2}")
_JOINT = "\N{ZERO WIDTH SPACE}"
"""Lets code begin or end at a letter: without it, Slack takes the backticks for text, and what they enclose for markup."""
TICK = "\N{MODIFIER LETTER GRAVE ACCENT}"
"""Stands for a backtick where one would end the code: neither service has an escape for it there."""


class Markup(NamedTuple):
    """How a service is written to."""

    bold: str
    """What stands before and after bold text."""
    bullet: str
    escape: Callable[[str], str]
    """Makes prose inert."""
    entities: Callable[[str], str]
    """What must be escaped even in code."""


def marked(blocks: Sequence[Block], markup: Markup) -> str:
    """Write blocks one below the other; an empty line stands before each heading."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] if block.kind == "heading" and lines else []
        lines.append(_block(block, markup))
    return "\n".join(lines)


def _block(block: Block, markup: Markup) -> str:
    if block.kind in {"message", "code", "log"}:
        return _fenced((span.text for span in block.spans), markup)
    text = _joined(_span(span, markup) for span in block.spans)
    if block.kind in {"title", "heading"}:
        return f"{markup.bold}{text}{markup.bold}"
    if block.kind == "field" and (label := markup.escape(one_line(block.label).strip())):
        return f"{markup.bold}{label}{markup.bold}: {text}"
    if block.kind == "item":
        return f"{markup.bullet if block.label == '-' else block.label} {text}"
    return text


def _span(span: Span, markup: Markup) -> str:
    if span.style == "url" and _URL.match(span.text):
        return f"<{span.text}>"
    if span.style not in _CODE:
        return markup.escape(one_line(span.text))
    text = markup.entities(one_line(span.text).strip().replace("`", TICK))
    return f"`{text}`" if text else ""


def _joined(parts: Iterable[str]) -> str:
    text = ""
    for part in filter(None, parts):
        touch = text[-1:] + part[0]
        text += _JOINT + part if "`" in touch and _TOUCHING.fullmatch(touch) else part
    return text.strip()


def _fenced(lines: Iterable[str], markup: Markup) -> str:
    body = "\n".join(markup.entities(_FENCE.sub(lambda match: TICK * len(match[0]), one_line(line))) for line in lines)
    return f"```\n{body}\n```"
