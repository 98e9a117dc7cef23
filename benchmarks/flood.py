"""What the daemon takes of a core while it follows quiet files, 50,000 lines a second, or a storm of tracebacks.

`python -m benchmarks.flood --rounds 7` prints the percent of a core under 50,000 lines a second, and the lines a second that
were really written, a line a round.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.daemon import LOG, cpu_seconds, daemon, drain, peak_mib, wait_for_start
from benchmarks.genlog import write_log

RATE = 50_000
_BLOCKS = 100
"""Writes a second."""


class Load(NamedTuple):
    """What a daemon took while it was under load."""

    percent: float
    """Of one core: user and system time."""
    mib: float
    rate: float
    """Lines a second that were written."""


def idle(directory: Path, files: int, seconds: float) -> Load:
    """Follow so many quiet files."""
    paths = [directory / f"server-{number}.log" for number in range(files)]
    for path in paths:
        path.write_bytes(LOG.read_bytes())
    with daemon(directory, paths, "--listen", "127.0.0.1:0") as child:
        drain(child)
        wait_for_start(directory, child)
        time.sleep(5)
        before = cpu_seconds(child.pid)
        time.sleep(seconds)
        return Load(100 * (cpu_seconds(child.pid) - before) / seconds, peak_mib(child.pid), 0)


def chatter(directory: Path) -> list[bytes]:
    """Return the lines of a serving server that logs no requests."""
    path = directory / "chatter"
    write_log(path, 20_000_000)
    wanted = (b"INFO:  ", b"] Engine 0")
    return [line for line in path.read_bytes().splitlines(keepends=True) if any(part in line for part in wanted)]


def flood(directory: Path, lines: list[bytes], rate: int, seconds: float) -> Load:
    """Write so many lines a second, in a hundred writes. Two seconds are the shortest that tell: time is counted in ticks."""
    log, size = directory / "server.log", rate // _BLOCKS
    log.write_bytes(LOG.read_bytes())
    blocks = [b"".join(lines[start : start + size]) for start in range(0, len(lines) - size, size)]
    with daemon(directory, [log], "--listen", "") as child, log.open("ab", buffering=0) as file:
        drain(child)
        wait_for_start(directory, child)
        before, began = cpu_seconds(child.pid), time.perf_counter()
        for number in range(int(_BLOCKS * seconds)):
            file.write(blocks[number % len(blocks)])
            time.sleep(max(0.0, began + (number + 1) / _BLOCKS - time.perf_counter()))
        took = time.perf_counter() - began
        taken = cpu_seconds(child.pid) - before
        return Load(100 * taken / took, peak_mib(child.pid), rate * int(_BLOCKS * seconds) / _BLOCKS / took)


def storm(directory: Path, seconds: float) -> Load:
    """Write tracebacks as fast as the disk takes them, 200,000 lines a second and more."""
    return flood(directory, LOG.read_bytes().splitlines(keepends=True) * 40, 200_000, seconds)


def main() -> None:
    """Flood a new daemon each round, and print what it took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seconds", type=float, default=10.0, help="of each round (default: %(default)s)")
    chosen = options.parse_args()
    lines: list[bytes] = []
    for _ in range(chosen.rounds):
        directory = Path(tempfile.mkdtemp(prefix="lmdiag-bench-"))
        lines = lines or chatter(directory)
        load = flood(directory, lines, RATE, chosen.seconds)
        print(f"{load.percent:.2f} {load.rate:.0f}", flush=True)
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
