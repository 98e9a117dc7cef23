"""Receivers that take what Alertmanager sends to its webhook receivers: they get the same from us, without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmdiag.config import SinkConfig
from lmdiag.diagnose.verdict import digest
from lmdiag.forward import alerts
from lmdiag.forward.data import rfc3339
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import Message
from lmdiag.forward.texts import is_resolved

NEVER = "0001-01-01T00:00:00Z"
"""Go's zero time: Alertmanager's `endsAt` while an alert fires."""


def make(config: SinkConfig) -> AlertmanagerWebhook:
    """Make the sink."""
    return AlertmanagerWebhook(config)


class AlertmanagerWebhook(HttpSink):
    """Posts each alert as a group of its own.

    Receivers find what they made of a group, a ticket say, by its key or its labels. Those must be the same when the
    incident gets worse and when it is resolved, which a group of whatever was waiting could not be.
    """

    def request(self, messages: Sequence[Message], now: float) -> Request:  # noqa: ARG002 (the messages have their times)
        """Write the message as the notification of its group. Raises CredentialError."""
        (message,) = messages
        body = notification(message, self.config.name, dict(self.config.labels))
        return self.make_request(body, (("Idempotency-Key", message.key),))


def notification(message: Message, receiver: str, extra: Mapping[str, str]) -> dict[str, object]:
    """Return the payload of version 4; `extra` are labels that are added.

    https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
    """
    labels, annotations = alerts.labels(message, extra), alerts.annotations(message)
    status = "resolved" if is_resolved(message) else "firing"
    return {
        "version": "4",
        "groupKey": f"lmdiag/{message.alert}",
        "truncatedAlerts": 0,
        "status": status,
        "receiver": receiver,
        # What lasts as long as the incident: its severity may change.
        "groupLabels": {name: value for name, value in labels.items() if name != "severity"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": rfc3339(message.since),
                "endsAt": rfc3339(max(message.at, message.since)) if is_resolved(message) else NEVER,
                "generatorURL": alerts.generator_url(message),
                # Not of the labels, as Alertmanager makes it: it would change with the severity.
                "fingerprint": digest(message.alert),
            }
        ],
    }
