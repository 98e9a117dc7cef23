"""The examples in docs/payloads of what the sinks send, made from the sample incident; `make docs` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from messages import NOW, message

from lmdiag.config import SinkConfig
from lmdiag.forward.data import record
from lmdiag.forward.message import Message
from lmdiag.forward.sinks import alertmanager, alertmanager_webhook, discord, pagerduty, slack, teams, webhook

LABELS = (("cluster", "eu-1"),)
ALERTMANAGER = SinkConfig("fleet", "alertmanager", url="http://alertmanager:9093", labels=LABELS)
WRITERS: dict[str, Callable[[Message], object]] = {
    "alertmanager": lambda one: json.loads(alertmanager.make(ALERTMANAGER).request([one], NOW).body),
    "alertmanager-webhook": lambda one: alertmanager_webhook.notification(one, "pager", dict(LABELS)),
    "discord": discord.payload,
    "file": lambda one: json.loads(record(one)),
    "pagerduty": lambda one: pagerduty.event(one, "R" * 32),
    "slack": slack.payload,
    "teams": teams.payload,
    "webhook": webhook.event,
    "webhook-cloudevents": webhook.cloud_event,
}
"""What makes each example."""


def path(name: str) -> Path:
    """Return where an example is."""
    return Path(__file__).parent.parent / "docs" / "payloads" / f"{name}.example.json"


def example(name: str) -> Any:
    """Return what an example holds."""
    return json.loads(path(name).read_text())


if __name__ == "__main__":
    for name, write in WRITERS.items():
        path(name).write_text(json.dumps(write(message()), indent=2, ensure_ascii=False) + "\n")
