"""`lmdiag scan` with several processes, as a shell sees it: signals, kills, a reader that leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shapes import raised

TESTS = str(Path(__file__).parent)
SCRIPT = f"""
import sys
sys.path.insert(0, {TESTS!r})
import lmdiag.examine
from endless import open_endless
from lmdiag.cli import main
lmdiag.examine.open_bytes = open_endless
sys.exit(main(["scan", "--format", "jsonl", *sys.argv[1:]]))
"""
FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "x y") + "\n"
TIMEOUT = 60


class Scan:
    """A scan that is in the middle of two logs that do not end, each in a process, and has read a third one."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.endless = [directory / f"endless{number}.log" for number in range(2)]
        self.workers = [int(Path(f"{path}.begun").read_text(encoding="ascii")) for path in self.endless]

    def end(self) -> tuple[int, list[dict[str, object]], bytes]:
        """Exit code, what was printed, problems."""
        out, err = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


@contextmanager
def scanning(directory: Path, *more: Path) -> Iterator[Scan]:
    """Start a scan in a process group of its own."""
    paths = [directory / f"endless{number}.log" for number in range(2)]
    for path in paths:
        path.write_text(FAILED, encoding="utf-8")
        os.mkfifo(f"{path}.begun")
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "--jobs", "2", *map(str, (*paths, *more))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield Scan(directory, process)
        finally:
            process.kill()


@pytest.mark.parametrize("whole", [True, False], ids=["group", "parent"])
def test_ctrl_c_prints_what_was_found_by_all_and_leaves_no_process(tmp_path: Path, whole: bool) -> None:
    """Whether the terminal tells all processes, or `kill` only the one."""
    with scanning(tmp_path) as scan:
        (os.killpg if whole else os.kill)(scan.process.pid, signal.SIGINT)
        code, (*incidents, summary), err = scan.end()
        assert (code, err) == (130, b"")
        assert [item["source"] for item in incidents] == list(map(str, scan.endless))
        assert (summary["interrupted"], summary["sources"]) == (True, 2)
        assert not any(Path(f"/proc/{pid}").exists() for pid in scan.workers)


def test_a_killed_worker_costs_its_input_and_is_told(tmp_path: Path) -> None:
    last = tmp_path / "small.log"
    last.write_text(FAILED[:-1], encoding="utf-8")
    with scanning(tmp_path, last, tmp_path / "none.log") as scan:
        for pid in scan.workers:
            os.kill(pid, signal.SIGKILL)
        code, (*incidents, summary), err = scan.end()
    assert code == 2
    assert [item["source"] for item in incidents] == [str(last)]
    skipped = {str(item["path"]): str(item["reason"]) for item in summary["skipped"]}  # type: ignore[attr-defined]
    assert list(skipped) == [str(tmp_path / "none.log"), *map(str, scan.endless)]
    assert all("by signal 9; scan it again by itself" in skipped[str(path)] for path in scan.endless)
    assert err.count(b"\n") == 3
    assert b"Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_the_scan(tmp_path: Path, number: signal.Signals) -> None:
    """They hold its standard output, which ends only when all of them have."""
    with scanning(tmp_path) as scan:
        os.kill(scan.process.pid, number)
        assert scan.end() == (-number, [], b"")
