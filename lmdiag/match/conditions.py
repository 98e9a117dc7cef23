"""The conditions of `when` and `unless`: `<fact> <op> <value>`, or a fact alone, which means that it is known.

They are joined by " and " and " or "; " and " binds tighter. An unknown fact fulfils nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from lmdiag.lazy_pattern import lazy
from lmdiag.match.sums import NOTHING, number_in
from lmdiag.match.versions import version_key
from lmdiag.model import OUTCOMES

FACTS = ("vllm_version", "lmcache_version", "platform", "outcome", "model", "architecture")
_CONDITION = lazy(r"(?P<fact>[^\s=!<>~]+)(?:\s*(?P<operator>[=!<>~]+)\s*(?P<value>.*))?", re.DOTALL)
ARGUMENTS = "argument"
"""A fact that is known where the log shows the server's arguments."""
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "~", "!~")
_ARGUMENT = lazy(r"argument(?:\.[A-Za-z_]\w*)+")
_VERSION = lazy(r"v?\d+(?:\.\w+)*")


def holds(text: str, known: Mapping[str, str]) -> bool:
    """Whether a condition is fulfilled; an empty one is not."""
    return any(all(_holds(part, known) for part in some.split(" and ")) for some in text.split(" or ") if some.strip())


def facts_in(text: str) -> list[str]:
    """Return the facts that a condition names, in its order."""
    hits = (_CONDITION.fullmatch(part.strip()) for part in _parts(text))
    return [hit["fact"] for hit in hits if hit]


def _parts(text: str) -> list[str]:
    return [part for some in text.split(" or ") for part in some.split(" and ")]


def _holds(condition: str, known: Mapping[str, str]) -> bool:
    hit = _CONDITION.fullmatch(condition.strip())
    if hit is None:
        return False
    if hit["fact"] not in known:  # a log that shows the arguments shows also which are not given
        unset = hit["fact"].startswith("argument.") and ARGUMENTS in known
        return unset and hit["operator"] == "==" and _unquoted(hit["value"]) == NOTHING
    mine, operator, wanted = known[hit["fact"]], hit["operator"], _unquoted(hit["value"])
    if operator is None:
        return mine != NOTHING
    if operator in ("==", "!="):
        return (mine == wanted) is (operator == "==")
    if operator in ("~", "!~"):
        return (wanted.lower() in mine.lower()) is (operator == "~")
    return _compared(hit["fact"], mine, operator, wanted)


def _compared(fact: str, mine: str, operator: str, wanted: str) -> bool:
    if fact.endswith("_version"):
        order = (version_key(mine) > version_key(wanted)) - (version_key(mine) < version_key(wanted))
    else:
        try:
            left, right = number_in(mine), number_in(wanted)
        except ValueError:
            return False
        order = (left > right) - (left < right)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}.get(operator, False)


def _unquoted(value: str | None) -> str:
    return (value or "").strip().strip("'\"")


def condition_problems(text: str) -> Iterator[str]:
    """Yield what is wrong with a condition, part by part; whether its fields and clues exist is asked elsewhere."""
    for part in _parts(text):
        hit = _CONDITION.fullmatch(part.strip())
        if hit is None:
            yield f"{part.strip()!r} is not a condition; write <fact> <op> <value>, joined by ' and ' and ' or '"
            continue
        yield from name_problems(hit["fact"])
        if hit["operator"] is not None:
            yield from _comparison_problems(hit["fact"], hit["operator"], _unquoted(hit["value"]))


def name_problems(fact: str) -> Iterator[str]:
    """Yield why a name is none of a fact."""
    if fact in FACTS or fact.startswith(("field.", "log.")) or _ARGUMENT.fullmatch(fact):
        return
    known = f"known are {', '.join(FACTS)}, argument.<name_with_underscores>, field.<hole> and log.<clue>[.<hole>]"
    yield f"unknown fact {fact!r}; {_near(fact, FACTS) or known}"


def _comparison_problems(fact: str, operator: str, value: str) -> Iterator[str]:
    if operator not in _OPERATORS:
        yield f"unknown operator {operator!r}; known are {' '.join(_OPERATORS)}"
    elif not value:
        yield f"{fact} {operator} is not compared with anything"
    elif fact == "outcome" and value not in OUTCOMES:
        yield f"{value!r} is not an outcome; known are {', '.join(OUTCOMES)}"
    elif fact.endswith("_version") and not _VERSION.fullmatch(value):
        yield f"{value!r} is not a version, like 0.11.1"
    elif operator in ("<", "<=", ">", ">=") and not fact.endswith("_version") and not re.search(r"\d", value):
        yield f"{value!r} is not a number"


def no_hole(name: str, holes: Set[str]) -> str:
    """Say that no message captures a field, and which one may be meant."""
    known = ", ".join(sorted(holes)) or "none"
    return f"no message has a hole {name!r}; {_near(name, holes) or f'the holes are {known}'}"


def _near(name: str, known: Set[str] | tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only for a message

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""
