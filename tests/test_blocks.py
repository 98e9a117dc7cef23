"""The first stage gives what feeding each line gives: the incidents, and the count of lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from helpers import NoCards
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import SHAPES

from lmdiag.blocks import Feeder, count_lines
from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter

CHATTER = (
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /x?(A%20pid=3)%20ERROR HTTP/1.1" 200 OK',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /x (A pid=3) ERROR 12-01 02:00:00 [c.py:1] y HTTP/1.1" 200 OK',
    "INFO 12-01 02:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 tokens/s(EngineCore pid=7) Traceback (most recent call last):",
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /a.py:3 HTTP/1.1" 200 OK',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /a"b"c HTTP/1.1" 200 OK',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /x HTTP/1.1" 200 OKERROR 12-01 02:00:00 core.py:1] boom',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /x?INFO: 1.py: HTTP/1.1" 200 OK',
    'INFO:     10.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK',
    "(APIServer pid=1) INFO 12-01 02:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%",
    "(APIServer pid=1) INFO 12-01 02:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs, Waiting: 3 reqs, GPU KV cache usage: 0.1%",
    "(EngineCore_DP0 pid=79) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-1.",
    "INFO 12-01 02:00:00 [logger.py:39] Received request cmpl-1: prompt: 'x (EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] y'",
    'INFO:     10.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK(APIServer pid=1) ERROR 12-01 02:00:00 [core.py:1] boom',
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /é HTTP/1.1" 200 OK\r',
    "(APIServer pid=1) INFO 12-01 02:00:00 [launcher.py:3] Application startup complete.",
    "(APIServer pid=1) ERROR 12-01 02:00:00 [core.py:1] " + "x" * 300,
)
LOGS = {shape.name: shape.log for shape in SHAPES}
PLAIN = ("a line of a print", "x" * 300, "Process EngineCore:", "  indented", "é\x1b[31mred", "vllm-0 engine (APIServer pid=1) INFO 12-01 02:00:00 [a.py:1] x")


def by_line(data: bytes) -> tuple[list[Incident], int, int]:
    """What feeding each line gives: the reference."""
    splitter, pipeline = Splitter("s"), Pipeline("s", NoCards())
    for line in (*splitter.feed(data), *splitter.finish()):
        pipeline.feed(line)
    return pipeline.close(), splitter.lines, splitter.bytes


def by_block(data: bytes, cuts: list[int]) -> tuple[list[Incident], int, int]:
    """What feeding blocks gives."""
    feeder = Feeder(Splitter("s"), Pipeline("s", NoCards()))
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    for start, end in pairwise(places):
        feeder.feed(data[start:end])
    feeder.finish()
    return feeder.pipeline.close(), feeder.lines, feeder.splitter.bytes


# Each log stands behind a start and so much chatter that nothing is open, and the pipeline is not busy.
CALM = (CHATTER[6] + "\n") * 1100 + "y" * 300 + "\n"
rows = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(CHATTER + PLAIN), st.integers(1, 50)), max_size=12)
cuts_of = st.lists(st.integers(0, 20_000).map(lambda cut: len(CALM) + cut), max_size=6)


def mixed(log: str, chatter: list[tuple[int, str, int]]) -> str:
    """Put chatter between the lines of a log."""
    lines = log.split("\n")
    for position, text, times in chatter:
        lines[position:position] = [text] * times
    return "\n".join(lines)


@given(name=st.sampled_from(sorted(LOGS)), chatter=rows, cuts=cuts_of, calm=st.booleans())
@settings(max_examples=400, deadline=None)
def test_blocks_give_what_lines_give(
    name: str, chatter: list[tuple[int, str, int]], cuts: list[int], *, calm: bool
) -> None:
    """Wherever chatter stands between the lines of an error, and wherever the blocks are cut."""
    data = (CALM * calm + mixed(LOGS[name], chatter)).encode()
    assert by_block(data, cuts) == by_line(data)


@given(names=st.lists(st.sampled_from(sorted(LOGS)), min_size=2, max_size=4), chatter=rows, cuts=cuts_of)
@settings(max_examples=200, deadline=None)
def test_several_errors_in_a_log(names: list[str], chatter: list[tuple[int, str, int]], cuts: list[int]) -> None:
    """One error's region does not reach into the next one's."""
    parts = (mixed(LOGS[name], chatter) + "\n" + CHATTER[6 + number % 3] * 40 + "\n" for number, name in enumerate(names))
    data = (CALM + "".join(parts)).encode()
    assert by_block(data, cuts) == by_line(data)


def docker(line: str) -> str:
    """As docker's json-file driver writes a line, which may be a piece of one."""
    return f'{{"log":{json.dumps(line, ensure_ascii=False)},"stream":"stderr","time":"2026-12-01T02:00:00.1Z"}}\n'


def cri(line: str) -> str:
    """As containerd writes it."""
    return f"2026-12-01T02:00:00.1Z stderr {'F' if line.endswith(chr(10)) else 'P'} {line.rstrip(chr(10))}\n"


@given(
    name=st.sampled_from(sorted(LOGS)),
    chatter=rows,
    cuts=st.lists(st.integers(0, 300_000), max_size=6),
    transport=st.sampled_from([docker, cri]),
    width=st.sampled_from([60, 500, 16_384]),
)
@settings(max_examples=150, deadline=None)
def test_what_containers_carry(
    name: str, chatter: list[tuple[int, str, int]], cuts: list[int], transport: Callable[[str], str], width: int
) -> None:
    """In JSON or with a time before it, in whole lines or in pieces."""
    lines = (CALM + mixed(LOGS[name], chatter) + "\n").splitlines(keepends=True)
    pieces = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    data = "".join(transport(piece) for piece in pieces).encode()
    assert by_block(data, cuts) == by_line(data)


