"""Slack, by an incoming webhook: a header, the report as sections, and where the whole is.

Limits: https://docs.slack.dev/reference/block-kit/blocks and …/composition-objects/text-object. Escaping:
https://docs.slack.dev/messaging/formatting-message-text. A log's text is code, which Slack leaves alone, or prose
whose marks are replaced by letters that look like them: Slack has no escape for a mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lmdiag.config import SinkConfig
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.markup import TICK, Markup, marked
from lmdiag.forward.message import Message
from lmdiag.forward.shorten import line_within, within
from lmdiag.forward.texts import body, headline
from lmdiag.report.jsonl import dumps
from lmdiag.report.layout import Block

HEADER, SECTION, FIELD, FIELDS, BLOCKS = 150, 3000, 2000, 10, 50
"""The service's limits: of a header, of a section's text, of a field, of a section's fields, of a message's blocks."""
TOTAL = 10_000
"""Bytes of all blocks. Slack documents no limit, but refuses from about 13,200 characters on with
msg_blocks_too_long (https://github.com/slackapi/bolt-js/issues/2509)."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LOOKALIKES = str.maketrans({"*": "\N{ASTERISK OPERATOR}", "~": "\N{TILDE OPERATOR}", "`": TICK})
_UNDERLINE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_QUOTE = re.compile(r"^(\s*)>", re.MULTILINE)
_EMOJI = re.compile(r":(?=[\w+'-]+:)")
_PLAIN = str.maketrans({"<": "‹", ">": "›", "&": "+"})

Json = dict[str, object]


def make(config: SinkConfig) -> SlackSink:
    """Make the sink of a `[sinks.NAME]` with `type = "slack"`."""
    return SlackSink(config)


class SlackSink(HttpSink):
    """A channel. Slack answers 200 `ok`, 410 for an archived channel, other 4xx for what it will never take."""

    def request(self, messages: Sequence[Message], now: float) -> Request:  # noqa: ARG002 (the messages have their times)
        """Write the request; see `HttpSink.request`."""
        (message,) = messages
        return self.make_request(payload(message))


def payload(message: Message) -> Json:
    """Write the message as the webhook takes it; nothing in it unfolds links."""
    text = line_within(lambda size: headline(message, size), escaped, _at_most(SECTION), 200)
    blocks = body(message, lambda blocks: _fits(_sections(blocks)))
    header = headline(message, HEADER).translate(_PLAIN)
    return {
        "text": text,
        "blocks": [{"type": "header", "text": _plain(header)}, *_sections(blocks)],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def entities(text: str) -> str:
    """Escape the three characters that begin or end what Slack itself acts on: links, mentions, commands."""
    return "".join(_ENTITIES.get(char, char) for char in text)


def escaped(text: str) -> str:
    """Prose in which nothing is bold, quoted, a link, a mention or an emoji."""
    text = _QUOTE.sub(r"\1›", text).translate(_LOOKALIKES)
    text = _UNDERLINE.sub("\N{MODIFIER LETTER LOW MACRON}", text)
    return entities(_EMOJI.sub("\N{RATIO}", text))


MARKUP = Markup(bold="*", bullet="•", escape=escaped, entities=entities)


def _sections(blocks: Sequence[Block]) -> list[Json]:
    """Set the blocks: the fields of the head in two columns, the rest as text, the note small at the end."""
    *said, note = blocks
    end = next((index for index, block in enumerate(said) if block.kind == "heading"), len(said))
    fields = [block for block in said[:end] if block.kind == "field"][:FIELDS]
    before = [block for block in said[:end] if block.kind != "field"]
    columns: list[Json] = [{"type": "section", "fields": [_mrkdwn(_text(block, FIELD)) for block in fields]}]
    last: list[Json] = [{"type": "context", "elements": [_mrkdwn(_text(note, FIELD))]}]
    return [*_texts(before), *(columns if fields else ()), *_texts(said[end:]), *last]


def _texts(blocks: Sequence[Block]) -> list[Json]:
    """Put as many blocks as fit into each section."""
    texts: list[str] = []
    for block in blocks:
        text = _text(block, SECTION)
        if texts and block.kind != "heading" and _at_most(SECTION)(joined := f"{texts[-1]}\n{text}"):
            texts[-1] = joined
        else:
            texts.append(text)
    return [{"type": "section", "text": _mrkdwn(text)} for text in texts]


def _text(block: Block, limit: int) -> str:
    return within(block, lambda block: marked([block], MARKUP), _at_most(limit))


def _at_most(limit: int) -> Callable[[str], bool]:
    """Tell whether a text fits in bytes: it does then in whatever Slack counts."""
    return lambda text: len(text.encode()) <= limit


def _fits(sections: Sequence[Json]) -> bool:
    return len(sections) < BLOCKS and len(dumps(sections).encode()) <= TOTAL - HEADER * 4


def _mrkdwn(text: str) -> Json:
    # verbatim: what looks like a link, a channel or a name in the text is not made one.
    return {"type": "mrkdwn", "text": text or " ", "verbatim": True}


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}
