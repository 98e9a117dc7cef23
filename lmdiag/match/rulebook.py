"""The rules of a pack, filed so that a message is tried with few of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lmdiag.match.templates import Template, fold
from lmdiag.model import MatchRule

if TYPE_CHECKING:
    from lmdiag.match.index import Rules

PREFIX = 16
Filed = dict[str, list[int]]
"""The numbers of rules."""


class Filing:
    """Where which rule is filed. It is made when a message comes: a log without errors pays nothing."""

    def __init__(self, rules: Sequence[MatchRule]) -> None:
        self._rules = rules

    def under(self, word: str) -> Sequence[int]:
        """Return the templates that are filed under a word."""
        return self.words.get(word, ())

    @cached_property
    def words(self) -> Filed:
        """Each template under its rarest word that a message has whole; under "" those without one."""
        inner = {number: _inner_words(rule.message) for number, rule in enumerate(self._rules) if rule.message}
        rarity = Counter([word for some in inner.values() for word in some])
        filed: Filed = {}
        for number, some in inner.items():
            filed.setdefault(min(some, key=rarity.__getitem__, default=""), []).append(number)
        return filed

    @cached_property
    def beginnings(self) -> Filed:
        """Each template under its first characters; one with a hole among them under what stands before the hole."""
        filed: Filed = {}
        for number, rule in enumerate(self._rules):
            if rule.message:
                filed.setdefault(fold(rule.message).split("{", 1)[0][:PREFIX], []).append(number)
        return filed

    @cached_property
    def silent(self) -> list[int]:
        """The rules without any words."""
        return [number for number, rule in enumerate(self._rules) if not rule.message and not rule.pattern]

    @cached_property
    def patterns(self) -> list[int]:
        """The rules that are regular expressions."""
        return [number for number, rule in enumerate(self._rules) if rule.pattern]


class Rulebook:
    """Rules by number (or by place), with their templates; one is compiled when it is tried first."""

    def __init__(
        self,
        rules: Sequence[MatchRule] | Rules,
        filing: Filing | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.rules = rules
        self.filing = filing or Filing(tuple(rules))
        self.hidden = hidden
        """Cards that are not to be used."""
        self._templates: dict[int, Template] = {}

    def template(self, number: int) -> Template:
        """Return the template of a rule that has one."""
        template = self._templates.get(number)
        if template is None:
            template = self._templates[number] = Template(self.rules[number].message)
        return template

    def some(self, numbers: Iterable[int]) -> list[MatchRule]:
        """Return the rules of these numbers that are to be used."""
        return self.shown(self.rules[number] for number in numbers)

    def shown(self, rules: Iterable[MatchRule]) -> list[MatchRule]:
        """Return those that are to be used."""
        return [rule for rule in rules if rule.card not in self.hidden]


def _inner_words(message: str) -> list[str]:
    """The words of a raw template, punctuation included, that touch neither a hole nor an end: a match has them whole."""
    words = message.split()[1:-1]
    return [word for word in words if "{" not in word and "}" not in word] if "{" in message else words
