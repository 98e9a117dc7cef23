from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.model import Line
from lmdiag.parse.wrapping import Rejoiner

HEAD = "(EngineCore_DP0 pid=7) ERROR 01-26 09:25:37 [core.py:935] "
LONG = (
    HEAD
    + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
)


def rejoin(texts: list[str]) -> list[tuple[str, int]]:
    """The joined texts, each with the number of the line on which it begins."""
    rejoiner = Rejoiner()
    found = [one for number, text in enumerate(texts, 1) for one in rejoiner.feed("", text, Line("s", number, 0, text))]
    return [(text, line.number) for _, text, line in (*found, *rejoiner.close())]


def wrapped(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]


@pytest.mark.parametrize("width", [80, 100, 147, 160])
def test_a_line_cut_at_the_terminals_width_is_whole_again(width: int) -> None:
    first, last = HEAD + "It failed.", HEAD + "end"
    assert rejoin([first, *wrapped(LONG, width), last]) == [
        (first, 1),
        (LONG, 2),
        (last, 2 + len(wrapped(LONG, width))),
    ]


def test_it_may_be_the_last_line() -> None:
    assert rejoin(wrapped(LONG, 80)) == [(LONG, 1)]


FULL = LONG[:100]
APART = {
    "a record": HEAD + "ValueError: y",
    "uvicorn": "INFO:     Shutting down",
    "a raw line of a process": "(EngineCore_DP0 pid=7) text",
    "a traceback": "Traceback (most recent call last):",
    "a frame": '  File "/a/x.py", line 1, in f',
    "source": "    raise x",
    "an exception": "ValueError: y",
    "an empty line": "",
    "a dying process": "Process EngineCore_DP0:",
    "an ignored exception": "Exception ignored in: <function x.__del__>",
    "a longer line": "x" * 101,
    "LMCache": "[2026-02-24 23:14:43,998] LMCache INFO: text (file.py:172:lmcache.v1.cache_engine)",
}


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_what_is_something_of_its_own_is_not_joined(text: str) -> None:
    assert rejoin([FULL, text]) == [(FULL, 1), (text, 2)]


@pytest.mark.parametrize(
    "first",
    [HEAD.replace("ERROR", "INFO") + "x" * 60, "x" * 100, HEAD[:70], "INFO:     " + "x" * 90, HEAD + "x" * 300],
    ids=["a quiet record", "no record", "too narrow", "uvicorn", "too wide"],
)
def test_only_loud_records_of_a_terminals_width_are_joined(first: str) -> None:
    assert rejoin([first, "rest"]) == [(first, 1), ("rest", 2)]


def test_a_line_shorter_than_another_was_not_cut() -> None:
    lines = [LONG[:120], HEAD + "short", "rest"]
    assert rejoin(lines) == [(lines[0], 1), (lines[1], 2), ("rest", 3)]


@given(st.lists(st.sampled_from((HEAD + "x" * 30, HEAD + "x" * 60, "rest", "y" * 110, "", "ValueError: x", "Traceback (most recent call last):"))))  # fmt: skip
@settings(deadline=None)
def test_no_text_is_lost_or_moved(texts: list[str]) -> None:
    found = rejoin(texts)
    assert "".join(text for text, _ in found) == "".join(texts)
    assert [number for _, number in found] == sorted(number for _, number in found)


def test_only_the_same_stream_goes_on() -> None:
    """The next container's line is no rest of this one's."""
    rejoiner, line = Rejoiner(), Line("s", 1, 0, "")
    found = [*rejoiner.feed("a ", LONG[:80], line), *rejoiner.feed("b ", LONG[80:], line), *rejoiner.close()]
    assert [(stream, text) for stream, text, _ in found] == [("a ", LONG[:80]), ("b ", LONG[80:])]
