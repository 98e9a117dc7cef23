"""Any receiver of webhooks: Standard Webhooks, or CloudEvents in JSON; signed if there is a secret."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from lmdiag.config import SinkConfig
from lmdiag.forward.data import data, rfc3339
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import Message
from lmdiag.forward.signature import secrets, signature
from lmdiag.report.jsonl import dumps


def make(config: SinkConfig) -> Webhook:
    """Make the sink."""
    return Webhook(config)


class Webhook(HttpSink):
    """Posts one message a time; the receiver knows a repeated one by its `webhook-id`."""

    def request(self, messages: Sequence[Message], now: float) -> Request:
        """Write the message, signed at `now` by each line of `secret-file`. Raises CredentialError."""
        (message,) = messages
        cloud = self.config.form == "cloudevents"
        content = dumps(cloud_event(message) if cloud else event(message)).encode()
        known = secrets(self.config.secret_file) if self.config.secret_file else ()
        headers = [("webhook-id", message.key), ("Idempotency-Key", message.key), ("webhook-timestamp", str(int(now)))]
        if cloud:
            headers.append(("Content-Type", "application/cloudevents+json; charset=utf-8"))
        if known:
            headers.append(("webhook-signature", signature(known, message.key, int(now), content)))
        return self.make_request(content, tuple(headers), secrets=known)


def event(message: Message) -> dict[str, object]:
    """Return the body of a Standard Webhook."""
    return {"type": f"lmdiag.{_what(message)}", "timestamp": rfc3339(message.at), "data": data(message)}


def cloud_event(message: Message) -> dict[str, object]:
    """Return the message as a CloudEvent in structured mode.

    CloudEvents 1.0.2 (https://github.com/cloudevents/spec), its JSON format and its HTTP binding.
    """
    return {
        "specversion": "1.0",
        "id": message.key,
        "source": f"/lmdiag/{quote(message.instance, safe='')}",
        "type": f"io.lmdiag.{_what(message)}",
        "subject": message.alert if message.members else message.incident.id,
        "time": rfc3339(message.at),
        "datacontenttype": "application/json",
        "data": data(message),
    }


def _what(message: Message) -> str:
    return "incidents" if message.members else f"incident.{message.incident.state}"
