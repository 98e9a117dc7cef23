"""Message templates: literal text with {named} holes, matched in linear time by looking for the literals.

White space is compared folded, because logs wrap, indent and pad messages: any run of it equals one blank.
"""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.errors import CardError
from lmdiag.lazy_pattern import lazy

Fields = tuple[tuple[str, str], ...]
"""(hole name, captured text), in the order of the template."""

_TOKEN = lazy(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_NAME = lazy(r"[a-z][a-z0-9_]*")
_WORD = lazy(r"[^\W\d_]{2,}")
_MIN_PARTIAL = 20
"""Literal characters that a cut-off message must share with a template before it counts."""
_MIN_OVERLAP = 4
"""A literal of which fewer characters stand at the cut is not told from the hole before it."""


class TemplateError(CardError):
    """A template cannot be read. The message says what is wrong with it and where."""


class Part(NamedTuple):
    """A piece of a template."""

    text: str
    """Literal text, or the name of a hole."""
    hole: bool = False


def fold(text: str) -> str:
    """Return the text with each run of white space as one blank, and none at its ends."""
    return " ".join(text.split())


def parse_template(text: str) -> tuple[Part, ...]:
    """Return the parts of a template, folded; literals and holes alternate.

    Raises TemplateError if a brace has no partner, a hole's name is bad or used twice, two holes stand side by side, or
    no literal word is left to look for.
    """
    parts: list[Part] = []
    for hit in _TOKEN.finditer(fold(text)):
        piece = hit.group()
        if piece in ("{", "}"):
            raise TemplateError(
                f"column {hit.start() + 1}: {piece!r} has no partner; write {piece * 2!r} for a literal brace"
            )
        if hit.group(1) is not None:
            parts.append(_hole(hit.group(1), parts))
            continue
        piece = piece[0] if piece in ("{{", "}}") else piece
        if parts and not parts[-1].hole:
            piece = parts.pop().text + piece
        parts.append(Part(piece))
    if not any(_WORD.search(part.text) for part in parts if not part.hole):
        raise TemplateError("no literal word; give at least one word of the message, or every message would match")
    return tuple(parts)


def _hole(name: str, before: list[Part]) -> Part:
    if not _NAME.fullmatch(name):
        raise TemplateError(
            f"{'{' + name + '}'!r}: a hole's name is snake_case, like {{max_len}}; literal braces are doubled"
        )
    if before and before[-1].hole:
        raise TemplateError(f"holes {before[-1].text!r} and {name!r} stand side by side; put literal text between them")
    if Part(name, hole=True) in before:
        raise TemplateError(f"two holes are named {name!r}; each needs a name of its own")
    return Part(name, hole=True)


class Template:
    """A compiled template. Raises TemplateError like parse_template."""

    __slots__ = ("_literals", "holes", "length", "words")

    def __init__(self, text: str) -> None:
        parts = parse_template(text)
        literals = [part.text for part in parts if not part.hole]
        self._literals = tuple([""] * parts[0].hole + literals + [""] * parts[-1].hole)
        self.holes = tuple(part.text for part in parts if part.hole)
        self.length = sum(map(len, literals))
        """Literal characters."""
        self.words = sum(len(_WORD.findall(literal)) for literal in literals)
        """Literal words."""

    @property
    def literals(self) -> tuple[str, ...]:
        """The text before, between and after the holes: one more than there are holes; the outer ones may be empty."""
        return self._literals

    def match(self, message: str) -> Fields | None:
        """Return the fields if the whole message fits. A hole takes as little as it can, the last one all that is left."""
        return self.match_folded(fold(message))

    def match_folded(self, text: str) -> Fields | None:
        """Do the same for a message that is folded already."""
        first, last = self._literals[0], self._literals[-1]
        if not self.holes:
            return () if text == first else None
        if not text.startswith(first) or not text.endswith(last):
            return None
        return self._between(text, len(first), len(text) - len(last))

    def _between(self, text: str, start: int, end: int | None = None) -> Fields | None:
        """Place the inner literals leftmost: where any placement fits, this one does, so nothing is tried twice.

        `end` is where the last literal begins; None: wherever it comes next.
        """
        values: list[str] = []
        for literal in self._literals[1:-1]:
            found = text.find(literal, start + 1, end)
            if found < 0:
                return None
            values.append(text[start:found])
            start = found + len(literal)
        if end is None:
            end = text.find(self._literals[-1], start + 1) if self._literals[-1] else len(text)
        if start >= end:
            return None
        values.append(text[start:end])
        return tuple(zip(self.holes, values, strict=True))

    def search(self, message: str) -> Fields | None:
        """Return the fields if the template stands anywhere inside the message; a hole at its edge takes all up to there."""
        return self.search_folded(fold(message))

    def search_folded(self, text: str) -> Fields | None:
        """Do the same for a message that is folded already."""
        start = text.find(self._literals[0])
        if start < 0 or not self.holes:
            return None if start < 0 else ()
        return self._between(text, start + len(self._literals[0]))

    def begin_folded(self, text: str) -> Fields | None:
        """Return the fields if a folded text begins with what the template describes; a last hole takes all that is left."""
        first = self._literals[0]
        if not text.startswith(first):
            return None
        return self._between(text, len(first)) if self.holes else ()

    def match_prefix(self, message: str) -> Fields | None:
        """Return the fields if the message, cut off somewhere, is a beginning of what the template describes.

        Dots at its end mark the cut. At least 20 literal characters must be there; a hole at the cut is not returned.
        """
        text = fold(message).rstrip(".… ")
        first = self._literals[0]
        if not text.startswith(first):
            return () if len(text) >= _MIN_PARTIAL and first.startswith(text) else None
        start = seen = len(first)
        values: list[str] = []
        for literal in self._literals[1:]:
            found = text.find(literal, start + 1) if literal else -1
            shared = len(literal) if found >= 0 else _overlap(text, start + 1, literal)
            if found >= 0 or shared:
                values.append(text[start : found if found >= 0 else len(text) - shared])
            seen += shared
            if found < 0:
                break
            start = found + len(literal)
        else:
            return None  # it goes on after the template's end
        return tuple(zip(self.holes, values, strict=False)) if seen >= _MIN_PARTIAL else None


def _overlap(text: str, start: int, literal: str) -> int:
    """Return how many characters at the text's end, from `start` on, are the beginning of the literal."""
    head = literal[:_MIN_OVERLAP]
    found = text.find(head, max(start, len(text) - len(literal))) if len(head) == _MIN_OVERLAP else -1
    while found >= 0:
        if literal.startswith(text[found:]):
            return len(text) - found
        found = text.find(head, found + 1)
    return 0
