"""The look at a log: it says what a scan of the server's current life would say."""

from __future__ import annotations

import io
import json
import os
import sys
from math import inf
from pathlib import Path
from typing import Any

import pytest
from helpers import NoCards

from lmdiag.config import ScanConfig
from lmdiag.match.library import Library, open_library
from lmdiag.read.discover import Found
from lmdiag.receive import look as look_module
from lmdiag.receive.look import MAX_LOGS, Look, logs_of, look
from lmdiag.report.jsonl import dumps, incident_object
from lmdiag.scan import scan

LOGS = Path(__file__).parent / "logs"
SERDE = (LOGS / "mla-serde-start-failed.log").read_bytes()
DEGRADED = (LOGS / "mla-serde-degraded.log").read_bytes()


@pytest.fixture(scope="module")
def library() -> Library:
    return open_library()


def look_at(path: Path, library: Library, until: float = inf) -> Look:
    (found,), problems = logs_of([str(path)])
    assert problems == []
    return look(found, library, until)


def scanned(path: Path) -> list[Any]:
    out = io.StringIO()
    scan(ScanConfig((str(path),), "jsonl", exit_zero=True), out, sys.stderr)
    return [json.loads(line) for line in out.getvalue().splitlines()[:-1]]


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.log")))
def test_it_finds_what_a_scan_finds(library: Library, name: str) -> None:
    found = look_at(LOGS / name, library)
    assert [json.loads(dumps(incident_object(incident))) for incident in found.incidents] == scanned(LOGS / name)
    assert found.problem == ""


def test_a_life_before_the_current_one_is_past(library: Library, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(SERDE + DEGRADED)
    (incident,) = look_at(log, library).incidents
    assert incident.outcome == "degraded"
    assert incident.first_line > SERDE.count(b"\n")


def test_of_a_long_life_only_the_end_is_read(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines keep their numbers."""
    whole = look_at(LOGS / "mla-serde-start-failed.log", library).incidents
    monkeypatch.setattr(look_module, "MAX_BYTES", len(SERDE))
    log = tmp_path / "server.log"
    chatter = b"INFO 12-01 02:00:00 [loggers.py:1] nothing of interest\n" * 5000
    log.write_bytes(SERDE[: SERDE.index(b"\n") + 1] + chatter + SERDE)
    found = look_at(log, library)
    assert found.bytes <= len(SERDE)
    assert [incident.card for incident in found.incidents] == [incident.card for incident in whole]
    assert found.incidents[0].last_line == whole[0].last_line + 5001


def test_when_the_time_is_over_it_says_so(library: Library, tmp_path: Path) -> None:
    found = look_at(LOGS / "mla-serde-start-failed.log", library, until=0.0)
    assert found.incidents == ()
    assert "was not looked at" in found.problem


def test_a_log_that_is_missing_is_a_problem(library: Library, tmp_path: Path) -> None:
    assert "does not exist" in look_at(tmp_path / "missing.log", library).problem


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no past" in look(Found(str(tmp_path / "pipe"), "pipe", required=True, kind="fifo"), NoCards(), inf).problem


def test_logs_are_those_that_were_written_to_last(tmp_path: Path) -> None:
    for number in range(MAX_LOGS + 5):
        log = tmp_path / f"server{number:02}x.log"
        log.write_text("x\n")
        os.utime(log, (number, number))
    (tmp_path / "server00x.log.1").write_text("rotated\n")
    found, (problem,) = logs_of([str(tmp_path)])
    assert [one.path for one in found] == [
        f"{tmp_path}/server{number:02}x.log" for number in range(MAX_LOGS + 4, 4, -1)
    ]
    assert problem == f"{MAX_LOGS + 5} logs are there; only the newest {MAX_LOGS} were looked at"


def test_a_container_that_restarted_is_one_log(library: Library, tmp_path: Path) -> None:
    """The failure stands at the end of 0.log, the kubelet has opened 1.log meanwhile."""
    directory = tmp_path / "pods" / "prod_vllm-0_11111111-2222-3333-4444-555555555555" / "vllm"
    directory.mkdir(parents=True)
    cri = b"".join(b"2025-12-01T02:00:00.000000000Z stderr F " + line for line in SERDE.splitlines(keepends=True))
    (directory / "0.log").write_bytes(cri)
    (directory / "1.log").write_bytes(
        b"2025-12-01T02:00:09.000000000Z stderr F INFO 12-01 02:00:09 [x.py:1] Starting\n"
    )
    (found,), problems = logs_of([f"{tmp_path}/pods/*/vllm/*.log"])
    assert problems == []
    assert [incident.card for incident in look(found, library, inf).incidents] == [
        incident.card for incident in look_at(LOGS / "mla-serde-start-failed.log", library).incidents
    ]


def test_no_descriptor_is_left_open(library: Library, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    look_at(LOGS / "server-stalled.log", library)
    look_at(tmp_path / "missing.log", library)
    assert len(os.listdir("/proc/self/fd")) == before
