"""Numbered starts of a vLLM server that fail, each of its own cause, written piece by piece into a rotated log."""

from __future__ import annotations

import functools
import gzip
import os
import random
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

_REAL = Path(__file__).parents[1] / "logs" / "mla-serde-start-failed.log"
_REAL_MESSAGE = "MLA only works with naive serde mode.."
_REAL_TIME = re.compile(r"12-01 02:51:\d\d")
_REAL_PID = re.compile(r"pid=(\d+)")
_ONES: list[str] = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_KEPT = 20
"""Rotated logs that are kept."""


def in_words(number: int) -> str:
    """Write a number below 10,000 in letters: incidents that differ in digits only are one."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10 - 2] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" {in_words(number % size)}" if number % size else ""
    return f"{in_words(number // size)} {name}{rest}"


def message(number: int) -> str:
    """Return what the numbered start fails of. No card fits it."""
    return f"The shard called {in_words(number)} holds no weights of the attention layers"


@functools.cache
def _real() -> str:
    return _REAL.read_text()


def failing_start(number: int) -> bytes:
    """Return the log of one start that fails: a real one, with its message, times and process ids changed."""
    when = datetime(2026, 12, 1) + timedelta(seconds=40 * number)
    text = _real().replace(_REAL_MESSAGE, message(number))
    text = _REAL_TIME.sub(when.strftime("%m-%d %H:%M:%S"), text)
    return _REAL_PID.sub(lambda found: f"pid={int(found[1]) % 1000 + 1000 + 7 * number}", text).encode()


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """Cut a log at some random places, mostly within a line, as a buffered writer does."""
    cuts = sorted(chance.sample(range(1, len(data)), chance.randint(1, 6)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]


class Log:
    """A server's log that a writer keeps open, and that is rotated as logrotate does it.

    `append` false is a shell's `>`: after a truncation the writer goes on at its old offset, behind a hole of NULs.
    """

    def __init__(self, path: Path, *, append: bool = True) -> None:
        self.path = path
        self.rotations = 0
        self._append = append
        self._file = self._open()

    def _open(self) -> BinaryIO:
        return self.path.open("ab" if self._append else "wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Write all of it."""
        self._file.write(data)

    def reopen(self) -> None:
        """Go on in the file that stands at the path now; logrotate's `create` has made it."""
        self._file.close()
        self._file = self._open()

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def _shift(self) -> Path:
        """Make room for a new `.1` by renaming the older ones; return its path."""
        self.rotations += 1
        for number in range(_KEPT, 0, -1):
            for end in ("", ".gz"):
                old = self._rotated(number, end)
                if old.exists():
                    if number == _KEPT:
                        old.unlink()
                    else:
                        old.rename(self._rotated(number + 1, end))
        return self._rotated(1)

    def _rotated(self, number: int, end: str = "") -> Path:
        return self.path.with_name(f"{self.path.name}.{number}{end}")

    def rotate_create(self, late: bytes = b"") -> Path:
        """Rename and create; the writer writes a last piece into the old file before it opens the new one."""
        moved = self._shift()
        self.path.rename(moved)
        os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o644))
        self.write(late)
        self.reopen()
        return moved

    def rotate_copytruncate(self) -> Path:
        """Copy and truncate; the writer is silent meanwhile, since what it wrote then would be lost to all."""
        copy = self._shift()
        shutil.copyfile(self.path, copy)
        os.truncate(self.path, 0)
        return copy


def compress(path: Path) -> None:
    """Replace a file by its gzip, as logrotate does: the new file is complete before the old one goes."""
    with path.open("rb") as source, gzip.open(f"{path}.gz", "wb", 1) as target:
        shutil.copyfileobj(source, target)
    path.unlink()


class Writer(threading.Thread):
    """Writes numbered failing starts into a log, with pauses and rotations at random."""

    def __init__(self, log: Log, chance: random.Random, *, pause: float, rotations: float) -> None:
        """`pause` is the longest time between two starts, in seconds; `rotations` how likely one is at each piece."""
        super().__init__(name="writer", daemon=True)
        self.written = 1
        """Starts that are wholly in the log; number 0 is, before the writer starts."""
        self._log, self._chance, self._pause, self._rotations = log, chance, pause, rotations
        self._ending = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End behind the start that is being written."""
        self._ending.set()
        self.join(60)
        self._log.close()
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        """Write until the end of the `with` block."""
        try:
            while not self._ending.wait(self._chance.uniform(0, self._pause)):
                for piece in pieces(failing_start(self.written), self._chance):
                    self._write(piece)
                self.written += 1
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._error = error

    def _write(self, piece: bytes) -> None:
        if self._chance.random() >= self._rotations:
            self._log.write(piece)
            return
        kinds: tuple[Callable[[bytes], Path], ...] = (self._create, self._create_late, self._copytruncate)
        rotated = self._chance.choice(kinds)(piece)
        if self._chance.random() < 0.5:
            compress(rotated)

    def _create(self, piece: bytes) -> Path:
        rotated = self._log.rotate_create()
        self._log.write(piece)
        return rotated

    def _create_late(self, piece: bytes) -> Path:
        return self._log.rotate_create(piece)

    def _copytruncate(self, piece: bytes) -> Path:
        rotated = self._log.rotate_copytruncate()
        self._log.write(piece)
        return rotated
