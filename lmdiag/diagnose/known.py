"""What conditions and placeholders of a card may name, as one flat table of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmdiag.diagnose.facts import split_arguments
from lmdiag.match.conditions import ARGUMENTS
from lmdiag.model import ClueSeen, Facts

_DEPTH = 3
_MAX_NAMES = 400
_NAMED = ("vllm_version", "lmcache_version", "platform", "model", "architecture")


def known_values(
    fields: Iterable[tuple[str, str]], facts: Facts, outcome: str, clues: Iterable[ClueSeen]
) -> dict[str, str]:
    """Return the holes of the message (bare and as `field.`), the facts, `argument.…`, and `log.<clue>[.<hole>]`."""
    known = {name: value for name in _NAMED if (value := getattr(facts, name)) is not None}
    known["outcome"] = outcome
    if facts.arguments:
        known[ARGUMENTS] = "shown"
    for name, value in facts.arguments:
        for path, inner in _flattened(name, value, _DEPTH):
            if len(known) < _MAX_NAMES:
                known[f"argument.{path}"] = inner
    for clue in clues:
        known[f"log.{clue.name}"] = clue.text
        known |= {f"log.{clue.name}.{name}": value for name, value in clue.fields}
    for name, value in fields:
        known[name] = known[f"field.{name}"] = value
    return known


def inner_arguments(value: str) -> list[tuple[str, str]] | None:
    """Return the pairs of `{'a': 1}` or `KVTransferConfig(a=1)`; None if the value is neither."""
    value = value.strip()
    opening = value.find("(") if value[:1].isalpha() else value.find("{")
    if opening < 0 or value[-1:] not in (")", "}") or (value[:1] == "{" and opening != 0):
        return None
    if value[0] != "{" and not value[:opening].replace(".", "_").isidentifier():
        return None
    return split_arguments(value[opening + 1 : -1])


def _flattened(name: str, value: str, depth: int) -> Iterator[tuple[str, str]]:
    yield name, unquoted(value)
    for inner, text in (inner_arguments(value) if depth else None) or ():
        yield from _flattened(f"{name}.{inner}", text, depth - 1)


def unquoted(value: str) -> str:
    """Return a Python repr as a person writes it: without its quotes, an enum's value for `<Enum.X: 'x'>`."""
    value = value.strip()
    if value.startswith("<") and value.endswith(">") and ": " in value:
        value = value[1:-1].partition(": ")[2]
    return value.strip("'\"")


def mapping_of(value: str) -> Mapping[str, str]:
    """Return the inner values of a configuration, by key."""
    return dict(inner_arguments(value) or ())
