"""Takes colours, control bytes and progress bars out of a physical line, and nothing else: never unescapes."""

from __future__ import annotations

from lmdiag.lazy_pattern import lazy

_ESCAPE = lazy(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI, colours among them
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, window titles and links
    r"|\x1b[ -/]*[0-~]"
)
# Copies keep a colour in other clothes: caret notation of web viewers, U+FFFD for ESC, or ESC lost altogether.
_COPIED_COLOUR = lazy(r"(?:\^\[|\ufffd)\[(?:\d{1,3};)*\d{0,3}m|(?<![\w\]])\[(?:\d{1,3};)+\d{1,3}m")
_RECORD = lazy(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b(?: \d\d-\d\d |:)")
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))
_HTML = lazy(r"&(?:quot|#39|#x27|lt|gt|amp);")
_HTML_TEXT = {"&quot;": '"', "&#39;": "'", "&#x27;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"}


def clean(text: str) -> list[str]:
    """Return the readable pieces of one physical line.

    A carriage return starts a new piece: a progress bar rewrites its line, and the next record is often glued to it.
    Behind a record's prefix it does not, since there it may be a client's. The common line, printable and in one
    piece, is returned as it is.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "[" in text and ("^[[" in text or "\ufffd[" in text or ";" in text[:80]):
        text = _COPIED_COLOUR.sub("", text)
    if ("&quot;" in text or "&#" in text) and not text.startswith("{"):  # inside JSON a quote would end the string
        text = _HTML.sub(lambda hit: _HTML_TEXT[hit.group()], text)
    if text.isprintable():
        return [text]
    text = text.translate(_CONTROL).rstrip("\r")
    if "\r" not in text:
        return [text]
    pieces = [piece for piece in text.split("\r") if piece.strip()]
    first = next((number for number, piece in enumerate(pieces) if _RECORD.search(piece)), len(pieces))
    return [*pieces[:first], " ".join(pieces[first:])] if pieces[first:] else pieces
