"""Regular expressions of a site's own cards, each with a time limit: one that runs away is muted, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from lmdiag.model import Match, MatchRule

TIMEOUT = 0.05
"""Seconds for one message."""
_MAX_MESSAGE = 20_000


class Patterns:
    """The pattern rules of a pack. `regex` is imported and a pattern compiled when a message is tried first."""

    def __init__(self, rules: Iterable[MatchRule]) -> None:
        self._rules = tuple(rules)
        self._compiled: dict[str, Any] = {}
        self.muted: Counter[str] = Counter()
        """Card -> how often its pattern was stopped, or left out since it had been stopped before."""

    def match(self, message: str, fits: Callable[[MatchRule], bool]) -> Match | None:
        """Return the first card whose pattern is found in the message and whose rule `fits`."""
        for rule in self._rules:
            if not fits(rule):
                continue
            if rule.card in self.muted:
                self.muted[rule.card] += 1
                continue
            try:
                hit = self._pattern(rule.pattern).search(message[:_MAX_MESSAGE], timeout=TIMEOUT)
            except TimeoutError:
                self.muted[rule.card] += 1
                continue
            if hit is not None:
                fields = tuple((name, value) for name, value in hit.groupdict().items() if value is not None)
                return Match(rule.card, fields, "exact")
        return None

    def _pattern(self, text: str) -> Any:
        if text not in self._compiled:
            import regex  # only for cards of a site's own

            self._compiled[text] = regex.compile(text)
        return self._compiled[text]
