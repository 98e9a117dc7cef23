"""The rows of an outbox."""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec

from lmdiag.forward.message import Message


class Delivery(NamedTuple):
    """One message for one sink. Times are unix seconds."""

    number: int
    """The order in which a sink gets its messages."""
    sink: str
    key: str
    incident: str
    status: str
    created_at: float
    attempts: int
    next_at: float
    done_at: float | None
    detail: str
    """Why the last attempt failed, or which summary it went into."""
    body: bytes | None
    """None for what was done long ago, or had to make room."""

    @property
    def message(self) -> Message | None:
        """What is sent; None if it is not kept, or if another version wrote what this one cannot read."""
        return decoded(self.body)


class Alert(NamedTuple):
    """What a sink was told of an incident and has not been told to be over."""

    sink: str
    incident: str
    alert: str
    since: float
    told_at: float
    severity: str
    looping: bool
    sent: bool
    """Whether the service knows of it: by a report that was delivered, or by a summary that stands for one."""
    resolved: bool
    """Whether its end waits to be delivered."""
    body: bytes

    @property
    def message(self) -> Message | None:
        """The last message of it; None if another version wrote what this one cannot read."""
        return decoded(self.body)


class Count(NamedTuple):
    """How much of a sink's there is."""

    waiting: int = 0
    dead: int = 0
    oldest_at: float | None = None
    """When the oldest that waits was put there."""


def encoded(message: Message) -> bytes:
    """Write a message for the outbox. The card's text is not kept: it is in the pack."""
    plain = message._replace(card=None)
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:  # bytes of a path that are no UTF-8 are lone surrogates here
        return json.dumps(msgspec.to_builtins(plain), ensure_ascii=False).encode("utf-8", "replace")


def decoded(body: bytes | None) -> Message | None:
    """Read a message; None for none, and for what another version wrote and this one cannot read."""
    try:
        return None if body is None else msgspec.json.decode(body, type=Message)
    except msgspec.MsgspecError:
        return None
