from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.diagnose.advice import personal, render
from lmdiag.model import Advice, Facts, Solution

FIELDS = {"free": "10.5 GiB", "total": "80", "length": "4096", "zero": "0", "mode": "auto"}
RENDERED = {
    "a field": ("set {mode} here", "set auto here"),
    "a field with its unit": ("{free} are free", "10.5 GiB are free"),
    "twice": ("{mode}{mode}", "autoauto"),
    "product": ("{length * 2}", "8192"),
    "a number with its unit counts as a number": ("{free * 2}", "21"),
    "difference": ("{total - 1}", "79"),
    "sum": ("{total + length}", "4176"),
    "whole quotient": ("{length // 1000}", "4"),
    "quotient": ("{total / 32}", "2.5"),
    "two places, never too much": ("{total / 3}", "26.66"),
    "brackets": ("{(total - 8) * 0.5}", "36"),
    "several": ("{mode} {total}", "auto 80"),
    "an unknown field": ("{other}", "{other}"),
    "a sum over an unknown field": ("{other * 2}", "{other * 2}"),
    "division by zero": ("{total / zero}", "{total / zero}"),
    "JSON": ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
    "a call": ("{total.__class__ * 2}", "{total.__class__ * 2}"),
    "a power": ("{total ** 9}", "{total ** 9}"),
    "no hole": ("plain", "plain"),
}


@pytest.mark.parametrize(("text", "wanted"), RENDERED.values(), ids=RENDERED)
def test_fields_and_sums_are_filled_in(text: str, wanted: str) -> None:
    assert render(text, FIELDS) == wanted


@given(st.text(), st.text("0123456789.", min_size=1))
@settings(deadline=None)
def test_a_field_is_text_and_never_looked_into(value: str, number: str) -> None:
    assert render("{a} and {b}", {"a": value, "b": number}) in (f"{value} and {number}", f"{{a}} and {number}")


FACTS = Facts(vllm_version="0.11.1", platform="rocm", arguments=(("enforce_eager", "True"), ("dtype", "'half'")))
UNLESS = {
    "nothing": ("", True),
    "a newer version": ("vllm_version >= 0.11.1", False),
    "an older version": ("vllm_version < 0.11.1", True),
    "versions are numbers": ("vllm_version > 0.9.2", False),
    "at most": ("vllm_version <= 0.11.1", False),
    "an equal fact": ("platform == rocm", False),
    "another fact": ("platform == cuda", True),
    "an unequal fact": ("platform != cuda", False),
    "a flag is given": ("argument.enforce_eager", False),
    "a flag has a value": ("argument.enforce_eager == True", False),
    "a value in quotes": ("argument.dtype == half", False),
    "a flag is not given": ("argument.port", True),
    "an unknown fact contradicts nothing": ("lmcache_version >= 0.3.0", True),
    "not even by being unequal": ("lmcache_version != 0.3.0", True),
    "one of several": ("platform == cuda or argument.dtype == half", False),
    "none of several": ("platform == cuda or argument.dtype == auto", True),
    "the outcome": ("outcome == start_failed", False),
}


@pytest.mark.parametrize(("unless", "given_"), UNLESS.values(), ids=UNLESS)
def test_advice_that_the_facts_contradict_is_left_out(unless: str, given_: bool) -> None:
    found = personal([Solution("Do it.", unless=unless)], {}, FACTS, "start_failed")
    assert (len(found) == 1) is given_


def test_solutions_keep_their_order_and_get_the_numbers() -> None:
    solutions = [
        Solution("Set {length}.", (("--max-model-len", "{length / 2}"), ("VLLM_X", "1"))),
        Solution("Not here.", unless="platform == rocm"),
        Solution("Restart.", (), "disruptive"),
    ]
    assert personal(solutions, FIELDS, FACTS, "died") == (
        Advice("Set 4096.", (("--max-model-len", "2048"), ("VLLM_X", "1")), "safe"),
        Advice("Restart.", (), "disruptive"),
    )


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("{a * 0.95}", "17179869184", "16320875724.8"),
        ("{a * 1.5}", "1234567", "1851850.5"),
        ("{a * 2}", "1,024", "2048"),
        ("{a - 8}", "3", "-5"),
        ("{a / 3}", "2", "0.66"),
        ("{a * 2}", "auto", "{a * 2}"),
        ("{a / 0}", "1", "{a / 0}"),
        ("{1e999 * a}", "1", "{1e999 * a}"),
    ],
    ids=["large", "half", "thousands", "negative", "cut, never rounded up", "no number", "division by zero", "infinite"],
)
def test_a_sum_is_exact_or_left_alone(text: str, value: str, wanted: str) -> None:
    assert render(text, {"a": value}) == wanted
