"""What one input gives, whole or not."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

from helpers import NoCards
from shapes import raised

from lmdiag.examine import BLOCK, Counts, examine
from lmdiag.read.paths import Input

FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "x y") + "\n"


def test_the_counts_are_of_all_lines(tmp_path: Path) -> None:
    """Also of those that were passed over."""
    path = tmp_path / "a.log"
    path.write_text("z" * 300 + "\n" + "a line\n" * 200_000 + FAILED, encoding="utf-8")
    told: list[int] = []
    found = examine(Input(str(path), "a.log"), NoCards(), at=told.append)
    size = path.stat().st_size
    assert told[-1] == size
    assert max(later - earlier for earlier, later in pairwise(told)) == BLOCK
    lines = 200_001 + FAILED.count("\n")
    assert found.counts == Counts(sources=1, lines=lines, bytes=size, records=0, tracebacks=1)
    assert [incident.first_line for incident in found.incidents] == [200_002]


def test_what_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    """And says that it did."""
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(FAILED.encode() * 2000, 0)[:-20])
    found = examine(Input(str(path), "a.log.gz"), NoCards(), at=lambda _: None)
    assert len(found.incidents) == 1
    assert "breaks off" in found.problems[0]


def test_what_is_no_text(tmp_path: Path) -> None:
    """It is told though most of its lines are never looked at."""
    path = tmp_path / "a.log"
    path.write_bytes(b"\x80\x81\x00" * 130 + b"\n" + b"\x80\x81\n" * 50_000)
    found = examine(Input(str(path), "a.log"), NoCards(), at=lambda _: None)
    assert found.counts.lines == 50_001
    assert "most of its lines are not text" in found.problems[0]


def test_an_interruption_gives_what_was_found(tmp_path: Path) -> None:
    """Up to the block at hand."""
    path = tmp_path / "a.log"
    path.write_text(FAILED + "a line\n" * 300_000 + FAILED, encoding="utf-8")

    def at(position: int) -> None:
        if position >= BLOCK:
            raise KeyboardInterrupt

    found = examine(Input(str(path), "a.log"), NoCards(), at=at)
    assert found.interrupted
    assert BLOCK <= found.counts.bytes < 2 * BLOCK
    assert len(found.incidents) == 1
