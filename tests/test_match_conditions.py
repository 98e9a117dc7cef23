from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.conditions import condition_problems, is_sum


@pytest.mark.parametrize(
    "text",
    [
        "platform",
        "vllm_version < 0.11",
        "vllm_version<0.11.1 or lmcache_version >= v0.3.14",
        "outcome == start_failed or outcome != 'died'",
        'argument.kv_cache_dtype == "fp8" or argument.max_model_len > 4096',
    ],
)
def test_good_conditions_have_no_problems(text: str) -> None:
    assert list(condition_problems(text)) == []


def test_every_part_is_looked_at() -> None:
    known = "known are vllm_version, lmcache_version, platform, outcome and argument.<name_with_underscores>"
    assert list(condition_problems("argument.max-len == 1 or platform == or vers or two words")) == [
        f"unknown fact 'argument.max-len'; {known}",
        "platform == is not compared with anything",
        f"unknown fact 'vers'; {known}",
        "'two words' is not a condition; write <fact> <op> <value>, joined by ' or '",
    ]


@given(st.text(max_size=60))
def test_arbitrary_conditions_never_raise(text: str) -> None:
    assert all(isinstance(problem, str) for problem in condition_problems(text))


@pytest.mark.parametrize(
    ("text", "sums"),
    [
        ("max_len", True),
        ("free * 0.95 / total", True),
        ("(a + 1) // b - 2", True),
        ("f(a)", False),
        ("a ** 2", False),
        ("a +", False),
    ],
)
def test_a_sum_is_names_numbers_and_four_operators(text: str, *, sums: bool) -> None:
    assert is_sum(text) is sums
