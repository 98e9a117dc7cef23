from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from messages import NOW, message, summary
from payloads import MESSAGES, outside_code, validated
from planted import CREDENTIALS
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, GONE, REJECTED, RETRY, Message
from lmdiag.forward.shorten import utf16
from lmdiag.forward.sinks.discord import escaped, make, payload

PATH = "/" + CREDENTIALS[4]
TOO_MANY = b'{"message": "You are being rate limited.", "retry_after": 64.57, "global": true}'


def checked(one: Message) -> Any:
    """Validate the payload, and that nothing of a log came to life in it."""
    got = validated("discord", payload(one))
    (embed,) = got["embeds"]
    assert utf16(got["content"]) <= 2000
    assert utf16(embed["description"]) <= 4096
    assert utf16(embed["description"] + embed["footer"]["text"]) <= 6000
    assert_inert(got["content"])
    assert_inert(embed["description"])
    return got


def assert_inert(text: str) -> None:
    for line in outside_code(text, escapes=r"\\[^0-9A-Za-z\s]"):
        line = re.sub(r"^\*\*[^*]*\*\*|<https://github\.com/vllm-project/[^>]+>", "", line)
        assert not re.search(r"[*_~`|<>@\[\]]", line), line
        assert not re.search(r"https?://|:[\w+-]+:", line), line
        assert not re.match(r"\s*(?:#|-(?! ))", line), line


def test_a_report_reads_well() -> None:
    got = checked(message())
    assert got["content"].startswith("CRITICAL  LMCache: layer-wise transfer")
    text = got["embeds"][0]["description"]
    assert text.startswith("```\nValueError: layerwise MLA connector is not supported yet\n```\n**Node**: `node7`\n")
    assert "\n\n**What to change**\n1. Set `use_layerwise` to `false`.\n```\n- use_layerwise: true  # LMCache YAML\n" in text
    assert text.endswith("The whole: `lmdiag outbox show key-opened` on `node7`")


def test_colours_tell_the_severity_and_the_end() -> None:
    ones = [message(change=lambda incident, to=severity: incident._replace(severity=to)) for severity in ("critical", "error", "warning", "info")]  # type: ignore[misc]
    colours = {payload(one)["embeds"][0]["color"] for one in [*ones, message("resolved"), MESSAGES["storm over"]]}  # type: ignore[index]
    assert len(colours) == 5


def test_a_storm_is_a_list_of_what_fits() -> None:
    lines = checked(summary(50, left_out=1000))["embeds"][0]["description"].split("\n")
    listed = len([line for line in lines if line.startswith("- CRITICAL")])
    assert listed == len(lines) - 1
    assert lines[-1].startswith(f"… and {1050 - listed:,} more incidents. The whole: `lmdiag outbox show key-storm`")


def test_prose_is_escaped() -> None:
    assert escaped("- a_b: <@1> https://x #1") == r"\- a\_b: \<\@1\> https\://x #1"
    assert escaped("# x") == r"\# x"
    assert escaped("12. x") == r"12\. x"


@pytest.mark.parametrize(
    ("answer", "result", "after"),
    [
        (Answer(204), DELIVERED, None),
        (Answer(200, body=b'{"id": "1"}'), DELIVERED, None),
        (Answer(429, body=TOO_MANY), RETRY, 64.57),
        (Answer(429, (("Retry-After", "65"),), TOO_MANY), RETRY, 65.0),
        (Answer(429, (("Retry-After", "65"),), b"<html>"), RETRY, 65.0),
        (Answer(429, body=b'{"retry_after": 1e9}'), RETRY, 3600.0),
        (Answer(429, body=b'{"retry_after": -1}'), RETRY, None),
        (Answer(429, body=b'{"retry_after": "soon"}'), RETRY, None),
        (Answer(429, body=b"[]"), RETRY, None),
        (Answer(429, body=b'{"retry_after": {"a": [NaN'), RETRY, None),
        (Answer(429, body=b"[" * 10_000), RETRY, None),
        (Answer(404, body=b'{"message": "Unknown Webhook", "code": 10015}'), GONE, None),
        (Answer(400, body=b'{"embeds": ["0"]}'), REJECTED, None),
        (Answer(502), RETRY, None),
    ],
)
def test_answers(answer: Answer, result: str, after: float | None, tmp_path: Path) -> None:
    with Receiver([answer], own=(CREDENTIALS[4],)) as receiver:
        (tmp_path / "url").write_text(receiver.url + PATH)
        sink = make(SinkConfig("chat", "discord", url_file=str(tmp_path / "url")))
        outcome = sink.send([message()], NOW)
        assert (outcome.result, outcome.after) == (result, after)
        validated("discord", receiver.taken[0].json)
        assert CREDENTIALS[4] not in sink.preview([message()], NOW)


@pytest.mark.parametrize(("query", "asked"), [("", "?wait=true"), ("?thread_id=7", "?thread_id=7&wait=true"), ("?wait=false", "?wait=false")])
def test_it_waits_until_the_message_is_kept(query: str, asked: str, tmp_path: Path) -> None:
    with Receiver(own=(CREDENTIALS[4],)) as receiver:
        (tmp_path / "url").write_text(receiver.url + PATH + query)
        make(SinkConfig("chat", "discord", url_file=str(tmp_path / "url"))).send([message()], NOW)
        assert receiver.taken[0].path == PATH + asked
