from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from lmdiag import scan_progress
from lmdiag.config import ScanConfig
from lmdiag.read.paths import Input
from lmdiag.scan_progress import PROGRESS_FROM, Progress


class Terminal(io.StringIO):
    """Keeps what is drawn."""

    def isatty(self) -> bool:
        """See io.IOBase."""
        return True


def inputs(tmp_path: Path, *sizes: int) -> list[Input]:
    """Files of these sizes, in bytes; they take no room."""
    found = []
    for number, size in enumerate(sizes):
        path = tmp_path / f"{number}.log"
        path.touch()
        os.truncate(path, size)
        found.append(Input(str(path), path.name))
    return found


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(scan_progress, "_DRAWN_EVERY", 0.0)


def test_one_bar_shows_the_bytes_of_all_inputs(tmp_path: Path) -> None:
    err = Terminal()
    progress = Progress(ScanConfig(("x",)), inputs(tmp_path, PROGRESS_FROM, PROGRESS_FROM), err)
    progress.at(0, PROGRESS_FROM // 4)
    progress.at(1, PROGRESS_FROM // 4)
    progress.at(1, PROGRESS_FROM)
    progress.stop()
    assert [amount for amount in ("0.2/2.0", "0.5/2.0", "1.2/2.0") if f"{amount} GiB" in err.getvalue()] == [
        "0.2/2.0",
        "0.5/2.0",
        "1.2/2.0",
    ]


def test_the_bar_needs_no_thread(tmp_path: Path) -> None:
    """A process may be started while it is there, and would inherit the thread's locks."""
    progress = Progress(ScanConfig(("x",)), inputs(tmp_path, PROGRESS_FROM), Terminal())
    before = threading.active_count()
    progress.at(0, 1)
    assert threading.active_count() == before
    progress.stop()


@pytest.mark.parametrize("why", ["small", "no terminal", "not wanted", "dumb"])
def test_there_is_no_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    err = io.StringIO() if why == "no terminal" else Terminal()
    found = inputs(tmp_path, PROGRESS_FROM - (why == "small"))
    progress = Progress(ScanConfig(("x",), progress=why != "not wanted"), found, err)
    progress.at(0, 1000)
    progress.stop()
    assert err.getvalue() == ""
