"""A card's prose, filled in: a sentence with a placeholder that the log leaves open is left out."""

from __future__ import annotations

from collections.abc import Mapping

from lmdiag.lazy_pattern import lazy
from lmdiag.match.sums import fill

_END = lazy(r"(?<=[.!?])(\s+)(?=[A-Z0-9{`\"'(-])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the white space that follows it."""
    parts = _END.split(text)
    return ["".join(parts[start : start + 2]) for start in range(0, len(parts), 2)]


def filled(text: str, known: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled in, without the sentences for which the log has no value."""
    if "{" not in text:
        return text
    return "".join(done for part in sentences(text) if (done := fill(part, known)) is not None).strip()
