from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from messages import NOW, message, summary
from payloads import HOSTILE_TEXT, MESSAGES, hostile, of_hostiles, validated
from planted import CREDENTIALS
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, REJECTED, RETRY, Message
from lmdiag.forward.sinks.pagerduty import event, make
from lmdiag.report.jsonl import dumps, incident_object

KEY = CREDENTIALS[3]


def checked(one: Message) -> Any:
    """Validate the event and its size."""
    got = validated("pagerduty", event(one, "R" * 32))
    assert len(dumps(event(one, "R" * 32)).encode()) <= 512_000
    assert "\n" not in got["payload"]["summary"]
    return got


@pytest.mark.parametrize("kind", MESSAGES)
def test_all_kinds_are_within_the_limits(kind: str) -> None:
    details = checked(MESSAGES[kind])["payload"]["custom_details"]
    assert f"lmdiag outbox show {MESSAGES[kind].key}" in details["whole"]
    assert "data" in details


@settings(max_examples=40, deadline=None)
@given(HOSTILE_TEXT)
def test_hostile_incidents_are_within_the_limits(text: str) -> None:
    checked(hostile(text))
    checked(of_hostiles(text))



@pytest.mark.parametrize(("kind", "action"), [("opened", "trigger"), ("repeated", "trigger"), ("resolved", "resolve"), ("summary", "trigger"), ("storm over", "resolve")])
def test_an_alert_keeps_its_key_until_it_is_resolved(kind: str, action: str) -> None:
    got = checked(MESSAGES[kind])
    assert got["event_action"] == action
    assert got["dedup_key"] == MESSAGES[kind].alert


def test_a_long_key_is_cut() -> None:
    assert len(checked(message()._replace(alert="k" * 300))["dedup_key"]) == 255


def test_a_report_reads_well() -> None:
    got = checked(message())
    assert got["client"] == "lmdiag"
    details = got["payload"].pop("custom_details")
    assert got["payload"] == {
        "summary": "CRITICAL  LMCache: layer-wise transfer does not support MLA models · start failed · server.log on node7",
        "source": "node7", "severity": "critical", "timestamp": "2025-12-03T00:00:00.000Z", "component": "server.log",
        "group": "deepseek-ai/DeepSeek-V3", "class": "lmcache-mla-layerwise",
    }  # fmt: skip
    assert details["data"] == incident_object(message().incident)
    assert details["advice"] == ["Set `use_layerwise` to `false`.", "Serve without LMCache."]
    assert details["facts"]["Card"] == "lmcache-mla-layerwise"
    assert details["report"].startswith("CRITICAL  start failed")
    assert [link["href"] for link in got["links"]][1] == "https://github.com/LMCache/LMCache/issues/1234"


def test_a_large_incident_is_shortened_and_keeps_its_keys() -> None:
    data = checked(MESSAGES["hostile"])["payload"]["custom_details"]["data"]
    assert list(data) == list(incident_object(message().incident))
    assert "characters left out" in data["root"]["message"]


def test_a_storm_lists_its_members() -> None:
    data = checked(summary(12, left_out=30))["payload"]["custom_details"]["data"]
    assert (data["kind"], data["count"], len(data["incidents"])) == ("summary_of_incidents", 42, 12)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Answer(202, body=b'{"status": "success", "dedup_key": "alert-1"}'), DELIVERED),
        (Answer(400, body=b'{"status": "invalid event"}'), REJECTED),
        (Answer(429), RETRY),
        (Answer(500), RETRY),
    ],
)
def test_answers(answer: Answer, result: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY + "\n")
    with Receiver([answer], own=(KEY,)) as receiver:
        sink = make(SinkConfig("pager", "pagerduty", url=receiver.url + "/v2/enqueue", routing_key_file=str(tmp_path / "key")))
        assert sink.send([message()], NOW).result == result
        (taken,) = receiver.taken
        assert taken.path == "/v2/enqueue"
        assert validated("pagerduty", taken.json)["routing_key"] == KEY


def test_the_key_goes_to_pagerduty_and_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    sink = make(SinkConfig("pager", "pagerduty", routing_key_file=str(tmp_path / "key")))
    assert sink.request([message()], NOW).url == "https://events.pagerduty.com/v2/enqueue"
    assert KEY in sink.request([message()], NOW).secrets
    assert KEY not in sink.preview([message()], NOW)


def test_a_key_that_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    outcome = make(SinkConfig("pager", "pagerduty", routing_key_file=str(tmp_path / "none"))).send([message()], NOW)
    assert outcome.result == RETRY
    assert "routing-key-file" in outcome.detail
