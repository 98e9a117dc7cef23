"""What is posted to Alertmanager, against the rules by which it refuses alerts; test_alertmanager_real asks itself."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]
from messages import NOW, message
from planted import CREDENTIALS
from receiver import Answer, Receiver
from report_samples import with_message

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, REJECTED, RETRY, Message
from lmdiag.forward.sink import open_sink
from lmdiag.forward.sinks.alertmanager import Alertmanager, make

PAYLOADS = Path(__file__).parent.parent / "docs" / "payloads"
SCHEMA = Draft202012Validator(json.loads((PAYLOADS / "alertmanager.schema.json").read_text()))
CONFIG = SinkConfig(name="fleet", type="alertmanager", url="http://127.0.0.1:9093")
HOSTILE = st.text(max_size=200) | st.text(alphabet="\x00\x1b\ud800\udfff\x85\u2028\u202e\n{}<>&\"'\\", max_size=20)


def body(*messages: Message, now: float = NOW, config: SinkConfig = CONFIG) -> list[Any]:
    alerts: list[Any] = json.loads(make(config).request(messages, now).body)
    return alerts


def check(alerts: list[Any]) -> None:
    """Hold the alerts against the schema, and against what it cannot say."""
    SCHEMA.validate(alerts)
    for alert in alerts:
        assert datetime.fromisoformat(alert["startsAt"]) <= datetime.fromisoformat(alert["endsAt"])
    identities = [tuple(sorted(alert["labels"].items())) for alert in alerts]
    assert len(set(identities)) == len(identities)
    json.dumps(alerts, ensure_ascii=False).encode()  # no lone surrogate is left


def test_an_open_incident_fires_for_as_long_as_it_is_held() -> None:
    (alert,) = body(message(), config=CONFIG._replace(hold=600))
    assert (alert["startsAt"], alert["endsAt"]) == ("2025-12-02T23:59:00.000Z", "2025-12-03T00:10:00.000Z")
    assert alert["generatorURL"].startswith("https://github.com/vllm-project/vllm/blob/v0.26.0/")


def test_one_that_is_over_ends_now() -> None:
    (alert,) = body(message("resolved"), now=NOW + 1.25)
    assert (alert["startsAt"], alert["endsAt"]) == ("2025-12-02T23:59:00.000Z", "2025-12-03T00:00:01.250Z")


@pytest.mark.parametrize("state", ["opened", "repeated", "resolved"])
def test_a_clock_that_was_set_back_makes_no_end_before_the_start(state: str) -> None:
    check(body(message(state), now=NOW - 86400))


def test_of_an_alert_that_was_told_several_times_the_last_word_counts() -> None:
    (alert,) = body(message("opened"), message("repeated"), message("resolved"))
    assert alert["endsAt"] == "2025-12-03T00:00:00.000Z"
    (alert,) = body(message("resolved"), message("opened"))
    assert alert["endsAt"] == "2025-12-03T01:00:00.000Z"


def test_the_last_word_is_another_one_for_each_node() -> None:
    alerts = body(message(), message("resolved")._replace(instance="node8"))
    assert [alert["endsAt"] > "2025-12-03T00:30" for alert in alerts] == [True, False]


@pytest.mark.parametrize(
    ("url", "posted"),
    [
        ("http://127.0.0.1:9093", "http://127.0.0.1:9093/api/v2/alerts"),
        ("https://am.example/", "https://am.example/api/v2/alerts"),
        ("https://mon.example/team/am/", "https://mon.example/team/am/api/v2/alerts"),
        ("https://mon.example/am?tenant=a", "https://mon.example/am/api/v2/alerts?tenant=a"),
    ],
)
def test_the_url_may_have_a_prefix(url: str, posted: str) -> None:
    assert make(CONFIG._replace(url=url)).request([message()], NOW).url == posted


def test_a_secret_url_is_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"https://am.example/{CREDENTIALS[4]}\n")
    shown = make(CONFIG._replace(url="", url_file=str(secret))).preview([message()], NOW)
    assert "https://am.example/" in shown
    assert CREDENTIALS[4] not in shown


def test_it_is_posted_as_json_and_taken(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(CREDENTIALS[0])
    with Receiver(own=CREDENTIALS[:1]) as receiver:
        sink = open_sink(CONFIG._replace(url=receiver.url + "/am/", token_file=str(token)))
        assert isinstance(sink, Alertmanager)
        assert sink.batch == 64
        outcome = sink.send([message(), message()._replace(instance="node8")], NOW)
    assert outcome.result == DELIVERED
    (taken,) = receiver.taken
    assert (taken.method, taken.path) == ("POST", "/am/api/v2/alerts")
    assert taken.headers["content-type"] == "application/json"
    assert taken.headers["authorization"] == f"Bearer {CREDENTIALS[0]}"
    check(taken.json)


@pytest.mark.parametrize(("status", "result"), [(400, REJECTED), (422, REJECTED), (500, RETRY), (503, RETRY)])
def test_what_a_refusal_means(status: int, result: str) -> None:
    with Receiver([Answer(status, body=b'{"code":601,"message":"no"}')]) as receiver:
        outcome = make(CONFIG._replace(url=receiver.url)).send([message()], NOW)
    assert outcome.result == result
    assert str(status) in outcome.detail


@given(
    text=HOSTILE,
    state=st.sampled_from(["opened", "repeated", "resolved"]),
    now=st.floats(0, 4e9),
    since=st.floats(0, 4e9),
)
def test_nothing_that_a_log_says_is_refused(text: str, state: str, now: float, since: float) -> None:
    incident = with_message(text)._replace(state=state, fingerprint=text[:20] or "f")
    site = incident.raised_at._replace(url=f"https://{text}") if incident.raised_at else None
    report = message(change=lambda _: incident._replace(raised_at=site))._replace(instance=text or "node", since=since)
    check(body(report, message(), now=now))


def test_a_message_of_two_megabytes_makes_a_small_alert() -> None:
    request = make(CONFIG).request([message(change=lambda _: with_message("x\x1b[1m\ud800é" * 300_000))], NOW)
    assert len(request.body) < 40_000
    check(json.loads(request.body))



@pytest.mark.parametrize("label", [{"a-b": "1"}, {"team": 1}, {"team": ""}, {"team": "a\x00"}, {"severity": "bad"}])
def test_the_schema_refuses_labels_that_alertmanager_would(label: dict[str, object]) -> None:
    (good,) = body(message())
    with pytest.raises(ValidationError):
        SCHEMA.validate([{**good, "labels": {**good["labels"], **label}}])


@pytest.mark.parametrize("part", [{"labels": {}}, {"startsAt": "yesterday"}, {"generatorURL": "/x"}, {"status": "x"}])
def test_the_schema_refuses_what_is_no_alert(part: dict[str, object]) -> None:
    (good,) = body(message())
    with pytest.raises(ValidationError):
        SCHEMA.validate([{**good, **part}])
