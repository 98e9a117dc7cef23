"""PagerDuty, by its Events API v2: an alert that is triggered, triggered again, and resolved under one key.

https://developer.pagerduty.com/docs/events-api-v2-overview; the schema is that of
https://github.com/PagerDuty/api-schema, reference/events-v2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmdiag.config import SinkConfig
from lmdiag.forward.credentials import credential_line
from lmdiag.forward.data import data, rfc3339
from lmdiag.forward.http import Request
from lmdiag.forward.http_sink import HttpSink
from lmdiag.forward.message import Message
from lmdiag.forward.texts import facts, headline, is_resolved, node, plain
from lmdiag.report.control import clip, one_line, shorten, visible
from lmdiag.report.jsonl import dumps
from lmdiag.report.raise_site import PROJECTS

URL = "https://events.pagerduty.com/v2/enqueue"
SUMMARY, DEDUP_KEY, SIZE = 1024, 255, 512 * 1000
"""The service's limits: characters of the summary and of the key, and bytes of the whole."""
_NAME = 255
_REPORT = 8000
_LINKS = 10
_STEPS = ((20_000, 200), (2000, 50), (400, 10), (100, 3))
"""How the data are shortened, step by step: (characters of a text, entries of a list)."""
_LINK = re.compile(r"https?://[^\s<>]+\Z")

Json = dict[str, object]


def make(config: SinkConfig) -> PagerDutySink:
    """Make the sink of a `[sinks.NAME]` with `type = "pagerduty"`."""
    return PagerDutySink(config)


class PagerDutySink(HttpSink):
    """A service of PagerDuty's; it answers 202."""

    def request(self, messages: Sequence[Message], now: float) -> Request:  # noqa: ARG002 (the messages have their times)
        """Write the request; see `HttpSink.request`."""
        (message,) = messages
        key = credential_line(self.config.routing_key_file, "routing-key-file")
        return self.make_request(event(message, key), secrets=(key,))

    def url(self) -> str:
        """Give the configured URL (the one for the EU, say), or else the service's own."""
        return super().url() if self.config.url or self.config.url_file else URL


def event(message: Message, routing_key: str) -> Json:
    """Write the event of a message: `trigger`, which also updates an open alert, or `resolve`."""
    incident = message.incident
    root = incident.root
    found: Json = {
        "routing_key": routing_key,
        "event_action": "resolve" if is_resolved(message) else "trigger",
        "dedup_key": message.alert[:DEDUP_KEY],
        "client": "lmdiag",
        "payload": {
            "summary": headline(message, SUMMARY),
            "source": node(message) or "unknown",
            "severity": incident.severity,
            "timestamp": rfc3339(message.at),
            "component": clip(one_line(incident.source), _NAME),
            "group": clip(one_line(incident.facts.model or "vLLM"), _NAME),
            "class": clip(one_line(incident.card or (root and root.type) or incident.outcome), _NAME),
        },
        "links": _links(message),
    }
    return _with_details(found, message)


def _with_details(found: Json, message: Message) -> Json:
    """Add the details, with as much of the data as the event's size allows."""
    details: Json = {
        "report": plain(message, _REPORT),
        "advice": [shorten(visible(advice.text), 2000) for advice in message.incident.advice[:10]],
        "facts": dict(facts(message)),
        "whole": f"lmdiag outbox show {message.key} on {node(message)}",
    }
    payload = found["payload"]
    assert isinstance(payload, dict)
    for text, entries in _STEPS:
        found_data = _shortened(data(message), text, entries)
        whole = found | {"payload": payload | {"custom_details": details | {"data": found_data}}}
        if len(dumps(whole).encode()) <= SIZE:
            return whole
    return found | {"payload": payload | {"custom_details": details}}


def _shortened(value: object, text: int, entries: int) -> object:
    if isinstance(value, str):
        return shorten(visible(value), text)
    if isinstance(value, list):
        return [_shortened(one, text, entries) for one in value[:entries]]
    if isinstance(value, dict):
        # All keys of our own stay: no object of a report has as many.
        kept = list(value.items())[: max(entries, 40)]
        return {clip(one_line(key), _NAME): _shortened(one, text, entries) for key, one in kept}
    return value


def _links(message: Message) -> list[Json]:
    """Link the source and what the card refers to."""
    site = message.incident.raised_at
    name = PROJECTS.get(site.project, site.project) if site else ""
    pairs = [(site.url, f"Where {name} raises it")] if site and site.url else []
    pairs += [(url, "Reference") for url in (message.card.references if message.card else ())]
    return [{"href": url, "text": text} for url, text in pairs[:_LINKS] if _LINK.match(url)]
