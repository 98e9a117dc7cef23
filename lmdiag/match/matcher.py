"""Finds the card whose template fits an exception's message, among thousands, in microseconds.

Each template is filed under its rarest word, and only those are tried of which the message has that word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lmdiag.match.patterns import Patterns
from lmdiag.match.rulebook import PREFIX, Rulebook
from lmdiag.match.templates import Fields, Template, fold
from lmdiag.model import Frame, Match, MatchRule

_CUT = ("...", "…")
_MIN_EMBEDDED_LENGTH = 25
_MIN_EMBEDDED_WORDS = 3
"""A template with less literal text may stand inside a longer message by chance."""
_Rank = tuple[bool, int, int, str]


class Matcher:
    """The rules of a pack: those that are in memory, and those of the shipped index."""

    def __init__(self, rules: Iterable[MatchRule], shipped: Rulebook | None = None) -> None:
        own = Rulebook(tuple(rules))
        self._books = (shipped, own) if shipped else (own,)
        self.patterns = Patterns(rule for book in self._books for rule in book.some(book.filing.patterns))

    def match(
        self, type: str | None, message: str, frames: Sequence[Frame], *, embedded: bool = True, truncated: bool = False
    ) -> Match | None:
        """Return the card that fits best, or None.

        An exact match goes before one inside a longer message (`embedded`), and that before a cut-off message (tried if
        it ends in dots or is known to be `truncated`); then the longest literal text, the fewest holes, the first id.
        A site's patterns are tried where no template fits. `type` may be dotted; None fits every rule. An exception without
        a message (a bare `assert`) is told by its frames alone.
        """
        text = fold(message)
        name = type.rsplit(".", 1)[-1] if type else None
        if not text:
            every = (rule for book in self._books for rule in book.some(book.filing.silent))
            silent = (rule for rule in every if frames and _type_fits(rule, name) and _raised_in(rule, frames[-1:]))
            return next((Match(rule.card, (), "exact") for rule in silent), None)
        hits = self._whole(text, name, frames, embedded)
        if not hits and (truncated or text.endswith(_CUT)):
            hits = self._partial(text, name, frames)
        if hits:
            return min(hits, key=lambda hit: hit[0])[1]
        return self.patterns.match(message, lambda rule: _type_fits(rule, name) and _raised_in(rule, frames))

    def _whole(self, text: str, name: str | None, frames: Sequence[Frame], embedded: bool) -> list[tuple[_Rank, Match]]:
        hits = []
        for rule, template in self._candidates(text):
            confidence, fields = "exact", template.match_folded(text)
            if fields is None and embedded and _telling(template):
                confidence, fields = "embedded", template.search_folded(text)
            if fields is not None and _type_fits(rule, name) and _raised_in(rule, frames, template):
                hits.append(_hit(rule, template, fields, confidence))
        return hits

    def _partial(self, text: str, name: str | None, frames: Sequence[Frame]) -> list[tuple[_Rank, Match]]:
        hits = []
        for rule, template in self._beginning_like(text):
            fields = template.match_prefix(text)
            if fields is not None and _type_fits(rule, name) and _raised_in(rule, frames, template):
                hits.append(_hit(rule, template, fields, "partial"))
        return hits

    def _candidates(self, text: str) -> Iterator[tuple[MatchRule, Template]]:
        words = {"", *text.split()}
        for book in self._books:
            for word in words:
                yield from _tried(book, book.filing.under(word))

    def _beginning_like(self, text: str) -> Iterator[tuple[MatchRule, Template]]:
        for book in self._books:
            filed = book.filing.beginnings
            for length in range(min(PREFIX, len(text)) + 1):
                yield from _tried(book, filed.get(text[:length], ()))


def _tried(book: Rulebook, numbers: Iterable[int]) -> Iterator[tuple[MatchRule, Template]]:
    for number in numbers:
        rule = book.rules[number]
        if rule.card not in book.hidden:
            yield rule, book.template(number)


def _hit(rule: MatchRule, template: Template, fields: Fields, confidence: str) -> tuple[_Rank, Match]:
    rank = (confidence != "exact", -template.length, len(template.holes), rule.card)
    return rank, Match(rule.card, fields, confidence)


def _telling(template: Template) -> bool:
    return template.length >= _MIN_EMBEDDED_LENGTH and template.words >= _MIN_EMBEDDED_WORDS


def _type_fits(rule: MatchRule, name: str | None) -> bool:
    """Pydantic prints a validator's ValueError as ValidationError; VLLMValidationError was a ValueError up to vLLM 0.26."""
    if name is None or not rule.types or name in rule.types:
        return True
    return "ValueError" in rule.types and (name == "ValidationError" or name.endswith("VLLMValidationError"))


def _raised_in(rule: MatchRule, frames: Sequence[Frame], template: Template | None = None) -> bool:
    """Where the log has no frames, a message of many words speaks for itself; one of few words needs its place."""
    if not rule.raised_in:
        return True
    if not frames:
        return template is None or _telling(template)
    places = [place.rpartition(":") for place in rule.raised_in]
    return any(
        function == frame.function and f"/{frame.file}".replace("\\", "/").endswith(f"/{file}")
        for file, _, function in places
        for frame in frames
    )
