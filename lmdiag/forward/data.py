"""What programs are told: the incident or the summary as JSON, the same at each receiver that reads it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lmdiag.report.jsonl import SCHEMA_VERSION, dumps, incident_object

if TYPE_CHECKING:
    from lmdiag.forward.message import Message


def data(message: Message) -> dict[str, object]:
    """Return the incident's object as `--format jsonl` writes it, or what a summary lists."""
    if not message.members:
        return incident_object(message.incident)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "summary_of_incidents",
        "id": message.alert,
        "instance": message.instance,
        "count": len(message.members) + message.left_out,
        "left_out": message.left_out,
        "incidents": [member._asdict() for member in message.members],
    }


def rfc3339(at: float) -> str:
    """Write unix seconds as RFC 3339 does, in UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record(message: Message) -> str:
    """Return the line of JSON that a file gets and a program reads, with its newline."""
    found = {
        "key": message.key,
        "at": rfc3339(message.at),
        "instance": message.instance,
        "data": data(message),
    }
    return dumps(found) + "\n"
