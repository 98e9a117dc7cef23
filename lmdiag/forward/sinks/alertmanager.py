"""Posts alerts to Alertmanager's API v2: incidents that are open fire, those that are over are ended."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from lmdiag.config import SinkConfig
from lmdiag.forward import alerts
from lmdiag.forward.data import rfc3339
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import Message
from lmdiag.forward.texts import is_resolved

_PATH = "/api/v2/alerts"


def make(config: SinkConfig) -> Alertmanager:
    """Make the sink."""
    return Alertmanager(config)


class Alertmanager(HttpSink):
    """One Alertmanager. What was told of an alert is replaced by what is told later, so that a repeated post does no harm."""

    batch = 64

    def request(self, messages: Sequence[Message], now: float) -> Request:
        """Write the newest state of each alert of the messages. Raises CredentialError."""
        newest = dict(self._alert(message, now) for message in messages)
        parts = urlsplit(self.url())
        return self.make_request(
            list(newest.values()), url=parts._replace(path=parts.path.rstrip("/") + _PATH).geturl()
        )

    def _alert(self, message: Message, now: float) -> tuple[tuple[tuple[str, str], ...], dict[str, object]]:
        """Return what tells the alert from others, and the alert, whose end is never before its start: that would be refused.

        https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml (postableAlert)
        """
        labels = alerts.labels(message, dict(self.config.labels))
        end = max(now, message.since) + (0 if is_resolved(message) else self.config.hold)
        alert: dict[str, object] = {
            "labels": labels,
            "annotations": alerts.annotations(message),
            "startsAt": rfc3339(message.since),
            "endsAt": rfc3339(end),
        }
        if url := alerts.generator_url(message):
            alert["generatorURL"] = url
        return tuple(sorted(labels.items())), alert
