from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.conditions import condition_problems, facts_in, holds


@pytest.mark.parametrize(
    "text",
    [
        "platform",
        "vllm_version < 0.11",
        "vllm_version<0.11.1 or lmcache_version >= v0.3.14",
        "outcome == start_failed or outcome != 'died'",
        'argument.kv_cache_dtype == "fp8" and argument.max_model_len > 4096',
        "argument.kv_transfer_config.kv_connector ~ LMCache",
        "log.inspect_failed or field.tp >= 8",
    ],
)
def test_good_conditions_have_no_problems(text: str) -> None:
    assert list(condition_problems(text)) == []


def test_every_part_is_looked_at() -> None:
    known = (
        "known are vllm_version, lmcache_version, platform, outcome, model, architecture, "
        "argument.<name_with_underscores>, field.<hole> and log.<clue>[.<hole>]"
    )
    text = "argument.max-len == 1 or platform == and vers or two words or argument.a < many or outcome == dead"
    assert list(condition_problems(text)) == [
        f"unknown fact 'argument.max-len'; {known}",
        "platform == is not compared with anything",
        f"unknown fact 'vers'; {known}",
        "'two words' is not a condition; write <fact> <op> <value>, joined by ' and ' and ' or '",
        "'many' is not a number",
        "'dead' is not an outcome; known are start_failed, died, degraded, request_failed, running, unknown",
    ]


@given(st.text(max_size=60))
def test_arbitrary_conditions_never_raise(text: str) -> None:
    assert all(isinstance(problem, str) for problem in condition_problems(text))
    assert holds(text, {"platform": "cuda"}) in (True, False)


KNOWN = {
    "vllm_version": "0.11.1",
    "platform": "rocm",
    "outcome": "start_failed",
    "argument.enforce_eager": "True",
    "argument.dtype": "half",
    "argument.gpu_memory_utilization": "0.9",
    "argument.quantization": "None",
    "field.free": "-2.31 GiB",
    "log.inspect": "Error in inspecting model architecture 'X'",
}
HOLDS = {
    "nothing": ("", False),
    "a newer version": ("vllm_version >= 0.11.1", True),
    "an older version": ("vllm_version < 0.11.1", False),
    "versions are numbers": ("vllm_version > 0.9.2", True),
    "values are decimals, not versions": ("argument.gpu_memory_utilization > 0.85", True),
    "at most": ("argument.gpu_memory_utilization <= 0.9", True),
    "a number with its unit": ("field.free < 0", True),
    "no number": ("argument.dtype > 1", False),
    "an equal fact": ("platform == rocm", True),
    "another fact": ("platform == cuda", False),
    "an unequal fact": ("platform != cuda", True),
    "a flag is given": ("argument.enforce_eager", True),
    "a flag that is not set is not given": ("argument.quantization", False),
    "it can be compared": ("argument.quantization == None", True),
    "a value in quotes": ("argument.dtype == 'half'", True),
    "a flag is not given": ("argument.port", False),
    "an unknown fact fulfils nothing": ("lmcache_version >= 0.3.0", False),
    "not even by being unequal": ("lmcache_version != 0.3.0", False),
    "contains, whatever the case": ("log.inspect ~ MODEL ARCH", True),
    "does not contain": ("log.inspect !~ tokenizer", True),
    "one of several": ("platform == cuda or argument.dtype == half", True),
    "none of several": ("platform == cuda or argument.dtype == auto", False),
    "all of several": ("platform == rocm and outcome == start_failed", True),
    "not all of several": ("platform == rocm and outcome == died", False),
    "and before or": ("platform == rocm or platform == cuda and outcome == died", True),
}


@pytest.mark.parametrize(("text", "wanted"), HOLDS.values(), ids=HOLDS)
def test_whether_a_condition_holds(text: str, *, wanted: bool) -> None:
    assert holds(text, KNOWN) is wanted


def test_an_argument_that_is_not_given() -> None:
    assert not holds("argument.tensor_parallel_size == None", {})
    assert holds("argument.tensor_parallel_size == None", {"argument": "shown"})
    assert not holds("argument.tensor_parallel_size == None", {"argument": "shown", "argument.tensor_parallel_size": "2"})
    assert not holds("lmcache_version == None", {"argument": "shown"})


def test_the_facts_of_a_condition() -> None:
    assert facts_in("log.a.b > 1 and platform or vllm_version<0.9") == ["log.a.b", "platform", "vllm_version"]
