"""What the first stage looks for is in every line that may matter while a server serves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parse_progress import SIGNS

from lmdiag.parse.anchors import ANCHORS, finder, holds_anchor
from lmdiag.parse.notable import ALWAYS, START
from lmdiag.parse.tracebacks import FRAME, HEADER

CRASHES = (
    "Killed",
    "Aborted (core dumped)",
    "Bus error (core dumped)",
    "Segmentation fault",
    "Illegal instruction (core dumped)",
    "!!!!!!! Segfault encountered !!!!!!!",
    "Fatal Python error: Aborted",
    "terminate called after throwing an instance of 'c10::Error'",
    "*** SIGSEGV received at time=1 on cpu 3 ***",
    "kernel: Out of memory: Killed process 7 (VLLM::EngineCor) total-vm:1kB",
    "systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL",
    "systemd[1]: vllm.service: Main process exited, code=dumped, status=6/ABRT",
    "systemd[1]: vllm.service: Failed with result 'oom-kill'.",
    "vllm serve: error: argument --dtype: invalid choice: 'x'",
)


def test_they_are_what_the_search_is_fast_with() -> None:
    """Teddy's slim form: at most 32 needles, none shorter than three bytes; each is there once."""
    assert len(ANCHORS) == len(set(ANCHORS)) <= 32
    assert min(len(anchor.encode()) for anchor in ANCHORS) == 3


@given(st.one_of(*(st.from_regex(pattern.pattern) for pattern in (START, ALWAYS, FRAME, HEADER))))
def test_what_matters_holds_one(text: str) -> None:
    """A start, a stop, a traceback's header and frame."""
    assert holds_anchor(text)


@pytest.mark.parametrize("text", CRASHES)
def test_the_last_words_of_a_process_hold_one(text: str) -> None:
    """What others say of it."""
    assert holds_anchor(text)


@pytest.mark.parametrize(
    ("file", "text"), [(file, text) for file, text, sign in SIGNS.values() if sign and sign.kind in ("stalled", "broadcast")]
)
def test_the_signs_of_a_stall_hold_one(file: str, text: str) -> None:
    """In every wording, as vLLM's own record or as one in JSON."""
    line = f"INFO 12-01 02:00:00 [{file}:1] {text}" if file.endswith(".py") else f'{{"name": "{file}", "message": "{text}"}}'
    assert holds_anchor(line)


@given(st.lists(st.one_of(st.sampled_from(ANCHORS), st.text(max_size=8)), max_size=8))
def test_the_search_finds_what_a_line_holds(parts: list[str]) -> None:
    """In bytes as in text."""
    line = "".join(parts).replace("\n", "")
    assert bool(finder()(b"\n" + line.encode("utf-8", "surrogatepass"))) == holds_anchor(line)


def test_places() -> None:
    """Which anchor, and its first and last byte."""
    data = "é a ValueError: x\nKilled\n".encode()
    assert [(ANCHORS[which], data[start:end]) for which, start, end in finder()(data)] == [("Error", b"Error"), ("Killed", b"Killed")]
