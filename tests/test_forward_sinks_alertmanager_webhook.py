"""The sink `alertmanager-webhook`: what Alertmanager would send to a webhook receiver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]
from messages import NOW, message
from planted import CREDENTIALS
from receiver import Receiver
from referencing import Registry, Resource
from report_samples import HIDDEN, REQUEST, UNMATCHED, with_message

from lmdiag.config import SinkConfig
from lmdiag.forward import alerts
from lmdiag.forward.message import DELIVERED, Message
from lmdiag.forward.sink import open_sink
from lmdiag.forward.sinks.alertmanager_webhook import NEVER, notification
from lmdiag.report.jsonl import dumps

PAYLOADS = Path(__file__).parent.parent / "docs" / "payloads"
ALERTS: Resource[Any] = Resource.from_contents(json.loads((PAYLOADS / "alertmanager.schema.json").read_text()))
SCHEMA = Draft202012Validator(
    json.loads((PAYLOADS / "alertmanager-webhook.schema.json").read_text()),
    registry=Registry().with_resource("alertmanager.schema.json", ALERTS),
)
EXTRA = {"cluster": "eu-1"}


def payload(one: Message) -> Any:
    return json.loads(dumps(notification(one, "pager", EXTRA)))


@pytest.mark.parametrize(
    "one",
    [
        *(message(state) for state in ("opened", "repeated", "resolved")),
        *(message(change=lambda _, one=one: one) for one in (HIDDEN, REQUEST, UNMATCHED)),  # type: ignore[misc]
        message(change=lambda _: with_message("\x00\x1b[31m\ud800\u202e" + "x" * 9000)),
    ],
    ids=lambda one: one.key,
)
def test_each_message_is_what_the_schema_says(one: Message) -> None:
    SCHEMA.validate(payload(one))



@pytest.mark.parametrize(
    "change",
    [
        {"version": "3"},
        {"status": "over"},
        {"alerts": []},
        {"alerts": [{}]},
        {"groupLabels": {}},
        {"groupLabels": {**notification(message(), "pager", {})["commonLabels"]}},  # type: ignore[dict-item]
        {"commonLabels": {"a-b": "x"}},
        {"externalURL": None},
        {"more": 1},
    ],
)
def test_the_schema_refuses_what_is_not_sent(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SCHEMA.validate({**payload(message()), **change})


@pytest.mark.parametrize("change", [{"endsAt": "2025-12-03T00:00:00Z"}, {"status": "resolved"}, {"fingerprint": "x"}])
def test_the_schema_refuses_what_is_no_alert(change: dict[str, object]) -> None:
    good = payload(message())
    with pytest.raises(ValidationError):
        SCHEMA.validate({**good, "alerts": [{**good["alerts"][0], **change}]})


def test_an_alert_fires() -> None:
    found = payload(message())
    (alert,) = found["alerts"]
    assert (found["version"], found["status"], found["receiver"]) == ("4", "firing", "pager")
    assert (alert["status"], alert["startsAt"], alert["endsAt"]) == ("firing", "2025-12-02T23:59:00.000Z", NEVER)
    assert alert["labels"] == found["commonLabels"] == alerts.labels(message(), EXTRA)
    assert alert["annotations"] == found["commonAnnotations"] == alerts.annotations(message())
    assert alert["generatorURL"] == alerts.generator_url(message()) != ""


def test_it_is_resolved() -> None:
    found = payload(message("resolved"))
    (alert,) = found["alerts"]
    assert (found["status"], alert["status"], alert["endsAt"]) == ("resolved", "resolved", "2025-12-03T00:00:00.000Z")


def test_it_never_ends_before_it_began() -> None:
    """The clock may have been set back."""
    (alert,) = payload(message("resolved")._replace(since=NOW + 10))["alerts"]
    assert alert["startsAt"] == alert["endsAt"]


@pytest.mark.parametrize("later", ["repeated", "resolved"])
def test_a_receiver_knows_the_incident_again_although_it_got_worse(later: str) -> None:
    first = payload(message(change=lambda incident: incident._replace(severity="error")))
    second = payload(message(later))
    assert first["commonLabels"]["severity"] != second["commonLabels"]["severity"]
    assert first["groupKey"] == second["groupKey"]
    assert first["groupLabels"] == second["groupLabels"]
    assert first["alerts"][0]["fingerprint"] == second["alerts"][0]["fingerprint"]


def test_two_incidents_are_two_groups() -> None:
    one, other = payload(message()), payload(message()._replace(alert="alert-2"))
    assert one["groupKey"] != other["groupKey"]
    assert one["alerts"][0]["fingerprint"] != other["alerts"][0]["fingerprint"]


def test_it_is_posted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    token = tmp_path / "token"
    token.write_text(CREDENTIALS[0])
    with Receiver(own=CREDENTIALS[:1]) as receiver:
        sink = open_sink(
            SinkConfig(
                name="pager",
                type="alertmanager-webhook",
                url=f"{receiver.url}/alerts",
                token_file=str(token),
                labels=tuple(EXTRA.items()),
            )
        )
        outcome = sink.send([message()], NOW)
    assert (outcome.result, sink.batch) == (DELIVERED, 1)
    (taken,) = receiver.taken
    assert (taken.path, taken.json) == ("/alerts", payload(message()))
    assert taken.headers["idempotency-key"] == "key-opened"
    assert taken.headers["authorization"] == f"Bearer {CREDENTIALS[0]}"
