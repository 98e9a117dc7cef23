"""What the tests of the chat sinks share: messages of all kinds, hostile ones too, and the schemas in docs/payloads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from messages import message, summary
from report_samples import HIDDEN, MATCHED, REQUEST, UNMATCHED, with_message

from lmdiag.forward.message import Message
from lmdiag.model import Advice, Loop
from lmdiag.report.jsonl import dumps

DIRECTORY = Path(__file__).parent.parent / "docs" / "payloads"
PIECES = (
    "<!channel>", "<!here|x>", "<@U024BE7LH>", "<#C1>", "@everyone", "@here", "<@&123>", "<at>Jane</at>", "*LIVE*", "_LIVE_",
    "~LIVE~", "**LIVE**", "__LIVE__", "||LIVE||", "`LIVE`", "```LIVE", "```", "`", "> LIVE", ">>> LIVE", "# LIVE", "-# LIVE",
    "- LIVE", "1. LIVE", "[LIVE](https://evil.example/)", "<https://evil.example/|LIVE>", "<https://evil.example/>",
    "https://evil.example/", ":smile:", "&lt;!channel&gt;", "&amp;", "<b>LIVE</b>", "<script>", "{{LIVE}}", "${LIVE}", "\\", "\\*",
    "\n", "\r\n", "\t", "\x00", "\x1b[31m", "\x1b]0;title\x07", "\u202eevil", "\u2066", "\u200b", "\ud800", "\udcff", "😀", "👩\u200d👩\u200d👧", "é", "漢", " ",
)  # fmt: skip
HOSTILE_TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=40).map("".join)
_FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile(text: str) -> Message:
    """Return a report in which everything that a log, a file name or a host's name can say is this text."""
    incident = with_message(text)
    incident = incident._replace(
        source=text, processes=(text[:60],), fields=((text[:50], text),), reason=text, first_seen=text[:30],
        advice=(Advice(text, (("--flag", text),), "safe"), *MATCHED.advice),
        facts=incident.facts._replace(model=text, arguments=((text[:20], text),)),
        root=incident.root._replace(type=text) if incident.root else None,
    )  # fmt: skip
    return message()._replace(incident=incident, card=None, instance=text)


def of_hostiles(text: str) -> Message:
    """Return a summary whose members' titles and sources are this text."""
    many = summary(50, left_out=7)
    members = tuple(member._replace(title=text, source=text, card=None) for member in many.members)
    return many._replace(members=members, instance=text, incident=hostile(text).incident)


MESSAGES: dict[str, Message] = {
    "opened": message(),
    "repeated": message("repeated"),
    "resolved": message("resolved"),
    "looping": message("repeated", lambda incident: incident._replace(loop=Loop(5, 720.0))),
    "no card": message(change=lambda _: UNMATCHED)._replace(card=None),
    "no root": message(change=lambda _: HIDDEN),
    "a request": message(change=lambda _: REQUEST),
    "summary": summary(12, left_out=30),
    "large summary": summary(50, left_out=1000),
    "storm over": summary(5)._replace(incident=MATCHED._replace(state="resolved")),
    "hostile": hostile("".join(PIECES) * 400),
    "one word": hostile("x" * 100_000),
    "one mark": hostile("&" * 100_000),
    "ticks": hostile("`" * 100_000),
    "emoji": hostile("😀" * 100_000),
    "lines": hostile("<!channel>\n" * 10_000),
    "hostile summary": of_hostiles("".join(PIECES) * 4),
}
assert len(MESSAGES["hostile"].incident.evidence[0]) > 100_000


def validated(name: str, payload: object) -> Any:
    """Validate a payload by docs/payloads/NAME.schema.json and return it as a strict reader sees it."""
    read = json.loads(dumps(payload).encode().decode())
    schema = json.loads((DIRECTORY / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(read)
    for text in texts(read):
        assert not _FORBIDDEN.search(text), ascii(text)
    return read


def texts(value: Any) -> Iterator[str]:
    """Give all texts of a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts(one)


def outside_code(text: str, escapes: str = r"(?!)") -> list[str]:
    """Return the lines of chat markup with a NUL for what stands in code, and for what matches `escapes`.

    What is inert is a character all the same, and keeps what stands around it apart.
    """
    fences = re.findall(r"^```$", text, re.MULTILINE)
    assert len(fences) % 2 == 0, text
    assert text.count("```") == len(fences), "a fence within the code"
    # In one go, from left to right, as a reader of markup does it.
    inert = rf"(?ms:^```\n.*?\n```$)|`[^`\n]+`|{escapes}"
    return re.sub(inert, "\0", text).split("\n")
