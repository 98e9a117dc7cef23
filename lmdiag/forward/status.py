"""How a sink is doing, as `lmdiag status` and Prometheus are told."""

from __future__ import annotations

from typing import NamedTuple


class SinkStatus(NamedTuple):
    """One sink, as it is now."""

    name: str
    type: str
    waiting: int = 0
    dead: int = 0
    oldest_at: float | None = None
    """When the oldest message that waits was put there, in unix seconds."""
    problem: str = ""
    """Why the last attempt failed."""
    results: tuple[tuple[str, int], ...] = ()
    """(result, how many messages), since the start."""
    lost: tuple[tuple[str, int], ...] = ()
    """(status, how many messages) that were dropped because the outbox is bounded."""
