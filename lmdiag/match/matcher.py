"""Finds the card whose template fits an exception's message, among thousands, in microseconds.

Each template is filed under its rarest word, and only those are tried of which the message has that word. Templates are
compiled when they are tried first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lmdiag.match.patterns import Patterns
from lmdiag.match.templates import Fields, Template, fold
from lmdiag.model import Frame, Match, MatchRule

_PREFIX = 16
_CUT = ("...", "…")
_MIN_EMBEDDED_LENGTH = 25
_MIN_EMBEDDED_WORDS = 3
"""A template with less literal text may stand inside a longer message by chance."""
_Rank = tuple[bool, int, int, str]


class Matcher:
    """The rules of a pack. Nothing is indexed before the first message, so that a log without errors pays nothing."""

    def __init__(self, rules: Iterable[MatchRule]) -> None:
        every = tuple(rules)
        self._rules = tuple(rule for rule in every if rule.message)
        self._silent = tuple(rule for rule in every if not rule.message and not rule.pattern)
        self.patterns = Patterns(rule for rule in every if rule.pattern)
        self._templates: list[Template | None] = [None] * len(self._rules)
        self._by_word: dict[str, list[int]] | None = None
        self._unfiled: list[int] = []
        self._by_prefix: dict[str, list[int]] | None = None

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
            silent = (
                rule for rule in self._silent if frames and _type_fits(rule, name) and _raised_in(rule, frames[-1:])
            )
            return next((Match(rule.card, (), "exact") for rule in silent), None)
        hits = self._whole(text, name, frames, embedded)
        if not hits and (truncated or text.endswith(_CUT)):
            hits = self._partial(text, name, frames)
        if hits:
            return min(hits, key=lambda hit: hit[0])[1]
        return self.patterns.match(message, lambda rule: _type_fits(rule, name) and _raised_in(rule, frames))

    def _whole(self, text: str, name: str | None, frames: Sequence[Frame], embedded: bool) -> list[tuple[_Rank, Match]]:
        hits = []
        for number in self._candidates(text):
            rule, template = self._rules[number], self._template(number)
            confidence, fields = "exact", template.match_folded(text)
            if fields is None and embedded and _telling(template):
                confidence, fields = "embedded", template.search_folded(text)
            if fields is not None and _type_fits(rule, name) and _raised_in(rule, frames, template):
                hits.append(_hit(rule, template, fields, confidence))
        return hits

    def _partial(self, text: str, name: str | None, frames: Sequence[Frame]) -> list[tuple[_Rank, Match]]:
        hits = []
        for number in self._beginning_like(text):
            rule, template = self._rules[number], self._template(number)
            fields = template.match_prefix(text)
            if fields is not None and _type_fits(rule, name) and _raised_in(rule, frames, template):
                hits.append(_hit(rule, template, fields, "partial"))
        return hits

    def _candidates(self, text: str) -> Iterator[int]:
        index = self._word_index()
        yield from self._unfiled
        for word in set(text.split()):
            if word in index:
                yield from index[word]

    def _word_index(self) -> dict[str, list[int]]:
        if self._by_word is None:
            self._by_word = {}
            words = [_inner_words(rule.message) for rule in self._rules]
            rarity = Counter([word for some in words for word in some])
            for number, some in enumerate(words):
                if some:
                    self._by_word.setdefault(min(some, key=rarity.__getitem__), []).append(number)
                else:
                    self._unfiled.append(number)
        return self._by_word

    def _beginning_like(self, text: str) -> Iterator[int]:
        """By the first characters; a template with a hole among them is filed under what stands before the hole."""
        if self._by_prefix is None:
            self._by_prefix = {}
            for number, rule in enumerate(self._rules):
                head = fold(rule.message).split("{", 1)[0][:_PREFIX]
                self._by_prefix.setdefault(head, []).append(number)
        for length in range(min(_PREFIX, len(text)) + 1):
            yield from self._by_prefix.get(text[:length], ())

    def _template(self, number: int) -> Template:
        template = self._templates[number]
        if template is None:
            template = self._templates[number] = Template(self._rules[number].message)
        return template


def _inner_words(message: str) -> list[str]:
    """The words of a raw template, punctuation included, that touch neither a hole nor an end: a match has them whole."""
    words = message.split()[1:-1]
    return [word for word in words if "{" not in word and "}" not in word] if "{" in message else words


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
