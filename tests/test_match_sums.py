from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.match.sums import compute, fill, is_placeholder, names_in, sum_problems

KNOWN = {
    "free": "10.5 GiB",
    "total": "80",
    "length": "4096",
    "zero": "0",
    "mode": "auto",
    "none": "None",
    "many": "1,024",
    "argument.tp": "6",
    "log.available.gib": "-2.31",
}
FILLED = {
    "a field": ("set {mode} here", "set auto here"),
    "a field with its unit": ("{free} are free", "10.5 GiB are free"),
    "twice": ("{mode}{mode}", "autoauto"),
    "product": ("{length * 2}", "8192"),
    "a number with its unit counts as a number": ("{free * 2}", "21"),
    "thousands": ("{many * 2}", "2048"),
    "difference": ("{total - 1}", "79"),
    "sum": ("{total + length}", "4176"),
    "whole quotient": ("{length // 1000}", "4"),
    "two places, never too much": ("{total / 3}", "26.66"),
    "decimals as they are written": ("{38.87 - 30.12 + zero} {zero + 0.29}", "8.75 0.29"),
    "brackets": ("{(total - 8) * 0.5}", "36"),
    "nothing is left": ("{8 - total}", None),
    "zero is no amount": ("{total - 80}", None),
    "large": ("{17179869184 * 0.95 + zero}", "16320875724.8"),
    "an argument": ("{argument.tp}", "6"),
    "a sum over an argument": ("{argument.tp + 2}", "8"),
    "a clue": ("{-log.available.gib}", "2.31"),
    "a clue as it is": ("{log.available.gib}", "-2.31"),
    "an unknown field": ("set {other}", None),
    "a sum over an unknown field": ("{other * 2}", None),
    "an argument that is not set": ("{none}", None),
    "no number": ("{mode * 2}", None),
    "division by zero": ("{total / zero}", None),
    "infinite": ("{1e999 * total}", None),
    "an attribute of a field": ("{total.__class__ * 2}", None),
    "a power": ("{total ** 9}", None),
    "an unknown function": ("{open(total, 1)}", None),
    "JSON": ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
    "JSON with a value": ('{"a": {length}}', '{"a": 4096}'),
    "no placeholder": ("plain", "plain"),
    "the next multiple": ("{up(4097, 16)} {down(4097 + zero, 16)}", "4112 4096"),
    "a multiple stays": ("{up(length, 16)}", "4096"),
    "the least that will do": ("{first_from(argument.tp, 8, 16, 32)}", "8"),
    "the least that will do is itself": ("{first_from(argument.tp + 10, 8, 16, 32)}", "16"),
    "none will do": ("{first_from(length, 8, 16, 32)}", None),
    "divisors": ("{divisors(14 + zero, 8)}", "1, 2, 7"),
    "no whole count": ("{divisors(free, 8)}", None),
    "the largest divisor": ("{largest_divisor(14 + zero, argument.tp)}", "2"),
    "the largest divisor of a prime": ("{largest_divisor(13 + zero, argument.tp)}", "1"),
    "no divisor": ("{largest_divisor(14 + zero, zero)}", None),
    "a list is no number": ("{divisors(14 + zero, 8) + 1}", None),
    "the smaller": ("{min(length, total)} {max(length, total)}", "80 4096"),
}


@pytest.mark.parametrize(("text", "wanted"), FILLED.values(), ids=FILLED)
def test_placeholders_are_filled_in_or_the_whole_text_is_none(text: str, wanted: str | None) -> None:
    assert fill(text, KNOWN) == wanted


@given(st.text(), st.text("0123456789.", min_size=1))
@settings(deadline=None)
def test_a_value_is_text_and_never_looked_into(value: str, number: str) -> None:
    wanted = f"{value} and {number}" if value and value != "None" else None
    assert fill("{a} and {b}", {"a": value, "b": number}) == wanted


@given(st.text("ab.+-*/() ,0123456789_{}\"'", max_size=40))
@settings(deadline=None)
def test_no_expression_breaks_anything(text: str) -> None:
    assert compute(text, {"a": "1", "b": "x"}) is None or isinstance(compute(text, {"a": "1", "b": "x"}), str)
    assert all(isinstance(problem, str) for problem in sum_problems(text))


@pytest.mark.parametrize(
    ("inner", "is_one"),
    [("blocks", True), ("a / b", True), ("up(a, 16)", True), ("argument.x", True), ('"a": 1', False), ("1", False), ("", False), (".Config.Image", False)],
)
def test_what_is_a_placeholder(inner: str, *, is_one: bool) -> None:
    assert is_placeholder(inner) is is_one


def test_functions_are_not_names() -> None:
    assert names_in("up(argument.tp * heads, 16) + min(a, log.x.y)") == {"argument.tp", "heads", "a", "log.x.y"}


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("max_len", True),
        ("free * 0.95 / total", True),
        ("(a + 1) // b - 2", True),
        ("largest_divisor(heads, argument.tp)", True),
        ("f(a, 1)", False),
        ("up(a)", False),
        ("a ** 2", False),
        ("a +", False),
    ],
)
def test_a_sum_is_names_numbers_operators_and_known_functions(text: str, *, good: bool) -> None:
    assert (list(sum_problems(text)) == []) is good
