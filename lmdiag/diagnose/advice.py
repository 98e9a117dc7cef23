"""Makes a card's solutions fit this server: fields filled in, sums done, advice refused that the facts contradict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lmdiag.match.versions import version_key
from lmdiag.model import Advice, Facts, Solution

_HOLE = re.compile(r"\{([^{}]+)\}")
_CONDITION = re.compile(r"\s*([\w.]+)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def personal(
    solutions: Sequence[Solution], fields: Mapping[str, str], facts: Facts, outcome: str
) -> tuple[Advice, ...]:
    """Return the solutions that apply, in their order, with the incident's numbers in them."""
    known = _known(facts, outcome)
    return tuple(
        Advice(render(item.text, fields), tuple((key, render(value, fields)) for key, value in item.change), item.risk)
        for item in solutions
        if not _contradicted(item.unless, known)
    )


def render(text: str, fields: Mapping[str, str]) -> str:
    """Fill `{field}` and sums over fields (`{free * 0.95 / total}`) in; what cannot be computed stays as it is."""
    return _HOLE.sub(lambda hit: _value(hit.group(1).strip(), fields) or hit.group(), text)


def _value(expression: str, fields: Mapping[str, str]) -> str | None:
    if expression in fields:
        return fields[expression]
    if not re.search(r"[-+*/]", expression):
        return None
    import ast  # only where a card computes

    try:
        return _number(_compute(ast.parse(expression, mode="eval").body, fields))
    except (SyntaxError, ValueError, ZeroDivisionError, KeyError, OverflowError):
        return None


def _number(value: float) -> str:
    """Cut to two decimals, never up: a limit that is rounded up is exceeded."""
    if value == int(value):
        return str(int(value))
    return f"{int(value * 100) / 100:.2f}".rstrip("0").rstrip(".")


def _compute(node: object, fields: Mapping[str, str]) -> float:
    """Numbers, fields, + - * / // and brackets; nothing else, since a card of a site is not trusted with more."""
    import ast

    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        hit = _NUMBER.search(fields[node.id].replace(",", ""))
        if hit is None:
            raise ValueError(fields[node.id])
        return float(hit.group())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_compute(node.operand, fields)
    if isinstance(node, ast.BinOp):
        left, right = _compute(node.left, fields), _compute(node.right, fields)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        if isinstance(node.op, ast.FloorDiv):
            return left // right
    raise ValueError(node)


def _known(facts: Facts, outcome: str) -> dict[str, str]:
    named = {
        "vllm_version": facts.vllm_version,
        "lmcache_version": facts.lmcache_version,
        "platform": facts.platform,
        "outcome": outcome,
        **{f"argument.{name}": value.strip("'\"") for name, value in facts.arguments},
    }
    return {name: value for name, value in named.items() if value is not None}


def _contradicted(unless: str, known: Mapping[str, str]) -> bool:
    return any(_holds(part, known) for part in unless.split(" or ") if part.strip())


def _holds(condition: str, known: Mapping[str, str]) -> bool:
    """An unknown fact contradicts nothing."""
    hit = _CONDITION.match(condition)
    if hit is None or hit.group(1) not in known:
        return False
    mine, operator, wanted = known[hit.group(1)], hit.group(2), (hit.group(3) or "").strip("'\"")
    if operator is None:
        return True
    if operator in ("==", "!="):
        return (mine == wanted) is (operator == "==")
    left, right = version_key(mine), version_key(wanted)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
