"""Text from a log, made safe to show: a terminal and a ticket see letters only, never commands."""

from __future__ import annotations

import re

from lmdiag.lazy_pattern import lazy

_ESCAPE = lazy(
    # CSI: colours, cursor movement.
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # OSC, DCS, SOS, PM, APC up to their end; no start may stand inside, or many without an end cost quadratic time.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    # Two-character ones, and the start of any that has no end.
    r"|\x1b[ -/]*[0-~]?"
)
_BREAK = lazy("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_REMOVED = lazy(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATE = lazy("[\ud800-\udfff]")


def visible(text: str) -> str:
    """Remove escape sequences, control characters, bidirectional overrides and invisible characters.

    Newlines stay; a tab becomes four blanks, a carriage return or another line separator one blank, a lone surrogate
    (an undecodable byte) U+FFFD. What an escape sequence encloses (a window title, say) goes with it. The sequences
    are those of ECMA-48; the overrides those of "Trojan Source" (CVE-2021-42574).
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BREAK.sub(_line_break, _ESCAPE.sub("", text.replace("\t", "    ")))
    return _SURROGATE.sub("\ufffd", _REMOVED.sub("", text))


def one_line(text: str) -> str:
    """`visible`, with each newline a blank."""
    return visible(text).replace("\n", " ")


def shorten(text: str, limit: int) -> str:
    """Cut a text longer than `limit` characters down to its head and tail, and say how much lay between."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    head = limit - tail
    left_out = f"{len(text) - limit:,}"
    return f"{text[:head]} … [{left_out} characters left out] … {text[len(text) - tail :]}"


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, the last of them an ellipsis, for lists in which each entry is short."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _line_break(match: re.Match[str]) -> str:
    return "\n" if match[0] == "\r\n" else " "
