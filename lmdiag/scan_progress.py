"""How far a scan is, on a terminal and for large inputs only; standard input has no known size."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, TextIO

from lmdiag.config import ScanConfig
from lmdiag.read.archives import size
from lmdiag.read.paths import Input

PROGRESS_FROM = 1 << 30
"""Bytes of input from which a terminal gets a progress bar: what takes a second or more to read."""
_DRAWN_EVERY = 0.1
"""Seconds between two pictures. rich would draw them in a thread, but processes are started while the bar is there."""


class Progress:
    """One bar over the bytes of all inputs."""

    def __init__(self, config: ScanConfig, inputs: Sequence[Input], err: TextIO) -> None:
        self._err = err
        wanted = config.progress and err.isatty() and os.environ.get("TERM") != "dumb"
        sizes = [size(entry.path) or 0 for entry in inputs if entry.path != "-"] if wanted else []
        self._total = sum(sizes)
        self._at: dict[int, int] = {}
        self._bar: Any = None
        self._next = 0.0

    def at(self, number: int, position: int) -> None:
        """Show the position in the input of a number, in bytes of its file."""
        if self._total < PROGRESS_FROM:
            return
        self._at[number] = position
        if (now := time.monotonic()) >= self._next:
            self._next = now + _DRAWN_EVERY
            self._draw()

    def _draw(self) -> None:
        if self._bar is None:
            self._start()
        self._bar.update(self._task, completed=sum(self._at.values()), refresh=True)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(file=self._err), transient=True, auto_refresh=False)
        self._bar.start()
        self._task = self._bar.add_task("", total=self._total)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
