"""What the texts, values and conditions of a card may name: its holes, its clues, the facts. Loaded only for checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmdiag.match.conditions import FACTS, facts_in, name_problems, no_hole
from lmdiag.match.prose import sentences
from lmdiag.match.sums import names_in, placeholders, sum_problems
from lmdiag.match.templates import parse_template

Found = Iterator[tuple[str, str]]
"""(key, what is wrong with it)."""
_PROSE = ("meaning", "trigger")


def word_problems(data: Mapping[str, Any]) -> Found:
    """Yield every name in a well-formed card that nothing provides."""
    rules = data["match"] if isinstance(data["match"], list) else [data["match"]]
    for number, rule in enumerate(rules):
        if "message" in rule and "pattern" in rule:
            yield f"match[{number}]", "has a message and a pattern; one will do"
        if "message" not in rule and "pattern" not in rule and not ("type" in rule and "raised_in" in rule):
            yield f"match[{number}]", "needs a message; an exception that has none is told by type and raised_in"
    holes = {hole for rule in rules for hole in _holes(rule)}
    clues = {item["name"]: _holes(item) for item in data.get("clue", ())}
    names = _Names(holes, clues)
    card = data["card"]
    for key in _PROSE:
        yield from names.in_prose(f"card.{key}", card[key])
    yield from names.in_prose("card.verify.text", card.get("verify", {}).get("text", "-"))
    for number, case in enumerate(card.get("cases", ())):
        yield from names.in_condition(f"card.cases[{number}].when", case["when"])
        yield from names.in_prose(f"card.cases[{number}].text", case["text"])
    for number, item in enumerate(card["solutions"]):
        key = f"card.solutions[{number}]"
        yield from names.in_text(f"{key}.text", item["text"])
        for flag, value in item.get("change", {}).items():
            yield from names.in_text(f"{key}.change.{flag}", value)
        for condition in ("when", "unless"):
            yield from names.in_condition(f"{key}.{condition}", item.get(condition, ""))
    for number, item in enumerate(data["sample"]):
        for name in sorted(item.get("fields", {}).keys() - holes):
            yield f"sample[{number}].fields.{name}", no_hole(name, holes)


def _holes(rule: Mapping[str, Any]) -> set[str]:
    if "message" not in rule:
        import regex

        return set(regex.compile(rule.get("pattern", "")).groupindex)
    return {part.text for part in parse_template(rule["message"]) if part.hole}


class _Names:
    """What a card's own words provide."""

    def __init__(self, holes: set[str], clues: Mapping[str, set[str]]) -> None:
        self._holes = holes
        self._clues = clues

    def in_prose(self, key: str, text: str) -> Found:
        """A sentence with a hole that the log leaves open is not shown: at least one sentence must need none."""
        yield from self.in_text(key, text)
        if not any(not placeholders(sentence) for sentence in sentences(text)):
            yield key, "every sentence needs a placeholder; where the log does not fill them, nothing would be left"

    def in_text(self, key: str, text: str) -> Found:
        for expression in placeholders(text):
            yield from ((key, problem) for problem in sum_problems(expression))
            yield from ((key, problem) for name in names_in(expression) for problem in self._problems(name))

    def in_condition(self, key: str, text: str) -> Found:
        for fact in facts_in(text) if text else ():
            group, _, name = fact.partition(".")
            if group == "field" and name not in self._holes:
                yield key, no_hole(name, self._holes)
            elif group == "log":
                yield from ((key, problem) for problem in self._clue_problems(name, hole_needed=False))

    def _problems(self, name: str) -> Iterator[str]:
        group, dotted, rest = name.partition(".")
        if not dotted:
            if name not in self._holes and name not in FACTS:
                yield no_hole(name, self._holes)
        elif group == "log":
            yield from self._clue_problems(rest, hole_needed=True)
        else:
            yield from name_problems(name)

    def _clue_problems(self, name: str, *, hole_needed: bool) -> Iterator[str]:
        clue, dotted, hole = name.partition(".")
        if clue not in self._clues:
            yield f"there is no [[clue]] named {clue!r}; the clues are {', '.join(self._clues) or 'none'}"
        elif (dotted or hole_needed) and hole not in self._clues[clue]:
            yield f"the clue {clue!r} has no hole {hole!r}"
