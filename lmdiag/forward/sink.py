"""What all sinks have in common, and which module serves which kind."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from lmdiag.config import SinkConfig
from lmdiag.forward.message import Message, Outcome

MEMORY = ("alertmanager", "alertmanager-webhook", "pagerduty")
"""Services that hold an alert until they are told that it is over."""


class Sink(Protocol):
    """A receiver. It keeps no state: what was sent is in the outbox."""

    batch: int
    """How many messages one call of `send` takes at most."""

    def send(self, messages: Sequence[Message], now: float) -> Outcome:
        """Send the messages, in their order, and wait for the answer; `now` is unix time.

        Takes no longer than the sink's `timeout` (a program gets two seconds more to end), and raises nothing that a
        receiver or a file can cause: what goes wrong is in the outcome.
        """

    def preview(self, messages: Sequence[Message], now: float) -> str:
        """Write what `send` would send, as a person reads it, with secrets masked. Raises CredentialError."""


def open_sink(config: SinkConfig) -> Sink:
    """Make the sink that a configuration describes. Nothing is opened or read before something is sent."""
    module = import_module(f"lmdiag.forward.sinks.{config.type.replace('-', '_')}")
    sink: Sink = module.make(config)
    return sink
