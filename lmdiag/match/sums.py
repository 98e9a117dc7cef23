"""The placeholders of a card's texts and values: `{blocks}`, `{free * 0.95 / total}`, `{largest_divisor(heads, tp)}`.

A placeholder holds names of fields and facts, numbers, + - * / // and brackets, and the functions below; nothing else,
since a card of a site is not trusted with more. Braces around anything else (JSON) are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from lmdiag.lazy_pattern import lazy

PLACEHOLDER = lazy(r"\{([^{}]+)\}")
_EXPRESSION = lazy(r"(?!\.)[\w\s.,+\-*/()]*[A-Za-z_][\w\s.,+\-*/()]*")
_NAME = lazy(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PLAIN = lazy(rf"\s*({_NAME.pattern})\s*")
_NUMBER = lazy(r"-?\d+(?:\.\d+)?")
_MOST_DIVISORS = 4096
NOTHING = "None"
"""How a log prints an argument that is not set; it fills no placeholder."""


def fill(text: str, known: Mapping[str, str]) -> str | None:
    """Return the text with its placeholders filled in; None if one of them cannot be."""
    missing = False

    def value(hit: re.Match[str]) -> str:
        nonlocal missing
        if not is_placeholder(hit.group(1)):
            return hit.group()
        found = compute(hit.group(1), known)
        missing = missing or not found
        return found or ""

    filled = PLACEHOLDER.sub(value, text)
    return None if missing else filled


def is_placeholder(inner: str) -> bool:
    """Whether what stands between braces is to be computed, and not text such as JSON."""
    return _EXPRESSION.fullmatch(inner) is not None


def compute(expression: str, known: Mapping[str, str]) -> str | None:
    """Return the value of a name or a sum; None if a name is unknown or no number where one is needed, or if nothing is left."""
    if plain := _PLAIN.fullmatch(expression):
        value = known.get(plain.group(1))
        return None if value == NOTHING else value
    import ast  # only where a card computes

    try:
        found = _value(ast.parse(expression.strip(), mode="eval").body, known)
        return found if isinstance(found, str) else _written(found) if found > 0 else None  # no amount to advise
    except (SyntaxError, ValueError, ZeroDivisionError, KeyError, OverflowError, RecursionError, MemoryError):
        return None


def placeholders(text: str) -> list[str]:
    """Return what stands in a text's placeholders."""
    return [inner for inner in PLACEHOLDER.findall(text) if is_placeholder(inner)]


def names_in(expression: str) -> set[str]:
    """Return the names that an expression needs, without the functions."""
    return {name for name in _NAME.findall(expression) if name not in FUNCTIONS}


def sum_problems(expression: str) -> Iterator[str]:
    """Yield why an expression cannot be computed whatever its names stand for."""
    import ast

    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        tree = None
    if tree is None or not _allowed(tree.body):
        yield (
            f"{{{expression}}} cannot be computed; use names, numbers, + - * / // and brackets, and the functions "
            f"{', '.join(FUNCTIONS)}"
        )


def _allowed(node: object) -> bool:
    import ast

    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.BinOp):
        good = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv))
        return good and _allowed(node.left) and _allowed(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _allowed(node.operand)
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        return known and not node.keywords and len(node.args) >= 2 and all(map(_allowed, node.args))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _allowed(node.value))


def _value(node: object, known: Mapping[str, str]) -> float | str:
    import ast

    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id]([_number(item, known) for item in node.args])
    return _number(node, known)


def _number(node: object, known: Mapping[str, str]) -> float:
    import ast

    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return number_in(known[ast.unparse(node)])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, known)
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, known), _number(node.right, known)
        return _operated(node.op, left, right)
    if isinstance(node, ast.Call):
        return float(_value(node, known))  # a list of divisors is no number: a ValueError
    raise ValueError(node)


def _operated(operator: object, left: float, right: float) -> float:
    import ast

    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div):
        return left / right
    if isinstance(operator, ast.FloorDiv):
        return left // right
    raise ValueError(operator)


def number_in(text: str) -> float:
    """Return the first number of a text, thousands' commas aside. Raises ValueError if it has none."""
    hit = _NUMBER.search(text.replace(",", ""))
    if hit is None:
        raise ValueError(text)
    return float(hit.group())


def _written(value: float) -> str:
    """Cut to two decimals, never up: a limit that is rounded up is exceeded. 38.87 - 30.12 is 8.75, whatever binary says."""
    hundredths = int(round(value * 100, 6))
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")


def _divisors(number: float, most: float) -> list[int]:
    """Return the divisors of a count up to `most`."""
    if number < 1 or number != int(number):
        raise ValueError(number)
    return [one for one in range(1, int(min(number, most, _MOST_DIVISORS)) + 1) if int(number) % one == 0]


def _largest_divisor(values: Sequence[float]) -> float:
    found = _divisors(*_two(values))
    return found[-1] if found else _none()


def _listed_divisors(values: Sequence[float]) -> str:
    found = _divisors(*_two(values))
    return ", ".join(map(str, found)) if found else ""


def _down(values: Sequence[float]) -> float:
    number, step = _two(values)
    return number // step * step


def _up(values: Sequence[float]) -> float:
    number, step = _two(values)
    return -(-number // step) * step


def _first_from(values: Sequence[float]) -> float:
    return next(iter(sorted(value for value in values[1:] if value >= values[0])), None) or _none()


def _two(values: Sequence[float]) -> tuple[float, float]:
    if len(values) != 2:
        raise ValueError(values)
    return values[0], values[1]


def _none() -> float:
    raise ValueError("none fits")


FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float | str]] = {
    "min": min,
    "max": max,
    "down": _down,
    "up": _up,
    "first_from": _first_from,
    "divisors": _listed_divisors,
    "largest_divisor": _largest_divisor,
}
"""`down(n, step)` and `up(n, step)`: the multiple of step next to n; `first_from(n, a, b, …)`: the least of a, b, … that
is not below n; `divisors(n, most)`: those up to most, with commas; `largest_divisor(n, most)`; min and max."""