RAW = ("Traceback (most recent call last):", '  File "/a/vllm/x.py", line 1, in f', "    x", "ValueError: the cause", "")
ALONE = {
    "an error that is cut in the middle of its words, on stdout": (
        "2026-12-01T02:00:00.1Z stdout P Trace", "2026-12-01T02:00:00.1Z stdout F back (most recent call last):",
        '2026-12-01T02:00:00.1Z stdout P   Fi', '2026-12-01T02:00:00.1Z stdout F le "/a/vllm/x.py", line 1, in f',
        "2026-12-01T02:00:00.1Z stdout P ValueErr", "2026-12-01T02:00:00.1Z stdout F or: the cause", ""),
    "on stderr": (
        "2026-12-01T02:00:00.1Z stderr P ValueErr", "2026-12-01T02:00:00.1Z stderr F or: the cause", ""),
    "by docker": (docker("ValueErr").strip(), docker("or: the cause\n")),
    "in JSON that escapes its words": ('{"log":"Val\\u0075eErro\\u0072: the cause\\n","stream":"stderr","time":"x"}', ""),
    "a client's words in LMCache's record": (
        "[2026-12-01 02:56:14,673] LMCache INFO: Retrieved: x", *RAW[:-1],
        "y (cache_engine.py:1:lmcache.v1.cache_engine)", ""),
    "of the highest level": ("CRITICAL 12-01 02:00:00 [launcher.py:1] [Errno 98] error while attempting to bind on address", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_what_one_anchor_alone_finds(name: str) -> None:
    """Or keeps from being found: between lines of which none holds another."""
    data = (CALM + "\n".join(ALONE[name]) + CALM).encode()
    found = by_block(data, [len(CALM)])
    assert found == by_line(data)
    assert bool(found[0]) == ("client" not in name)


FRAGMENTS = (
    b"Traceback (most recent call last):", b'  File "/a/vllm/x.py", line 1, in f', b"ValueError: x", b"ERROR", b"\n", b"\n", b"\n",
    b"\r", b"\xff", b"(EngineCore pid=7) ", b"ERROR 12-01 02:00:00 [core.py:1] ", b"INFO 12-01 02:00:00 [core.py:1] ",
    b"[2026-12-01 02:56:14,673] LMCache ERROR: x", b"[2026-12-01 02:56:14,673] LMCache INFO: x", b" (a.py:1:lmcache.x)",
    b'{"log": "x\\n", "stream": "stderr"}', b'{"log": "Trace', b"2026-12-01T02:00:00.1Z stderr P ", b"2026-12-01T02:00:00.1Z stderr F ",
    b"pod-1 c (EngineCore pid=7) ", b"pod-1 c ", b"Killed", b"vllm: error: x", b"Application startup complete.", b"Shutting down",
    b"Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs",
    b"vLLM API server version 0.33.0", b"model   x", b"platform cuda", b"y" * 90, b"z" * 300, b"(APIServer pid=1) ",
)  # fmt: skip


@given(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=20)), max_size=80),
    st.lists(st.integers(0, 4000), max_size=6),
    st.booleans(),
)
@settings(max_examples=600, deadline=None)
def test_hostile_bytes(fragments: list[bytes], cuts: list[int], calm: bool) -> None:
    """Whatever stands in a log. Control bytes that take a word apart are not tried: such a word is none."""
    body = b"".join(part.translate(None, bytes((*range(9), 11, 12, *range(14, 32), 127))) for part in fragments)
    data = CALM.encode() * calm + body
    places = [cut + len(CALM) * calm for cut in cuts]
    assert by_block(data, places) == by_line(data)


@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=5), st.lists(st.integers(0, 1_500_000), max_size=5))
@settings(max_examples=40, deadline=None)
def test_huge_lines(sizes: list[int], cuts: list[int]) -> None:
    """Lines longer than what is kept, with an error in them and behind them."""
    data = CALM.encode() + b"\n".join(b"p" * size + b" ERROR " for size in sizes) + b"\nValueError: x\n"
    assert by_block(data, [len(CALM) + cut for cut in cuts]) == by_line(data)


def test_what_a_healthy_server_says_is_passed_over() -> None:
    """Once it has come up, no line of it is fed, words of errors in a client's text or not."""
    feeder = Feeder(Splitter("s"), Pipeline("s", NoCards()))
    feeder.feed(CALM.encode())
    fed: list[object] = []
    feeder.pipeline.feed = fed.append  # type: ignore[method-assign, assignment]
    prompt = "INFO 12-01 02:00:00 [logger.py:39] Received request cmpl-1: prompt: 'ValueError: x\\nTraceback (most recent'\n"
    lmcache = "[2026-12-01 02:56:14,673] LMCache INFO: Stored 256 tokens (cache_engine.py:1:lmcache.v1.cache_engine)\n"
    lines = (CHATTER[7] + "\n", prompt, lmcache, CHATTER[9] + "\n")
    feeder.feed("".join((*lines, *map(docker, lines), *map(cri, (lines[0], lines[3])))).encode() * 100)
    feeder.finish()
    assert not fed
    assert feeder.lines == 1101 + 1000


def test_the_lines_before_a_block_are_counted_once() -> None:
    """At any moment, those that are kept for what may come among them."""
    feeder = Feeder(Splitter("s"), Pipeline("s", NoCards()))
    for number in range(1, 40):
        feeder.feed(b"a\nb\n")
        assert feeder.lines == 2 * number


def test_lines_of_any_buffer_are_counted() -> None:
    """As `bytes.count` does."""
    data = b"a\n\n\nb"
    assert [count_lines(data), count_lines(bytearray(data)), count_lines(memoryview(data)[1:3])] == [3, 3, 2]
