"""Forwards what a single look found, as `lmdiag scan --forward` from cron does: sends it now, and leaves the rest waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from lmdiag.errors import ConfigError
from lmdiag.forward.forwarder import Forwarder, Told
from lmdiag.forward.message import GONE, REJECTED
from lmdiag.report.control import visible

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.forward.status import SinkStatus
    from lmdiag.model import Card, Incident

PATIENCE = 30.0
"""Seconds for which receivers are waited for."""
_OTHERS, _LOOK = 10.0, 0.1
"""Seconds for which another process, whose turn it is, is waited for; and between two looks."""


def check_sinks(config: WatchConfig) -> None:
    """Raise ConfigError if there is nowhere to forward to."""
    if not config.sinks:
        raise ConfigError(
            ("there is no sink to forward to: add a section [sinks.NAME] to the configuration; see lmdiag config show",)
        )


def forward_once(incidents: Sequence[Incident], config: WatchConfig, cards: Callable[[str], Card], err: TextIO) -> bool:
    """Forward incidents that nobody follows further, and say to `err` what became of them.

    The same incident is sent once, however often it is found. Returns whether nothing was refused; what a receiver
    does not take now stays in the outbox of the state directory, for the next call or a daemon. Raises StateError.
    """
    forwarder = Forwarder(config, cards, follow=False, timeout=5.0)
    try:
        return _forward(forwarder, incidents, config, err)
    finally:
        forwarder.close(1.0)


def _forward(forwarder: Forwarder, incidents: Sequence[Incident], config: WatchConfig, err: TextIO) -> bool:
    added = forwarder.put([Told(one, 1) for one in incidents])
    forwarder.tend()
    if not _has_turn(forwarder, config):
        left = ", which has not sent all of it yet" if forwarder.waits(sink.name for sink in config.sinks) else ""
        print(
            f"lmdiag: {_messages(added)} handed to the lmdiag that delivers from {visible(config.state)}{left}",
            file=err,
        )
        return True
    forwarder.start()
    forwarder.drain(PATIENCE)
    statuses = forwarder.statuses()
    for sink in statuses:
        print(f"lmdiag: {visible(_result(sink))}", file=err)
    return not any(count for sink in statuses for result, count in sink.results if result in (REJECTED, GONE))


def _has_turn(forwarder: Forwarder, config: WatchConfig) -> bool:
    """Wait for the turn, or until whoever has it has sent everything: it may be about to end without another look."""
    end = time.monotonic() + _OTHERS
    while not forwarder.is_ours():
        if time.monotonic() > end or not forwarder.waits(sink.name for sink in config.sinks):
            return False
        time.sleep(_LOOK)
    return True


def _result(sink: SinkStatus) -> str:
    counts = dict(sink.results)
    told = f"sink {sink.name}: {_messages(counts['delivered'])} delivered"
    if refused := counts[REJECTED] + counts[GONE]:
        told += f", {refused} refused (lmdiag outbox list)"
    if sink.waiting:
        told += f", {sink.waiting} waiting for lmdiag watch or the next --forward"
    return told + (f": {sink.problem}" if sink.problem else "")


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"
