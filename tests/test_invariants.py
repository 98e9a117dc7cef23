"""Feeding a log whole, in random chunks, or through any transport gives the same incidents."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest
import zstandard
from helpers import NoCards, diagnose
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import SHAPES
from transports import TRANSPORTS, chunks

from lmdiag.model import Incident, Line, Record, Traceback
from lmdiag.parse.assembler import Assembler
from lmdiag.pipeline import Pipeline
from lmdiag.read.archives import open_bytes
from lmdiag.read.lines import LineReader

LOGS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "logs").glob("*.log"))}
LOGS |= {path.stem: path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "healthy").glob("*.log"))}
PLAIN_SHAPES = {shape.name: shape.log for shape in SHAPES}


def essence(incidents: list[Incident]) -> list[tuple[object, ...]]:
    """What must not depend on the transport: all but places in the file, and names of the processes that Ray adds."""
    return [
        (item.card, item.severity, item.scope, item.outcome, item.cause_visible, item.occurrences, item.symptoms and len(item.symptoms),
         item.root and (item.root.type, item.root.message), item.facts, item.fields, item.raised_at)
        for item in incidents
    ]  # fmt: skip


def read(raw: object) -> list[Incident]:
    """The incidents of what a reader delivers."""
    pipeline = Pipeline("server.log", NoCards())
    for line in LineReader("server.log", raw):  # type: ignore[arg-type]
        pipeline.feed(line)
    return pipeline.close()


class Chunks:
    """A raw reader that delivers given chunks, one a call."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        self._chunks = list(chunks(data, cuts))[::-1]
        self.position = 0

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Deliver the next chunk, or what of it fits."""
        if not self._chunks:
            return 0
        chunk = self._chunks.pop()
        size = min(len(chunk), len(buffer))
        buffer[:size] = chunk[:size]
        if chunk[size:]:
            self._chunks.append(chunk[size:])
        return size

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", LOGS)
def test_real_logs_are_the_same_through_every_transport(name: str, transport: str) -> None:
    """The transport's own lines and cuts leave no trace in the incidents."""
    assert essence(diagnose(TRANSPORTS[transport](LOGS[name]))) == essence(diagnose(LOGS[name]))


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name != "coloured"])
@pytest.mark.parametrize("name", PLAIN_SHAPES)
def test_shapes_are_the_same_through_the_transports(name: str, transport: str) -> None:
    """Also the rare shapes survive being wrapped. Ray prints what its workers print, not what stern or Loki made of it."""
    if transport == "Ray" and name in ("Loki's object around the line", "stern", "journald with ISO time"):
        pytest.skip("nobody runs Ray around a log collector")
    log = PLAIN_SHAPES[name]
    assert essence(diagnose(TRANSPORTS[transport](log))) == essence(diagnose(log))


@given(name=st.sampled_from(sorted(LOGS)), cuts=st.lists(st.integers(0, 60_000), max_size=40))
@settings(max_examples=40, deadline=None)
def test_chunks_are_the_same_as_the_whole(name: str, cuts: list[int]) -> None:
    """Where the operating system cuts a read does not matter."""
    data = LOGS[name].encode()
    assert read(Chunks(data, cuts)) == read(Chunks(data, []))


@pytest.mark.parametrize(
    ("ending", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstandard.compress)],
)
def test_compressed_is_the_same_as_plain(tmp_path: Path, ending: str, compress: object) -> None:
    """An archive is read as what it holds."""
    log = LOGS["mla-serde-start-failed"]
    path = tmp_path / f"server.log.{ending}"
    path.write_bytes(compress(log.encode()))  # type: ignore[operator]
    with open_bytes(str(path)) as raw:
        assert essence(read(raw)) == essence(diagnose(log))


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=4000))
@settings(max_examples=200, deadline=None)
def test_any_text_is_survived(text: str) -> None:
    """No text makes the pipeline fail, and lines fed one by one are what the text is."""
    diagnose(text)


_ZERO = "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
CHATTER = (
    '(APIServer pid=1) INFO:     10.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK',
    "(APIServer pid=1) INFO 12-01 02:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 tokens/s",
    "(EngineCore_DP0 pid=79) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-1.",
    "INFO 12-01 02:00:00 [logger.py:39] Received request cmpl-1: prompt: 'x', params: y",
    f"(APIServer pid=1) INFO 12-01 02:00:00 [loggers.py:127] Engine 000: {_ZERO}Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%",
    f"(APIServer pid=1) INFO 12-01 02:00:10 [loggers.py:127] Engine 001: {_ZERO}Running: 0 reqs, Waiting: 2 reqs, GPU KV cache usage: 1.0%",
    f"(APIServer pid=1) INFO 12-01 02:00:20 [loggers.py:127] Engine 000: {_ZERO}Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%",
    f"(APIServer pid=1) INFO 12-01 02:00:20 [loggers.py:127] Engine 001: {_ZERO}Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%",
    f"INFO 12-01 02:00:25 metrics.py:455] {_ZERO}Running: 0 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.0%.",
    f"INFO 12-01 02:00:30 metrics.py:455] {_ZERO.replace('0.0', '4.0')}Running: 1 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.0%.",
    "(EngineCore_DP1 pid=79) INFO 12-01 02:00:30 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.",
    "INFO:     10.0.0.1:5000 - \"GET /health HTTP/1.1\" 200 OK (APIServer pid=1) ERROR 12-01 02:00:00 [core.py:1] x",
)  # fmt: skip


@given(
    name=st.sampled_from(sorted(PLAIN_SHAPES)),
    chatter=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(CHATTER)), max_size=30),
)
@settings(max_examples=300, deadline=None)
def test_skipping_chatter_changes_nothing(name: str, chatter: list[tuple[int, str]]) -> None:
    """The lines that the pipeline does not look into would have done nothing."""
    lines = PLAIN_SHAPES[name].split("\n")
    for position, text in chatter:
        lines.insert(position, text)
    whole, skipping = Assembler("server.log"), Assembler("server.log")
    expected: list[Record | Traceback] = []
    found: list[Record | Traceback] = []
    for number, text in enumerate(lines, 1):
        line = Line("server.log", number, 0, text)
        expected += whole.feed(line)
        found += [] if not skipping.busy and skipping.passes(text) else skipping.feed(line)
    assert [*found, *skipping.close()] == [*expected, *whole.close()]


_FRAGMENTS = ("Traceback (most recent call last):", '  File "/a/vllm/x.py", line 1, in f', "ValueError: x", "    ^^^^", "", "  | ", "  +-+---------------- 1 ----------------", "(EngineCore pid=7) ", "ERROR 12-01 02:00:00 [core.py:1] ", "During handling of the above exception, another exception occurred:", "[2026-12-01 02:56:14,673] LMCache ERROR: x", "ray.exceptions.RayTaskError(ValueError): ray::f()", "1 validation error for X", "{\"log\": \"x\\n\"}", "\r", "Process EngineCore:", "RuntimeError: Traceback (most recent call last):", "usage: vllm", "vllm serve: error: argument --x: y")  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(_FRAGMENTS), st.sampled_from(_FRAGMENTS)), max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_order_of_fragments_is_survived(rows: list[tuple[str, str]]) -> None:
    """Torn and shuffled tracebacks give incidents or none, never a crash, and each line is counted once."""
    pipeline = Pipeline("server.log", NoCards())
    for number, (first, second) in enumerate(rows, 1):
        pipeline.feed(Line("server.log", number, 0, first + second))
    for incident in pipeline.close():
        assert 1 <= incident.first_line <= incident.last_line <= len(rows)
