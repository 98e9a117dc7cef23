from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.parse.messages import continues_message, finish_message, is_junk

END = "    For further information visit https://errors.pydantic.dev/2.12/v/value_error"
GROWING = {
    "one line": (["x y"], ("x y", ())),
    "several lines": (["Invalid repository ID.", "1. One", "   - two"], ("Invalid repository ID.\n1. One\n   - two", ())),
    "empty": ([""], ("", ())),
    "blank lines around it": (["", "x", ""], ("x", ())),
    "pydantic's value error": (
        ["1 validation error for ModelConfig", "  Value error, x y [type=value_error, input_value=ArgsKwargs((), {'model': 1}), input_type=ArgsKwargs]", END],
        ("x y", ("1 validation error for ModelConfig",)),
    ),
    "pydantic's message of several lines": (
        ["1 validation error for ModelConfig", "  Value error, x", "y: z [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]", END],
        ("x\ny: z", ("1 validation error for ModelConfig",)),
    ),
    "two validators": (
        ["2 validation errors for VllmConfig", "a", "  Value error, x [type=value_error, input_value=1, input_type=int]", END, "b", "  Value error, y [type=value_error, input_value=1, input_type=int]", END],
        ("x", ("2 validation errors for VllmConfig", "y")),
    ),
    "an assertion": (
        ["1 validation error for ModelConfig", "  Assertion failed, x y [type=assertion_error, input_value=1, input_type=int]", END],
        ("x y", ("1 validation error for ModelConfig",)),
    ),
    "the copy ends early": (["1 validation error for ModelConfig", "  Value error, x y"], ("x y", ("1 validation error for ModelConfig",))),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "wanted"), GROWING.values(), ids=GROWING)
def test_a_finished_message(lines: list[str], wanted: tuple[str, tuple[str, ...]]) -> None:
    assert finish_message(lines) == wanted


def test_pydantics_other_errors_keep_their_text_whole() -> None:
    """`type=missing` and `literal_error` have a field's name instead of `Value error,`."""
    lines = [
        "1 validation error for CacheConfig",
        "block_size",
        "  Input should be 1, 8 or 16 [type=literal_error, input_value=7, input_type=int]",
    ]
    assert finish_message(lines) == ("\n".join(lines), ())


REPOSITORY = ["Invalid repository ID or local directory specified: '/m'."]
PYDANTIC = ["1 validation error for ModelConfig"]
RAW = {
    "prose of a known message": (REPOSITORY, 0, "Please verify the following requirements:", True),
    "a list item of it": ([*REPOSITORY, "Please verify the following requirements:"], 0, "1. Provide a valid Hugging Face repository ID.", True),
    "an indented one": (REPOSITORY, 0, "   - For Hugging Face models: ensure the presence of a 'config.json'.", True),
    "an empty line ends it": (REPOSITORY, 1, "Anything else", False),
    "transformers has a blank line inside": (["The checkpoint you are trying to load has model type `x` but Transformers does not recognize this architecture."], 1, "You can update Transformers with the command `pip install --upgrade transformers`.", True),
    "the hub is not reached": (["We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."], 0, "Check your internet connection or see how to run the library in offline mode.", True),
    "no such model on the hub": (["acme/x is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"], 0, "If this is a private repository, make sure to pass a token having permission to this repo", True),
    "a record behind it": (["We couldn't connect to 'https://huggingface.co'"], 0, "INFO 12-01 02:00:00 [a.py:1] x", False),
    "a colon promises more": (["Cannot find any of these:"], 0, "config.json", True),
    "prose behind a short message": (["x y"], 0, "Something else happened", False),
    "pydantic's own lines": (PYDANTIC, 0, "  Value error, x [type=value_error, input_value=1, input_type=int]", True),
    "pydantic's end": ([*PYDANTIC, "  Value error, x"], 0, END, True),
    "after pydantic's end": ([*PYDANTIC, "  Value error, x", END], 0, "Something else happened", False),
    "the next pydantic error": (["2 validation errors for VllmConfig", "a", "  Value error, x", END], 0, "  Value error, y", True),
    "a process dies": (REPOSITORY, 0, "Process EngineCore_DP0:", False),
    "a record": (REPOSITORY, 0, "ERROR 05-06 01:55:26 [core.py:383] x", False),
    "uvicorn": (REPOSITORY, 0, "INFO:     Shutting down", False),
    "the shell": (REPOSITORY, 0, "$ vllm serve m", False),
    "a chained exception": (REPOSITORY, 0, "During handling of the above exception, another exception occurred:", False),
    "a progress bar": (REPOSITORY, 0, " 50%|█████     | 1/2 [00:01<00:01]", False),
    "nanobind's leaks": (REPOSITORY, 0, "nanobind: leaked 3 instances!", False),
    "the resource tracker": (REPOSITORY, 0, "resource_tracker: There appear to be 1 leaked shared_memory objects", False),
}  # fmt: skip


@pytest.mark.parametrize(("message", "blanks", "text", "wanted"), RAW.values(), ids=RAW)
def test_where_a_raw_message_ends(message: list[str], blanks: int, text: str, wanted: bool) -> None:
    assert continues_message(message, blanks, text, in_record=False) is wanted


@given(st.text(), st.integers(0, 9))
@settings(deadline=None)
def test_inside_a_record_a_message_goes_on(text: str, blanks: int) -> None:
    """Except for what LMCache writes behind the traceback of its own record: `. System will operate …`."""
    assert continues_message(["x"], blanks, text, in_record=True) is not text.startswith(". ")


@pytest.mark.parametrize(
    ("text", "junk"),
    [("Actions for L197", True), ("197", True), ("197 tokens", False), ("Actions", False), ("", False)],
)
def test_what_web_views_leave_between_lines(text: str, junk: bool) -> None:
    assert is_junk(text) is junk
