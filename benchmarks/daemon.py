"""A daemon under measurement: started on logs and ended, its processor time and its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOG = Path(__file__).parents[1] / "tests" / "logs" / "mla-serde-start-failed.log"
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def daemon(directory: Path, paths: list[Path], *flags: str) -> Iterator[subprocess.Popen[str]]:
    """Run `lmdiag watch` on the paths until the block ends."""
    command = [sys.executable, "-P", "-m", "lmdiag", "watch", *map(str, paths), "--state", str(directory / "state")]
    child = subprocess.Popen([*command, "--format", "jsonl", *flags], stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far (proc(5): fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mib(pid: int) -> float:
    """The peak resident set of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def wait_for_start(directory: Path, child: subprocess.Popen[str]) -> None:
    """Wait until the daemon has saved a status, which it does when it goes round. Raises SystemExit if it ends instead."""
    state = directory / "state" / "state.db"
    while not state.exists():
        if child.poll() is not None:
            raise SystemExit(f"lmdiag watch ended with exit code {child.returncode}")
        time.sleep(0.05)
    time.sleep(1.5)


def drain(child: subprocess.Popen[str]) -> None:
    """Read what it prints, so that it never waits."""
    assert child.stdout is not None
    threading.Thread(target=child.stdout.read, daemon=True).start()
