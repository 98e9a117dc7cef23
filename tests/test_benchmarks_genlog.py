"""The logs of the benchmarks: the same each time, and what their truth says is in them."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from test_logs import scan

from benchmarks.failures import CAUSED, HEAD, Failure, engine_error, failed_request, failures
from benchmarks.genlog import EVERY, KINDS, write_log
from benchmarks.lives import failed_start, processes, start
from lmdiag.parse.prefixes import read_prefix

SIZE = 1_500_000
KNOWN = (
    Failure("ValueError", "the \x00 of a test is \x00 long", "vllm/config/model.py", 12, "check"),
    Failure("RuntimeError", "two lines\nof \x00", "vllm/v1/worker/gpu_worker.py", 77, "load_model"),
)


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, bytes, dict[str, Any]]:
    """A log of each kind: its kind, its bytes, its truth."""
    path = tmp_path / "server.log"
    write_log(path, SIZE, request.param, known=KNOWN)
    return request.param, path.read_bytes(), json.loads(Path(f"{path}.truth.json").read_bytes())


def test_the_truth_is_what_the_log_holds(made: tuple[str, bytes, dict[str, Any]]) -> None:
    kind, data, truth = made
    assert truth["bytes"] == len(data) == pytest.approx(SIZE, abs=20_000)
    assert truth["lines"] == data.count(b"\n")
    assert truth["quoted"] == data.count(b"he wrote: ")
    # a prompt may quote a head, but never at the start of a line
    heads = sum(line.rstrip(b"\r").endswith(HEAD) for line in data.split(b"\n"))
    assert truth["tracebacks"] == heads - data.count(CAUSED)
    for offset, kind_of, message, logged, _ in truth["raised"]:
        assert offset == 0 or data[offset - 1 : offset] == b"\n"
        text = data[offset : offset + 60_000].replace(b"\r\n", b"\n").decode()
        assert f"{kind_of}: {message.split(chr(10))[0]}" in text
        assert kind == "loop" or logged == (" ERROR " in text.split("\n")[0])


def test_failures_come_as_often_as_the_kind_says(made: tuple[str, bytes, dict[str, Any]]) -> None:
    kind, data, truth = made
    offsets = [raised[0] for raised in truth["raised"]]
    if kind == "loop":
        assert all(15_000 < after - before < 30_000 for before, after in pairwise(offsets))
        assert data.count(b"Initializing a V1 LLM engine") == len(offsets)
    else:
        due = range(EVERY[kind] // 2, SIZE, EVERY[kind])
        assert len(offsets) == len(due)
        assert all(0 <= offset - place < 40_000 for offset, place in zip(offsets, due, strict=True))
        stamp = data.split(b"INFO ")[1][:14].decode()
        assert data.startswith(start(stamp, processes(1234)).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_is_the_same_each_time_and_another_by_its_seed(tmp_path: Path, kind: str) -> None:
    logs = []
    for number, seed in enumerate((1, 1, 2)):
        write_log(tmp_path / str(number), 200_000, kind, seed=seed, known=KNOWN)
        logs.append((tmp_path / str(number)).read_bytes())
    assert logs[0] == logs[1] != logs[2]


def test_the_kinds_of_lines_come_in_the_shares_of_a_busy_server(tmp_path: Path) -> None:
    write_log(tmp_path / "log", 4_000_000, known=KNOWN)
    lines = (tmp_path / "log").read_bytes().split(b"\n")
    shares = {
        b'HTTP/1.1" ': 0.42, b"Avg prompt": 0.24, b"Added request": 0.24, b"Received request": 0.06, b" WARNING ": 0.03, b"Completed |": 0.01,
    }  # fmt: skip
    for words, share in shares.items():
        assert sum(words in line for line in lines) / len(lines) == pytest.approx(share, rel=0.25), words
    prompts = [line for line in lines if b"Received request" in line]
    assert all(1000 < len(line) < 9000 for line in prompts)
    assert 0.005 < sum(b"he wrote: " in line for line in prompts) / len(prompts) < 0.04
    assert sum(line.startswith(b"\r") for line in lines) > 10


def test_tracebacks_have_the_shapes_of_vllm() -> None:
    chance = random.Random(1)  # noqa: S311 - the same each time
    shown = [write(KNOWN[0], "08-14 10:00:00", chance) for write in (engine_error, failed_request) for _ in range(500)]
    assert sum(raised.logged for _, raised in shown) / len(shown) == pytest.approx(0.7, abs=0.05)
    assert sum(raised.chained for _, raised in shown) / len(shown) == pytest.approx(0.5, abs=0.05)
    for text, raised in shown:
        assert text.count("\r\n") == (text.count("\n") - 1 if raised.logged else 0)
        assert text.count(CAUSED.decode()) == raised.chained
        if raised.logged:
            assert all(read_prefix(line).record is not None for line in text.replace("\r", "").splitlines())


def test_failures_are_those_of_the_catalogue_with_the_frame_that_raises_them() -> None:
    found = failures(50)
    assert found == failures(50)
    assert len({failure.template for failure in found}) == 50
    assert all(failure.file.startswith("vllm/") and failure.line > 0 for failure in found)


def test_a_crash_loop_is_one_failure_with_its_cause(tmp_path: Path) -> None:
    text, raised = failed_start(KNOWN[0], "08-14 10:00:00", processes(700), random.Random(1))  # noqa: S311 - the same each time
    (tmp_path / "log").write_text(text * 3, newline="")
    (incident,) = scan(tmp_path / "log")
    assert incident.outcome == "start_failed"
    assert incident.root is not None
    assert (incident.root.type, incident.root.message) == (raised.type, raised.message)


def test_a_server_that_serves_reports_nothing(tmp_path: Path) -> None:
    write_log(tmp_path / "log", 400_000, known=KNOWN)
    assert scan(tmp_path / "log") == []
