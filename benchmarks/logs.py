"""The logs that are measured: written once, by a process of their own, and again when the generator has changed."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.failures import CATALOG
from benchmarks.processes import DATA, Command, run, warm

KB, MB, GB = 1000, 1_000_000, 1_000_000_000
_MAKERS = ("genlog", "chatter", "failures", "lives")


def size_name(size: int) -> str:
    """Return a size as people write it: 100 MB."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def log_of(kind: str, size: int, directory: Path = DATA) -> Path:
    """Return a log of a kind and a size, in the page cache as far as memory allows."""
    path = directory / f"{kind}-{size_name(size).replace(' ', '')}.log"
    if not _fresh(path):
        directory.mkdir(exist_ok=True)
        module = ("-m", "benchmarks.genlog", str(path), "--size", str(size), "--kind", kind)
        run(Command((sys.executable, *module)))
    warm(path)
    return path


def gzip_of(path: Path) -> Path:
    """Return a log, compressed as logrotate does it: gzip -6."""
    packed = Path(f"{path}.gz")
    if not packed.exists() or packed.stat().st_mtime < path.stat().st_mtime:
        run(Command(("gzip", "-6", "--keep", "--force", str(path))))
    warm(packed)
    return packed


def truth_of(path: Path) -> dict[str, Any]:
    """Return what is in a log: see benchmarks.genlog."""
    truth: dict[str, Any] = json.loads(_truth(path).read_bytes())
    return truth


def delete(path: Path) -> None:
    """Delete a log and its truth."""
    path.unlink()
    _truth(path).unlink()


def room_for(size: int) -> bool:
    """Whether the disk takes a log of a size, and a tenth of it stays free."""
    DATA.mkdir(exist_ok=True)
    disk = shutil.disk_usage(DATA)
    return disk.free - size > disk.total / 10


def _truth(path: Path) -> Path:
    return Path(f"{path}.truth.json")


def _fresh(path: Path) -> bool:
    """Whether a log is there, whole, and newer than what makes it."""
    here = Path(__file__)
    makers = [here.with_name(f"{name}.py") for name in _MAKERS] + [here.with_name("server_start.txt"), Path(CATALOG)]
    if not path.exists() or not _truth(path).exists():
        return False
    return path.stat().st_mtime > max(maker.stat().st_mtime for maker in makers)
