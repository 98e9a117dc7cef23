"""Inputs are read in processes only where that pays, and give the same there."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import SHAPES

from lmdiag import scan_inputs
from lmdiag.config import ScanConfig
from lmdiag.read.paths import Input
from lmdiag.scan import scan
from lmdiag.scan_inputs import newest_parts, with_rotated

SAMPLES = [path.read_bytes() for path in sorted((Path(__file__).parent / "logs").glob("*.log"))[:12]]
SAMPLES += [shape.log.encode() for shape in SHAPES[:20]]


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def report(paths: list[str], **options: Any) -> tuple[int, str, str]:
    """Exit code, report but for the time it took, problems."""
    out, err = io.StringIO(), io.StringIO()
    code = scan(ScanConfig(tuple(paths), color=False, width=100, **options), out, err)
    return code, re.sub(r'("seconds": ?)[\d.]+', r"\g<1>0", out.getvalue()), err.getvalue()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(SAMPLES), max_size=4), st.lists(st.integers(0, 40_000), max_size=6))
def test_any_files_give_the_same_report_with_any_number_of_processes(logs: list[bytes], cuts: list[int]) -> None:
    """Byte for byte: logs that are cut anywhere into files, of which some are empty, and one is missing."""
    data = b"".join(logs)
    with tempfile.TemporaryDirectory() as directory:
        places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        parts = [data[first:last] for first, last in pairwise(places)]
        paths = [write(Path(directory, f"part{number}"), part) for number, part in enumerate(parts)]
        paths.insert(len(paths) // 2, f"{directory}/missing")
        one, two, four = (report(paths, format="jsonl", jobs=jobs) for jobs in (1, 2, 4))
        assert one == two == four


@pytest.fixture
def in_processes(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, Input]]:
    """The inputs of each call of Workers; two cores may be used, and processes pay from 1000 bytes on."""
    calls: list[dict[int, Input]] = []

    class Spy:
        problems = muted = ()
        interrupted = False

        def __init__(self, inputs: dict[int, Input], *_: object) -> None:
            calls.append(inputs)

        def run(self) -> dict[int, object]:
            return {}

    monkeypatch.setattr("lmdiag.workers.Workers", Spy)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(scan_inputs, "MANY", 1000)
    return calls


LARGE, SMALL = b"x\n" * 400, b"x\n"
PAYS = [
    ([LARGE, LARGE], 0, {0, 1}),
    ([LARGE, SMALL], 0, set()),
    ([SMALL, SMALL], 2, {0, 1}),
    ([LARGE, LARGE], 1, set()),
    ([LARGE * 9], 0, set()),
    ([LARGE * 9], 4, set()),
    ([LARGE * 9, b""], 4, set()),
    ([LARGE, b"", LARGE], 0, {0, 2}),
]


@pytest.mark.parametrize(("files", "jobs", "apart"), PAYS)
def test_processes_read_several_large_files(
    tmp_path: Path, in_processes: list[dict[int, Input]], files: list[bytes], jobs: int, apart: set[int]
) -> None:
    report([write(tmp_path / f"{number}.log", data) for number, data in enumerate(files)], jobs=jobs)
    assert [set(inputs) for inputs in in_processes] == ([apart] if apart else [])


def test_one_core_needs_no_processes(
    tmp_path: Path, in_processes: list[dict[int, Input]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    report([write(tmp_path / name, LARGE) for name in ("a.log", "b.log")])
    assert in_processes == []


def test_pipes_and_standard_input_are_read_here(
    tmp_path: Path, in_processes: list[dict[int, Input]], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path / name, LARGE) for name in ("a.log", "b.log")]
    reader, writer = os.pipe()
    os.write(writer, SMALL)
    os.close(writer)
    code, out, _ = report([f"/dev/fd/{reader}", *files], jobs=2, format="jsonl")
    os.close(reader)
    assert [set(inputs) for inputs in in_processes] == [{1, 2}]
    assert (code, json.loads(out)["sources"]) == (0, 3)


def test_what_no_process_has_read_is_read_here(tmp_path: Path, in_processes: list[dict[int, Input]]) -> None:
    """As where none can be started; the spy has read nothing."""
    files = [write(tmp_path / f"{number}.log", SAMPLES[0]) for number in range(3)]
    one, other = (report(files, format="jsonl", jobs=jobs) for jobs in (1, 2))
    assert in_processes
    assert one == other


def test_rotated_siblings_that_are_named_are_read_once(tmp_path: Path) -> None:
    path, sibling = write(tmp_path / "server.log", b""), write(tmp_path / "server.log.1", b"")
    inputs = [Input(sibling, "shown"), Input(path, path), Input("-", "-")]
    assert with_rotated(inputs) == tuple(inputs)
    assert [entry.path for entry in with_rotated(inputs[1:2])] == [sibling, path]
    assert newest_parts(inputs[1:]) == ((sibling, path),)
