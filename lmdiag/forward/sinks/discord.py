"""Discord, by a webhook: one line that a telephone shows, and the report as an embed.

Limits: https://docs.discord.com/developers/resources/message (embed limits); they count code points, but what shows
them counts UTF-16 units. In prose each mark has a backslash; a log's text is code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from lmdiag.config import SinkConfig
from lmdiag.forward.answers import outcome_of, retry_after
from lmdiag.forward.data import rfc3339
from lmdiag.forward.http import Answer, Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.markup import Markup, marked
from lmdiag.forward.message import GONE, Message, Outcome
from lmdiag.forward.shorten import line_within, utf16
from lmdiag.forward.texts import body, headline, is_resolved, node

CONTENT, DESCRIPTION = 2000, 4096
"""The service's limits: of the line above, and of an embed's text. With the short footer, an embed stays far below the
6000 that are allowed for all of them."""
_COLOURS = {"critical": 0xB00020, "error": 0xE5533D, "warning": 0xE8A33D, "info": 0x3D7DE5}
_OVER = 0x2E9E5B
_MARK = re.compile(r"[\\*_~`|<>\[\]@]|:(?=//|[\w+-]+:)|^\s*[-+#]|^\s*\d+(?=\.)")

Json = dict[str, object]


def make(config: SinkConfig) -> DiscordSink:
    """Make the sink of a `[sinks.NAME]` with `type = "discord"`."""
    return DiscordSink(config)


class DiscordSink(HttpSink):
    """A channel."""

    def request(self, messages: Sequence[Message], now: float) -> Request:  # noqa: ARG002 (the messages have their times)
        """Write the request; see `HttpSink.request`."""
        (message,) = messages
        return self.make_request(payload(message), url=_waiting(self.url()))

    def outcome(self, answer: Answer, now: float) -> Outcome:
        """Judge the answer: a webhook that is not there any more must not be called again, says Discord.

        https://docs.discord.com/developers/topics/rate-limits; a 429 says how long in its head, its body, or both.
        """
        found = outcome_of(answer, now)
        if answer.status == 404:
            return found._replace(result=GONE)
        if answer.status == 429 and (after := _retry_after(answer.body, now)) is not None:
            return found._replace(after=max(after, found.after or 0.0))
        return found


def payload(message: Message) -> Json:
    """Write the message as the webhook takes it; it calls nobody, whatever stands in it."""
    line = line_within(lambda size: headline(message, size), escaped, lambda text: utf16(text) <= CONTENT, 200)
    blocks = body(message, lambda blocks: utf16(marked(blocks, MARKUP)) <= DESCRIPTION)
    embed: Json = {
        "description": marked(blocks, MARKUP),
        "color": _OVER if is_resolved(message) else _COLOURS.get(message.incident.severity, _COLOURS["info"]),
        "footer": {"text": f"lmdiag on {node(message)}"},
        "timestamp": rfc3339(message.at),
    }
    return {"content": line, "embeds": [embed], "allowed_mentions": {"parse": []}}


def escaped(text: str) -> str:
    """Prose in which nothing is bold, quoted, a link, a mention or an emoji: Discord takes a backslash off any mark."""
    return _MARK.sub(lambda match: _backslashed(match[0]), text)


MARKUP = Markup(bold="**", bullet="-", escape=escaped, entities=lambda text: text)


def _backslashed(mark: str) -> str:
    """Put the backslash before the mark; a number at the beginning of a line becomes none of a list by its dot's."""
    return f"{mark}\\" if mark[-1].isdecimal() else f"{mark[:-1]}\\{mark[-1]}"


def _waiting(url: str) -> str:
    """Ask for an answer that says whether the message was kept; without it Discord says yes in any case."""
    parts = urlsplit(url)
    if "wait" in parse_qs(parts.query):
        return url
    return parts._replace(query=f"{parts.query}&wait=true".lstrip("&")).geturl()


def _retry_after(body: bytes, now: float) -> float | None:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # no JSON, or one that is nested too deeply
        return None
    return retry_after(str(said.get("retry_after", "")), now) if isinstance(said, dict) else None
