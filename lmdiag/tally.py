"""What a scan has read and found so far."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from lmdiag.errors import InputError
from lmdiag.examine import Counts, Examined
from lmdiag.model import SEVERITIES, Incident, Summary
from lmdiag.read.paths import Input
from lmdiag.report.control import visible


class Tally:
    """Adds up what inputs gave, and tells of problems at once; becomes the summary."""

    def __init__(self, skipped: Sequence[tuple[str, str]], err: TextIO) -> None:
        self.incidents: list[Incident] = []
        self.counts: Counter[str] = Counter()
        self.failed = False
        """Whether an input could not be read, or not to its end."""
        self.interrupted = False
        self._skipped = list(skipped)
        self._err = err
        self._started = time.perf_counter()

    def add(self, entry: Input, found: Examined) -> None:
        """Take what one input gave."""
        self.incidents += found.incidents
        self.counts.update(found.counts._asdict())
        self.interrupted = self.interrupted or found.interrupted
        for problem in found.problems:
            self.report(InputError(problem), entry.source)
        for note in found.notes:
            print(f"lmdiag: {visible(note)}", file=self._err)

    def report(self, error: InputError, source: str = "") -> None:
        """Tell and keep why an input was not read, or not to its end; `source` is its name, if the error has another."""
        self.failed = True
        path, _, reason = str(error).partition(": ")
        known = not source or path == source
        self._skipped.append((path, reason) if known else (source, str(error)))
        print(f"lmdiag: {visible(str(error))}", file=self._err)

    def summary(self, muted: Sequence[tuple[str, int]]) -> Summary:
        """Return the summary of what was added; `muted`: see Library.muted_patterns, of one or several libraries."""
        stopped: Counter[str] = Counter()
        for card, count in muted:
            stopped[card] += count
        severities = Counter(item.severity for item in self.incidents)
        cards = Counter(item.card for item in self.incidents if item.card)
        return Summary(
            **{name: self.counts[name] for name in Counts._fields},
            skipped=tuple(self._skipped),
            by_severity=tuple((name, severities[name]) for name in reversed(SEVERITIES) if severities[name]),
            by_card=tuple(sorted(cards.items())),
            seconds=round(time.perf_counter() - self._started, 3),
            interrupted=self.interrupted,
            muted_patterns=tuple(sorted(stopped.items())),
        )
