"""Passing over runs of chatter gives what feeding each line gives."""

from __future__ import annotations

from itertools import pairwise

from helpers import NoCards
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import SHAPES

from lmdiag.blocks import feed_block, finish
from lmdiag.parse.assembler import Assembler
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


def by_line(data: bytes) -> tuple[object, ...]:
    """What feeding each line alone gives."""
    splitter, pipeline = Splitter("s"), Pipeline("s", NoCards())
    for line in (*splitter.feed(data), *splitter.finish()):
        pipeline.feed(line)
    return (pipeline.close(), splitter.lines, splitter.bytes, splitter.undecodable_lines, pipeline.records)


def by_block(data: bytes, cuts: list[int]) -> tuple[object, ...]:
    """What feeding blocks gives."""
    splitter, pipeline = Splitter("s"), Pipeline("s", NoCards())
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    for start, end in pairwise(places):
        feed_block(splitter, pipeline, data[start:end])
    finish(splitter, pipeline)
    return (pipeline.close(), splitter.lines, splitter.bytes, splitter.undecodable_lines, pipeline.records)


@given(
    name=st.sampled_from(sorted(LOGS)),
    chatter=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(CHATTER), st.integers(1, 30)), max_size=12),
    cuts=st.lists(st.integers(0, 20_000), max_size=6),
)
@settings(max_examples=400, deadline=None)
def test_blocks_give_what_lines_give(name: str, chatter: list[tuple[int, str, int]], cuts: list[int]) -> None:
    """Wherever chatter stands between the lines of an error, and wherever the blocks are cut."""
    lines = LOGS[name].split("\n")
    for position, text, times in chatter:
        lines[position:position] = [text] * times
    data = "\n".join(lines).encode()
    assert by_block(data, cuts) == by_line(data)


def test_a_healthy_log_is_passed_over() -> None:
    """Once its processes are known, no line of it is fed."""
    block = "".join(line + "\n" for line in (*CHATTER[:1], *CHATTER[3:4]) * 200).encode()
    assembler = Assembler("s")
    for line in Splitter("s").feed(block[:2000]):
        list(assembler.feed(line))
    start = block.find(b"\n", 1000) + 1
    assert assembler.run_end(block, start) == (len(block), block.count(b"\n", start))
