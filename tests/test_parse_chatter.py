"""Runs of chatter in bytes are what line after line of it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from test_blocks import CHATTER, PLAIN

from lmdiag.model import Line
from lmdiag.parse.assembler import Assembler
from lmdiag.parse.chatter import chatter_end

ACCESS = '(APIServer pid=1) INFO:     10.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK'
REQUEST = "INFO 12-01 02:00:00 [logger.py:39] Received request cmpl-1: prompt: 'x (A pid=1) [a.py:3]'"


def end(lines: list[str], *, busy: frozenset[bytes] = frozenset(), most: int = 1000) -> int:
    """How many of the lines are chatter."""
    block = "".join(f"{line}\n" for line in lines).encode()
    stop, count = chatter_end(block, 0, len(block), busy, most)
    assert block[:stop].count(b"\n") == count
    return count


def test_it_ends_where_a_line_may_matter() -> None:
    """At an error, at a line that may be two, at one of a process of which something is open."""
    assert end([ACCESS, REQUEST, "ERROR x", ACCESS]) == 2
    assert end([ACCESS, f"{ACCESS}INFO 12-01 02:00:00 [a.py:1] x"]) == 1
    assert end([REQUEST, f"{REQUEST}INFO 12-01 02:00:00 [a.py:1] x"]) == 1
    assert end([REQUEST, ACCESS], busy=frozenset({b"(APIServer pid=1) "})) == 1
    assert end([REQUEST, f"{REQUEST}\rx"]) == 1
    assert end([ACCESS] * 9, most=4) == 4


def test_of_a_stopped_engine_only_access_lines_are() -> None:
    """Its records may tell of it."""
    block = f"{ACCESS}\n{REQUEST}\n".encode()
    assert chatter_end(block, 0, len(block), frozenset(), 9, only_access=True) == (len(ACCESS) + 1, 1)


def test_an_unfinished_line_is_none() -> None:
    """What follows may be anything."""
    block = f"{ACCESS}\n{ACCESS}".encode()
    assert chatter_end(block, 0, len(block), frozenset(), 9) == (len(ACCESS) + 1, 1)


@given(st.lists(st.sampled_from(CHATTER + PLAIN), max_size=40))
def test_runs_are_lines(lines: list[str]) -> None:
    """A run does to an assembler what its lines do, one after the other."""
    single, running = Assembler("s"), Assembler("s")
    for assembler in (single, running):
        for _ in range(1100):
            list(assembler.feed(Line("s", 1, 0, "y" * 300)))
        list(assembler.feed(Line("s", 1101, 0, "(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] boom")))
    block = "".join(f"{line}\n" for line in lines).encode()
    _, count, events = running.pass_chatter(block, 0, len(block))
    finished = list(events)
    expected = [event for line in lines[:count] for event in single.feed(Line("s", 1, 0, line))]
    assert finished == expected
    assert running.busy == single.busy
