"""What Alertmanager sends: the payload of its webhook, version "4"."""

from __future__ import annotations

from typing import Literal

import msgspec

from lmdiag.errors import LmdiagError

_VERSION = "4"


class PayloadError(LmdiagError):
    """A body is no payload of Alertmanager's webhook. Says where, and nothing of its content."""


class Alert(msgspec.Struct, frozen=True):
    """One alert, as far as it is used."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]


class _Payload(msgspec.Struct):
    version: str
    alerts: list[Alert]


_DECODER = msgspec.json.Decoder(_Payload)


def alerts_of(body: bytes) -> list[Alert]:
    """Read the alerts of a payload (Alertmanager's documentation, "webhook_config"). Raises PayloadError."""
    try:
        payload = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        where = str(error) if isinstance(error, msgspec.ValidationError) else "it is no JSON"
        raise PayloadError(f"this is not what Alertmanager's webhook sends: {where}") from error
    if payload.version != _VERSION:
        raise PayloadError(f'the payload has not version "{_VERSION}", which is all that is understood')
    return payload.alerts
