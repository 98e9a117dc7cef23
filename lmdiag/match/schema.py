"""What a card file may hold, as a table, and the walk that checks data against it. Loaded only where TOML is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from lmdiag.errors import CardError
from lmdiag.match.conditions import condition_problems
from lmdiag.match.templates import fold, parse_template
from lmdiag.model import RISKS, SCOPES, SEVERITIES
from lmdiag.parse.notable import HEAD_LENGTH

Found = Iterator[tuple[str, str]]
"""(key, what is wrong with it)."""
Check = Callable[[str], str | None]
"""Returns what is wrong with a text, or None."""

MAX_TITLE = 80
MAX_SOLUTIONS = 4
_KINDS = {
    "text": "a string",
    "texts": "a list of strings",
    "table": "a table",
    "tables": "a list of tables ([[…]])",
    "pairs": "a table of strings",
    "lines": "a table of whole numbers",
}
_ONE = {"texts": str, "tables": dict}


class Spec(NamedTuple):
    """What a key may hold."""

    kind: str
    """One of _KINDS. `texts` also takes one string, and `tables` one table, where `single` says so."""
    required: bool = False
    choices: tuple[str, ...] = ()
    check: Check | None = None
    """For each text, or for each key of pairs and lines."""
    table: Mapping[str, Spec] | None = None
    single: bool = False
    most: int | None = None


def pattern(expression: str, wanted: str) -> Check:
    """Return a check that a text is what the expression describes."""
    compiled = re.compile(expression)
    return lambda text: None if compiled.fullmatch(text) else f"{text!r} is not {wanted}"


def is_kebab(text: str) -> str | None:
    """Check that a name is kebab-case."""
    return (
        None
        if re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", text)
        else f"{text!r} is not kebab-case, like lmcache-mla-layerwise"
    )


def _title(text: str) -> str | None:
    if "\n" in text:
        return "must be one line"
    return f"has {len(text)} characters; {MAX_TITLE} are allowed" if len(text) > MAX_TITLE else None


def _template(text: str) -> str | None:
    try:
        parse_template(text)
    except CardError as error:
        return f"bad template: {error}"
    return None


def _pattern(text: str) -> str | None:
    import regex

    try:
        matches_nothing = regex.compile(text).search("") is None
    except (regex.error, RecursionError, MemoryError, OverflowError) as error:
        return f"bad pattern: {error}"
    return None if matches_nothing else "matches an empty message, so it would match every one"


def _condition(text: str) -> str | None:
    return "; ".join(condition_problems(text)) or None


def _beginning(text: str) -> str | None:
    head = fold(text).partition("{")[0]
    if len(head) < HEAD_LENGTH:
        return f"begins with {len(head)} literal characters; a clue is found by its first {HEAD_LENGTH}"
    return _template(text)


_VERSION = pattern(r"\d+(?:\.\w+)*", "a version, like 0.11.1")
_EXCEPTION = pattern(r"[A-Za-z_]\w*", "an exception's name without its module")
_PLACE = pattern(r"[^\s:]+\.\w+:[\w<>]+", "a place like vllm_v1_adapter.py:_init_lmcache_engine")
_CHANGE = pattern(
    r"--?[a-zA-Z][\w.-]*|[A-Z][A-Z0-9_]*|lmcache(?:\.\w+)+",
    "a flag (--max-model-len), an environment variable (VLLM_X) or an LMCache key (lmcache.remote_serde)",
)

CARD: Mapping[str, Spec] = {
    "title": Spec("text", required=True, check=_title),
    "severity": Spec("text", required=True, choices=SEVERITIES),
    "scope": Spec("text", required=True, choices=SCOPES),
    "tags": Spec("texts", check=is_kebab),
    "aliases": Spec("texts", check=is_kebab),
    "match": Spec(
        "tables",
        required=True,
        single=True,
        table={
            "type": Spec("texts", single=True, check=_EXCEPTION),
            "message": Spec("text", check=_template),
            "pattern": Spec("text", check=_pattern),
            "raised_in": Spec("texts", check=_PLACE),
        },
    ),
    "clue": Spec(
        "tables",
        table={
            "name": Spec("text", required=True, check=pattern(r"[a-z][a-z0-9_]*", "snake_case, like inspect_failed")),
            "message": Spec("text", required=True, check=_beginning),
        },
    ),
    "raised_at": Spec(
        "tables",
        table={
            "project": Spec("text", required=True, check=pattern(r"[a-z][\w-]*", "a project's name, like vllm")),
            "file": Spec("text", required=True),
            "function": Spec("text", required=True),
            "lines": Spec("lines", required=True, check=_VERSION),
            "last": Spec("text", check=_VERSION),
        },
    ),
    "card": Spec(
        "table",
        required=True,
        table={
            "meaning": Spec("text", required=True),
            "trigger": Spec("text", required=True),
            "situations": Spec("texts", required=True),
            "related": Spec("texts", check=is_kebab),
            "references": Spec("texts", check=pattern(r"https://\S+", "an https address")),
            "solutions": Spec(
                "tables",
                required=True,
                most=MAX_SOLUTIONS,
                table={
                    "text": Spec("text", required=True),
                    "change": Spec("pairs", check=_CHANGE),
                    "risk": Spec("text", required=True, choices=RISKS),
                    "when": Spec("text", check=_condition),
                    "unless": Spec("text", check=_condition),
                },
            ),
            "cases": Spec(
                "tables",
                table={"when": Spec("text", required=True, check=_condition), "text": Spec("text", required=True)},
            ),
            "example": Spec(
                "table", table={"before": Spec("text", required=True), "after": Spec("text", required=True)}
            ),
            "verify": Spec("table", table={"text": Spec("text", required=True)}),
        },
    ),
    "sample": Spec(
        "tables",
        required=True,
        table={"log": Spec("text", required=True), "fields": Spec("pairs"), "change": Spec("pairs", check=_CHANGE)},
    ),
    "near_miss": Spec("tables", required=True, table={"log": Spec("text", required=True)}),
}


def check_table(data: Mapping[str, object], table: Mapping[str, Spec], prefix: str = "") -> Found:
    """Yield all that is wrong with a table, at every level."""
    for key in data:
        if key not in table:
            yield prefix + key, "unknown key" + (_near(key, tuple(table)) or f"; known are {', '.join(table)}")
    for key, spec in table.items():
        if key in data:
            yield from _check_value(data[key], spec, prefix + key)
        elif spec.required:
            yield prefix + key, f"is missing; it must be {_wanted(spec)}"


def _check_value(value: object, spec: Spec, key: str) -> Found:
    if spec.single and isinstance(value, _ONE[spec.kind]):
        spec = spec._replace(kind=spec.kind.removesuffix("s"), single=False)
    if spec.kind == "text" and isinstance(value, str):
        yield from _check_text(value, spec, key)
    elif spec.kind == "table" and isinstance(value, dict):
        yield from check_table(value, spec.table or {}, key + ".")
    elif spec.kind in ("texts", "tables") and isinstance(value, list):
        yield from _check_list(value, spec, key)
    elif spec.kind in ("pairs", "lines") and isinstance(value, dict):
        yield from _check_pairs(value, spec, key)
    else:
        yield key, f"must be {_wanted(spec)}, not {_called(value)}"


def _check_text(text: str, spec: Spec, key: str) -> Found:
    if text.lstrip().startswith("TODO"):
        yield key, "still says TODO"
    elif not text.strip():
        yield key, "is empty"
    elif spec.choices and text not in spec.choices:
        yield key, f"{text!r} is not one of {', '.join(spec.choices)}" + _near(text, spec.choices)
    elif spec.check and (problem := spec.check(text)):
        yield key, problem


def _check_list(items: list[object], spec: Spec, key: str) -> Found:
    if spec.required and not items:
        yield key, "is empty; give at least one"
    if spec.most is not None and len(items) > spec.most:
        yield key, f"has {len(items)} entries; {spec.most} are allowed"
    for number, item in enumerate(items):
        yield from _check_value(item, spec._replace(kind=spec.kind.removesuffix("s"), single=False), f"{key}[{number}]")


def _check_pairs(pairs: dict[str, object], spec: Spec, key: str) -> Found:
    wanted, name = (int, "a whole number") if spec.kind == "lines" else (str, "a string in quotes")
    if spec.required and not pairs:
        yield key, "is empty; give at least one"
    for inner, value in pairs.items():
        if spec.check and (problem := spec.check(inner)):
            yield f"{key}.{inner}", problem
        if not isinstance(value, wanted) or isinstance(value, bool):
            yield f"{key}.{inner}", f"must be {name}, not {_called(value)}"


def _near(text: str, choices: tuple[str, ...]) -> str:
    near = get_close_matches(text.lower(), choices, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _wanted(spec: Spec) -> str:
    one = f"{_KINDS[spec.kind.removesuffix('s')]} or " if spec.single else ""
    return one + _KINDS[spec.kind]


def _called(value: object) -> str:
    names = {
        str: "a string",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "a date or time")
