"""The two small languages of a solution: the conditions of `unless`, and the sums in the values of `change`.

A condition is `<fact> <op> <value>`, or a fact alone, which means that it is known; they are joined by " or ".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from difflib import get_close_matches

from lmdiag.model import OUTCOMES

FACTS = ("vllm_version", "lmcache_version", "platform", "outcome")
_CONDITION = re.compile(r"(?P<fact>[^\s=!<>]+)(?:\s*(?P<operator>[=!<>]+)\s*(?P<value>.*))?")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_EXPRESSION = re.compile(r"[\w\s.+\-*/()]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_ARGUMENT = re.compile(r"argument\.[a-z]\w*")
_VERSION = re.compile(r"v?\d+(?:\.\w+)*")


def condition_problems(text: str) -> Iterator[str]:
    """Yield what is wrong with an `unless`, part by part."""
    for part in text.split(" or "):
        hit = _CONDITION.fullmatch(part.strip())
        if hit is None:
            yield f"{part.strip()!r} is not a condition; write <fact> <op> <value>, joined by ' or '"
            continue
        fact, operator, value = hit["fact"], hit["operator"], (hit["value"] or "").strip().strip("'\"")
        yield from _fact_problems(fact)
        if operator is not None:
            yield from _comparison_problems(fact, operator, value)


def _fact_problems(fact: str) -> Iterator[str]:
    if fact in FACTS or _ARGUMENT.fullmatch(fact):
        return
    near = get_close_matches(fact, FACTS, n=1)
    hint = (
        f"did you mean {near[0]!r}?" if near else f"known are {', '.join(FACTS)} and argument.<name_with_underscores>"
    )
    yield f"unknown fact {fact!r}; {hint}"


def _comparison_problems(fact: str, operator: str, value: str) -> Iterator[str]:
    if operator not in _OPERATORS:
        yield f"unknown operator {operator!r}; known are {' '.join(_OPERATORS)}"
    elif not value:
        yield f"{fact} {operator} is not compared with anything"
    elif fact == "outcome" and value not in OUTCOMES:
        yield f"{value!r} is not an outcome; known are {', '.join(OUTCOMES)}"
    elif fact.endswith("_version") and not _VERSION.fullmatch(value):
        yield f"{value!r} is not a version, like 0.11.1"


def sum_problems(value: str, holes: Set[str]) -> Iterator[str]:
    """Yield what is wrong with the `{sums}` of a value. Braces around quotes, colons and the like are text, such as JSON."""
    for expression in filter(_EXPRESSION.fullmatch, _PLACEHOLDER.findall(value)):
        if not is_sum(expression):
            yield f"{{{expression}}} cannot be computed; use fields, numbers, + - * / // and brackets"
        yield from (no_hole(name, holes) for name in _NAME.findall(expression) if name not in holes)


def no_hole(name: str, holes: Set[str]) -> str:
    """Say that no message captures a field, and which one may be meant."""
    near = get_close_matches(name, holes, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the holes are {', '.join(sorted(holes)) or 'none'}"
    return f"no message has a hole {name!r}; {hint}"


def is_sum(expression: str) -> bool:
    """Whether a text is a field or a sum: names, numbers, + - * / // and brackets."""
    import ast

    allowed = (ast.Expression, ast.BinOp, ast.operator, ast.Constant, ast.Name, ast.Load)
    refused = (ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.MatMult)
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError):
        return False
    return all(isinstance(node, allowed) and not isinstance(node, refused) for node in ast.walk(tree))
