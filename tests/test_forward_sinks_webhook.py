"""The sink `webhook`: Standard Webhooks, signed, and CloudEvents."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]
from messages import NOW, message, summary
from planted import CREDENTIALS, assert_clean
from receiver import Receiver
from referencing import Registry, Resource
from report_samples import HIDDEN, REQUEST, UNMATCHED, with_message
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, RETRY, Message
from lmdiag.forward.sink import open_sink
from lmdiag.forward.sinks.webhook import Webhook, cloud_event, event
from lmdiag.report.jsonl import dumps, incident_object

DOCS = Path(__file__).parent.parent / "docs"
PAYLOADS = DOCS / "payloads"
INCIDENT: Resource[Any] = Resource.from_contents(json.loads((DOCS / "incident.schema.json").read_text()))
SCHEMA = Draft202012Validator(
    json.loads((PAYLOADS / "webhook.schema.json").read_text()),
    registry=Registry().with_resource("../incident.schema.json", INCIDENT),
)
OLD, NEW = CREDENTIALS[2], f"whsec_{b64encode(bytes(range(32))).decode()}"
MESSAGES = [
    *(message(state) for state in ("opened", "repeated", "resolved")),
    *(message(change=lambda _, one=one: one) for one in (HIDDEN, REQUEST, UNMATCHED)),  # type: ignore[misc]
    message(change=lambda _: with_message("\x00\x1b[31m\ud800\u202e</script>")),
    summary(),
    summary(1, 30),
]
FORMS: list[Callable[[Message], dict[str, object]]] = [event, cloud_event]


def config(**settings: Any) -> SinkConfig:
    return SinkConfig(name="x", type="webhook", timeout=20, **settings)


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.key)
def test_each_message_is_what_the_schema_says(one: Message, form: Callable[[Message], dict[str, object]]) -> None:
    SCHEMA.validate(json.loads(dumps(form(one))))



@pytest.mark.parametrize(
    ("form", "change"),
    [
        *((form, {"data": {}}) for form in FORMS),
        *((form, {"data": {"schema_version": 1, "kind": "summary_of_incidents"}}) for form in FORMS),
        *((form, {"more": 1}) for form in FORMS),
        (event, {"type": "lmdiag.incidents"}),
        (event, {"type": "io.lmdiag.incident.opened"}),
        (event, {"timestamp": "yesterday"}),
        (cloud_event, {"type": "io.lmdiag.incidents"}),
        (cloud_event, {"id": ""}),
        (cloud_event, {"source": "/lmdiag/no de"}),
        (cloud_event, {"subject": ""}),
        (cloud_event, {"time": "2025-12-03"}),
    ],
)
def test_the_schema_refuses_what_is_not_sent(
    form: Callable[[Message], dict[str, object]], change: dict[str, object]
) -> None:
    with pytest.raises(ValidationError):
        SCHEMA.validate(json.loads(dumps({**form(message()), **change})))


@pytest.mark.parametrize("state", ["opened", "repeated", "resolved"])
def test_the_body_holds_the_incident_as_jsonl_writes_it(state: str) -> None:
    with Receiver() as receiver:
        outcome = open_sink(config(url=receiver.url)).send([message(state)], NOW + 90.9)
    assert outcome.result == DELIVERED
    (taken,) = receiver.taken
    assert taken.json == {
        "type": f"lmdiag.incident.{state}",
        "timestamp": "2025-12-03T00:00:00.000Z",
        "data": json.loads(dumps(incident_object(message(state).incident))),
    }
    assert taken.headers["content-type"] == "application/json"
    assert taken.headers["webhook-id"] == taken.headers["idempotency-key"] == f"key-{state}"
    assert taken.headers["webhook-timestamp"] == str(int(NOW) + 90), "the attempt's, not the report's"
    assert "webhook-signature" not in taken.headers


def test_a_summary_has_a_type_of_its_own() -> None:
    found = event(summary(2, 1))
    assert found["type"] == "lmdiag.incidents"
    data = found["data"]
    assert isinstance(data, dict)
    assert (data["id"], data["count"], data["left_out"], len(data["incidents"])) == ("storm-1", 3, 1, 2)


@pytest.mark.parametrize("form", ["standard", "cloudevents"])
@pytest.mark.parametrize("secret", [OLD, NEW])
def test_the_signature_is_verified_by_the_library(tmp_path: Path, form: str, secret: str) -> None:
    path = tmp_path / "secrets"
    path.write_text(f"{OLD}\n{NEW}\n")
    with Receiver() as receiver:
        open_sink(config(url=receiver.url, secret_file=str(path), form=form)).send([message()], time.time())
    (taken,) = receiver.taken
    assert Verifier(secret).verify(taken.body, dict(taken.headers)) == taken.json
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(taken.body.replace(b"critical", b"warning"), dict(taken.headers))


def test_an_attempt_of_yesterday_does_not_verify(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(OLD)
    request = Webhook(config(url="http://127.0.0.1:1", secret_file=str(path))).request([message()], NOW)
    with pytest.raises(WebhookVerificationError, match="too old"):
        Verifier(OLD).verify(request.body, dict(request.headers))


def test_each_attempt_has_its_own_time_and_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(OLD)
    sink = Webhook(config(url="http://127.0.0.1:1", secret_file=str(path)))
    first, second = (sink.request([message()], NOW + later) for later in (0, 5))
    assert first.body == second.body
    different = {name for name, value in first.headers if (name, value) not in second.headers}
    assert different == {"webhook-timestamp", "webhook-signature"}


def test_a_cloud_event_in_structured_mode() -> None:
    with Receiver() as receiver:
        sink = open_sink(config(url=receiver.url, form="cloudevents"))
        sink.send([message("resolved")._replace(instance="node 7/é")], NOW)
    (taken,) = receiver.taken
    assert taken.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert taken.headers["webhook-id"] == "key-resolved"
    found = taken.json
    assert found.pop("data") == json.loads(dumps(incident_object(message("resolved").incident)))
    assert found == {
        "specversion": "1.0",
        "id": "key-resolved",
        "source": "/lmdiag/node%207%2F%C3%A9",
        "type": "io.lmdiag.incident.resolved",
        "subject": "a1",
        "time": "2025-12-03T00:00:00.000Z",
        "datacontenttype": "application/json",
    }
    assert unquote(found["source"]) == "/lmdiag/node 7/é"


@pytest.mark.parametrize("one", [message(), summary()], ids=["incident", "summary"])
def test_a_cloud_event_keeps_the_rules_of_its_specification(one: Message) -> None:
    """Those of CloudEvents 1.0, "Context Attributes", that its JSON schema states or leaves to the text."""
    found = cloud_event(one)
    assert {"id", "source", "specversion", "type"} <= set(found)
    for name, value in found.items():
        assert name.isascii()
        assert name.isalnum()
        assert name == name.lower()
        assert name == "data" or (isinstance(value, str) and value)
    assert isinstance(found["data"], dict)


def test_a_secret_that_is_none_is_told_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("PLANTED")
    outcome = open_sink(config(url="http://127.0.0.1:1", secret_file=str(path))).send([message()], NOW)
    assert outcome.result == RETRY
    assert outcome.detail.startswith(f"secret-file: {path}: secret 1 must be `whsec_`")
    assert "PLANTED" not in outcome.detail


def test_the_preview_shows_all_but_the_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(OLD)
    shown = open_sink(config(url="https://hooks.example.org/x", secret_file=str(path))).preview([message()], NOW)
    assert shown.startswith(
        "POST https://hooks.example.org/x\nContent-Type: application/json\nwebhook-id: key-opened\n"
    )
    assert "\nwebhook-signature: v1," in shown
    assert_clean(shown, "the preview")
