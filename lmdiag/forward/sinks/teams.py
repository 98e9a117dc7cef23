"""Microsoft Teams, by a workflow that posts an Adaptive Card.

Text stands in RichTextBlocks, whose TextRuns know no Markdown (https://adaptivecards.io/explorer/TextRun.html), unlike
a TextBlock or a FactSet. Names come to life only through `msteams.entities`, which no card of ours has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lmdiag.config import SinkConfig
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import Message
from lmdiag.forward.shorten import utf16
from lmdiag.forward.texts import body, headline, is_resolved
from lmdiag.report.control import one_line
from lmdiag.report.jsonl import dumps
from lmdiag.report.layout import Block, Span

SIZE = 28_000
"""Bytes of a message, for which Teams documents about 28 KB
(https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using). Kept in UTF-16,
too: Teams was seen to count that."""
_COLOURS = {"critical": "Attention", "error": "Attention", "warning": "Warning", "info": "Accent"}
_MONOSPACE = frozenset({"log", "raw", "code", "url", "message"})
_SECURE = re.compile(r"https://[^\s<>]+\Z")
_BLANKS = re.compile("^ +| {2,}")
_NBSP = "\N{NO-BREAK SPACE}"

Json = dict[str, object]


def make(config: SinkConfig) -> TeamsSink:
    """Make the sink of a `[sinks.NAME]` with `type = "teams"`."""
    return TeamsSink(config)


class TeamsSink(HttpSink):
    """A channel or a chat. The workflow answers 202."""

    def request(self, messages: Sequence[Message], now: float) -> Request:  # noqa: ARG002 (the messages have their times)
        """Write the request; see `HttpSink.request`."""
        (message,) = messages
        # With its encoding: it is taken for another one, twice as large, without.
        return self.make_request(payload(message), (("Content-Type", "application/json; charset=utf-8"),))


def payload(message: Message) -> Json:
    """Write the message as the workflow takes it."""
    return _message(message, body(message, lambda blocks: _fits(_message(message, blocks))))


def _message(message: Message, blocks: Sequence[Block]) -> Json:
    colour = "Good" if is_resolved(message) else _COLOURS.get(message.incident.severity, "Default")
    title: Json = {"type": "TextRun", "text": headline(message), "weight": "Bolder", "size": "Medium", "color": colour}
    card: Json = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": headline(message),
        "msteams": {"width": "Full"},
        "body": [_rich([title]), *map(_element, blocks)],
    }
    site = message.incident.raised_at
    if site and site.url and _SECURE.match(site.url) and not message.members:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the source", "url": site.url}]
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}


def _fits(found: Json) -> bool:
    text = dumps(found)
    return max(len(text.encode()), 2 * utf16(text)) <= SIZE


def _element(block: Block) -> Json:
    if block.kind in {"message", "code", "log"}:
        lines = [_rich([_run(span.text, monospace=True)], spacing="None") for span in block.spans]
        return {"type": "Container", "style": "emphasis", "spacing": "Small", "items": lines}
    if block.kind == "heading":
        return _rich(_runs(block.spans, bold=True), spacing="Medium")
    label = [_run(f"{block.label}: " if block.kind == "field" else f"{block.label} ", bold=True)] if block.label else []
    return _rich([*label, *_runs(block.spans)], spacing="Small")


def _rich(runs: Sequence[Json], spacing: str = "Default") -> Json:
    return {"type": "RichTextBlock", "spacing": spacing, "inlines": list(runs) or [_run(" ")]}


def _runs(spans: Iterable[Span], *, bold: bool = False) -> list[Json]:
    return [
        _run(span.text, monospace=span.style in _MONOSPACE, bold=bold or span.style == "strong")
        for span in spans
        if span.text
    ]


def _run(text: str, *, monospace: bool = False, bold: bool = False) -> Json:
    """Make a run of text. Blanks that a browser would join are made such as it does not."""
    text = _BLANKS.sub(lambda match: _NBSP * len(match[0]), one_line(text)) if monospace else one_line(text)
    run: Json = {"type": "TextRun", "text": text or _NBSP}
    return run | ({"fontType": "Monospace"} if monospace else {}) | ({"weight": "Bolder"} if bold else {})
