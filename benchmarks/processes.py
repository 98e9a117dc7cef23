"""Runs a command as a whole process and takes its time and its peak memory from the kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

DATA = Path("bench-data")
"""Where logs and whatever else a benchmark writes lie; git does not see it."""


class Command(NamedTuple):
    """What is run. Its output goes to a file: grep stops at the first match when it goes to /dev/null."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Variables that are set beside the present ones."""
    good: tuple[int, ...] = (0,)
    """The exit codes of a run that did its work."""
    discard: bool = False
    """Whether its output goes to /dev/null all the same: of a filter, which would write a whole log."""


class Run(NamedTuple):
    """One finished run."""

    seconds: float
    """Wall time."""
    cpu: float
    """Seconds of user and system time, of its finished children too."""
    peak_mib: float
    """Peak resident set of its largest process. The kernel counts from the peak of the one that starts it: see `seen`."""


def run(command: Command) -> Run:
    """Run a command to its end. Raises SystemExit, with the end of what it said, if it fails, or if there is none such."""
    DATA.mkdir(exist_ok=True)
    output, errors = DATA / "output", DATA / "errors"
    actions = [_opened(0, os.devnull, os.O_RDONLY)]
    actions += [_opened(1, os.devnull if command.discard else output), _opened(2, errors)]
    began = time.perf_counter()
    try:
        child = os.posix_spawnp(command.argv[0], command.argv, os.environ | command.environment, file_actions=actions)
    except FileNotFoundError:
        raise SystemExit(f"{command.argv[0]}: not installed") from None
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    if code not in command.good:
        said = errors.read_text(errors="replace")[-2000:]
        raise SystemExit(f"{' '.join(command.argv)}: exit code {code}\n{said}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def output_of(command: Command) -> bytes:
    """Run a command and return what it printed."""
    run(command)
    return (DATA / "output").read_bytes()


def _opened(number: int, path: str | Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_TRUNC) -> tuple[int | str, ...]:
    return os.POSIX_SPAWN_OPEN, number, os.fspath(path), flags, 0o644


def own_peak_mib() -> float:
    """Return the peak resident set of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def seen(runs: Sequence[Run]) -> list[float]:
    """Return the peaks of runs in MiB. Raises SystemExit if one is this process's own, which its children are charged."""
    peaks, own = [one.peak_mib for one in runs], own_peak_mib()
    if min(peaks) <= own:
        raise SystemExit(f"a peak of {min(peaks):.1f} MiB cannot be told from this process's own, {own:.1f} MiB")
    return peaks


def warm(path: Path) -> None:
    """Read a file, so that the page cache has it."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
