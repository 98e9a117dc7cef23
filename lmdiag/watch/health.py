"""Whether all is well: what is wrong now, in one sentence each, and what has been wrong for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmdiag.watch.counters import DaemonStatus

GRACE = 15.0
"""Seconds that a source which must be read may be unreadable: a log is missing for a moment when it is rotated."""
STALL = 30.0
"""Seconds after which a loop that has not gone round is taken for stuck; it goes round at least once a second."""


class Health:
    """Remembers since when a required source has been unreadable."""

    def __init__(self) -> None:
        self._problems: dict[str, tuple[float, str]] = {}  # source to (since, why)

    def update(self, status: DaemonStatus) -> None:
        """Take the newest status, of the time `status.now`."""
        known = self._problems
        self._problems = {
            source.name: (known.get(source.name, (status.now, ""))[0], source.problem)
            for source in status.sources
            if source.required and source.problem
        }

    def problems(self, now: float, last_step: float | None) -> list[str]:
        """Say what is wrong at `now` (unix seconds), one line each; none: all is well."""
        stalled = [] if last_step is None else stall(now, last_step)
        return stalled + [
            f"{source}: {why} (for {now - since:.0f} s)"
            for source, (since, why) in self._problems.items()
            if now - since > GRACE
        ]


def stall(now: float, last_step: float) -> list[str]:
    """Say so if the loop has not gone round for too long."""
    return [f"the daemon has not gone round for {now - last_step:.0f} s"] if now - last_step > STALL else []


def current_problems(status: DaemonStatus, now: float) -> list[str]:
    """What a person should know now, without any grace: also sources that need not be there, and the configuration."""
    return [
        *stall(now, status.now),
        *([status.config_problem] if status.config_problem else []),
        *(f"{source.name}: {source.problem}" for source in status.sources if source.problem),
    ]
