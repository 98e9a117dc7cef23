"""The examples in docs/payloads of what the webhook sinks post, made from the sample incident; run it to write them."""

from __future__ import annotations

import json
from pathlib import Path

from messages import message

from lmdiag.forward.sinks.alertmanager_webhook import notification
from lmdiag.forward.sinks.webhook import cloud_event, event

EXAMPLES = {
    name: json.dumps(payload, indent=2, ensure_ascii=False) + "\n"
    for name, payload in (
        ("webhook", event(message())),
        ("webhook-cloudevents", cloud_event(message())),
        ("alertmanager-webhook", notification(message(), "pager", {"cluster": "eu-1"})),
    )
}
"""The text of each by its name."""

if __name__ == "__main__":
    for name, text in EXAMPLES.items():
        (Path(__file__).parent.parent / "docs" / "payloads" / f"{name}.example.json").write_text(text)
