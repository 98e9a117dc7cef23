"""Reports on their way from the state into the outbox, and sinks that are to be brought up to what is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lmdiag.errors import StateError
from lmdiag.forward.forwarder import Told

if TYPE_CHECKING:
    from lmdiag.forward.forwarder import Forwarder
    from lmdiag.watch.store import Pending
    from lmdiag.watch.tracker import Report

_EVERY = 5.0
"""Seconds between two tries to write to an outbox that cannot be written."""


class Handover:
    """What is not in the outbox yet. Without a forwarder nothing ever waits."""

    def __init__(self, forwarder: Forwarder | None, pending: Sequence[Pending]) -> None:
        self.forwarder = forwarder
        self._unsent = list(pending)
        self._retry_at = 0.0
        self._reconciled = False

    def add(self, pending: Iterable[Pending]) -> None:
        """Take reports that were saved, or could not be."""
        self._unsent += pending

    def reload(self) -> None:
        """Take note that the sinks may be others."""
        self._reconciled = False

    @property
    def numbers(self) -> set[int]:
        """Of the reports that must stay in the state: they are nowhere else."""
        return {number for number, _ in self._unsent}

    @property
    def due(self) -> float | None:
        """When reports that wait are to be tried again; None if there are none."""
        return self._retry_at if self._unsent else None

    def step(self, now: float, open_reports: Callable[[], Sequence[Report] | None]) -> str:
        """Put into the outbox what is not there yet; return why that failed, or "".

        `open_reports` tells what is open, or None while that is not known.
        """
        if self.forwarder is None:
            self._unsent.clear()
            return ""
        self.forwarder.tend()
        self._reconciled = self._reconciled and self.forwarder.is_there()
        known = None if self._reconciled else open_reports()
        if now < self._retry_at or (not self._unsent and known is None):
            return ""
        try:
            self.forwarder.put([_told(report) for _, report in self._unsent])
            if known is not None:
                self.forwarder.reconcile([_told(report) for report in known])
        except StateError as error:
            self._retry_at = now + _EVERY
            return str(error)
        self._unsent.clear()
        self._retry_at = 0.0
        self._reconciled = self._reconciled or known is not None
        return ""


def _told(report: Report) -> Told:
    return Told(report.incident, report.number)
