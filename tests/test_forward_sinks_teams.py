from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from messages import NOW, message, summary
from payloads import HOSTILE_TEXT, MESSAGES, hostile, of_hostiles, validated
from planted import CREDENTIALS
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, GONE, REJECTED, RETRY, Message
from lmdiag.forward.sinks.teams import make, payload
from lmdiag.report.jsonl import dumps

PATH = "/" + CREDENTIALS[4]


def checked(one: Message) -> Any:
    """Validate the card: the schema has no element that knows Markdown, and no mention."""
    found = payload(one)
    text = dumps(found)
    assert len(text.encode()) <= 28 * 1024
    assert len(text.encode("utf-16-le")) <= 28 * 1024
    return validated("teams", found)["attachments"][0]["content"]


def lines(card: Any) -> Iterator[str]:
    """Give the card's lines as they are read, joined blanks and all."""
    for element in card["body"]:
        for block in element.get("items", [element]):
            yield "".join(run["text"] for run in block["inlines"])


@pytest.mark.parametrize("kind", MESSAGES)
def test_all_kinds_are_within_the_limits(kind: str) -> None:
    card = checked(MESSAGES[kind])
    assert all("\n" not in line for line in lines(card))


@settings(max_examples=50, deadline=None)
@given(HOSTILE_TEXT)
def test_nothing_in_a_log_comes_to_life(text: str) -> None:
    for one in (hostile(text), of_hostiles(text)):
        for line in lines(checked(one)):
            assert "\n" not in line



def test_a_report_reads_well() -> None:
    card = checked(message())
    read = list(lines(card))
    assert read[:4] == [
        "CRITICAL  LMCache: layer-wise transfer does not support MLA models · start failed · server.log on node7",
        "ValueError: layerwise MLA connector is not supported yet",
        "Node: node7",
        "Where: Worker_TP0 (pid 4242), server.log:210-262",
    ]
    assert read[read.index("What to change") + 1 :][:2] == ["1. Set use_layerwise to false.", "- use_layerwise: true\xa0\xa0# LMCache YAML"]
    assert read[-1] == "The whole: lmdiag outbox show key-opened on node7"
    assert card["body"][0]["inlines"][0]["color"] == "Attention"
    assert [action["url"] for action in card["actions"]] == [message().incident.raised_at.url]  # type: ignore[union-attr]


def test_code_is_set_as_code() -> None:
    runs = [run for element in checked(message())["body"] for block in element.get("items", [element]) for run in block["inlines"]]
    assert {"type": "TextRun", "text": "lmdiag outbox show key-opened", "fontType": "Monospace"} in runs


def test_what_is_over_is_green() -> None:
    assert checked(message("resolved"))["body"][0]["inlines"][0]["color"] == "Good"


def test_a_link_from_elsewhere_is_no_action() -> None:
    site = message().incident.raised_at
    assert site
    for url in (None, "javascript:alert(1)", "http://evil.example/", "https://evil.example/ x"):
        one = message(change=lambda incident, url=url: incident._replace(raised_at=site._replace(url=url)))  # type: ignore[misc]
        assert "actions" not in checked(one)


def test_a_storm_is_a_list() -> None:
    read = list(lines(checked(summary(50, left_out=1000))))
    listed = len([line for line in read if line.startswith("- CRITICAL")])
    assert listed > 20
    assert read[-1].startswith(f"… and {1050 - listed:,} more incidents. The whole: lmdiag outbox show key-storm on node7")


@pytest.mark.parametrize(
    ("answer", "result", "after"),
    [
        (Answer(202), DELIVERED, None),
        (Answer(429, (("Retry-After", "17"),)), RETRY, 17.0),
        (Answer(400, body=b'{"error": {"code": "TriggerInputSchemaMismatch"}}'), REJECTED, None),
        (Answer(410), GONE, None),
        (Answer(502, body=b'{"error": {"code": "NoResponse"}}'), RETRY, None),
    ],
)
def test_answers(answer: Answer, result: str, after: float | None, tmp_path: Path) -> None:
    with Receiver([answer], own=(CREDENTIALS[4],)) as receiver:
        (tmp_path / "url").write_text(receiver.url + PATH)
        sink = make(SinkConfig("chat", "teams", url_file=str(tmp_path / "url")))
        outcome = sink.send([message()], NOW)
        assert (outcome.result, outcome.after) == (result, after)
        (taken,) = receiver.taken
        assert (taken.path, taken.headers["content-type"]) == (PATH, "application/json; charset=utf-8")
        validated("teams", json.loads(taken.body))
        assert CREDENTIALS[4] not in sink.preview([message()], NOW)
