"""What a scan costs, as ratios of one run: the start, against an empty Python; the memory, of a large log against a small one."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from benchmarks.genlog import write_log

DATA = Path("bench-data")
SMALL = 20_000
CEILINGS = {"start": 7.0, "memory_mib": 64.0}


def run(command: list[str]) -> tuple[float, float]:
    """Run a command to its end, its output thrown away. Return (wall seconds, peak resident set in MiB)."""
    start = time.perf_counter()
    child = os.posix_spawn(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def log_of(size: int) -> Path:
    """Return the log of a size, written once."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"{size}.log"
    if not path.exists():
        write_log(path, size)
    return path


def start_ratio(pairs: int) -> list[float]:
    """Time a scan of a small log against `python -c pass`, in turn; return the ratio of each pair."""
    scan = [sys.executable, "-m", "lmdiag", "scan", "--exit-zero", str(log_of(SMALL))]
    empty = [sys.executable, "-c", "pass"]
    for command in (scan, empty):
        run(command)
    return [run(scan)[0] / run(empty)[0] for _ in range(pairs)]


def memory(size: int) -> tuple[float, float, float]:
    """Return peak MiB of a small log, peak MiB of a large one, and the large one's MB/s."""
    scan = [sys.executable, "-m", "lmdiag", "scan", "--exit-zero"]
    small = run([*scan, str(log_of(SMALL))])[1]
    seconds, large = run([*scan, str(log_of(size))])
    return small, large, size / 1e6 / seconds


def main() -> int:
    """Measure and print; the exit code is 1 if a ceiling is broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--size", type=int, default=1_000_000_000, help="bytes of the large log (default: %(default)s)"
    )
    options.add_argument("--pairs", type=int, default=7, help="timed pairs (default: %(default)s)")
    chosen = options.parse_args()
    ratios = start_ratio(chosen.pairs)
    small, large, speed = memory(chosen.size)
    median = statistics.median(ratios)
    print(f"start: scan of a 20 KB log / python -c pass = {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    growth = f"ratio {large / small:.2f}, +{large - small:.1f} MiB"
    print(f"memory: {large:.1f} MiB at {chosen.size / 1e6:.0f} MB, {small:.1f} MiB at 20 KB: {growth}")
    print(f"speed: {speed:.0f} MB/s (no ratio: it depends on the machine)")
    return int(median > CEILINGS["start"] or large - small > CEILINGS["memory_mib"])


if __name__ == "__main__":
    raise SystemExit(main())
