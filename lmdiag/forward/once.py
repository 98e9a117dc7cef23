"""Forwards what a single look found, as `lmdiag scan --forward` from cron does: sends it now, and leaves the rest waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from lmdiag.errors import ConfigError
from lmdiag.forward.forwarder import Forwarder, Told, instance_name
from lmdiag.forward.message import GONE, REJECTED
from lmdiag.report.control import visible

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.forward.status import SinkStatus
    from lmdiag.model import Card, Incident

PATIENCE = 30.0
"""Seconds for which receivers are waited for."""


def check_sinks(config: WatchConfig) -> None:
    """Raise ConfigError if there is nowhere to forward to."""
    if not config.sinks:
        raise ConfigError(
            ("there is no sink to forward to: add a section [sinks.NAME] to the configuration; see lmdiag config show",)
        )


def forward_once(
    incidents: Sequence[Incident],
    config: WatchConfig,
    cards: Callable[[str], Card],
    clock: Callable[[], float],
    err: TextIO,
) -> bool:
    """Forward incidents that nobody follows further, and say to `err` what became of them.

    The same incident is sent once, however often it is found. Returns whether nothing was refused; what a receiver
    does not take now stays in the outbox of the state directory, for the next call or a daemon. Raises StateError.
    """
    forwarder = Forwarder(
        config.state, config.sinks, instance_name(config), cards, clock, age=config.outbox_age, size=config.outbox_size
    )
    added = forwarder.put([Told(one, clock(), 1) for one in incidents], follow=False)
    if not forwarder.is_ours():
        forwarder.close(0.0)
        print(f"lmdiag: {_messages(added)} handed to the lmdiag that delivers from {visible(config.state)}", file=err)
        return True
    forwarder.start()
    forwarder.drain(PATIENCE)
    statuses = forwarder.statuses()
    forwarder.close(1.0)
    for sink in statuses:
        print(f"lmdiag: {visible(_result(sink))}", file=err)
    return not any(count for sink in statuses for result, count in sink.results if result in (REJECTED, GONE))


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
