from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from messages import NOW, message, summary
from payloads import outside_code, texts, validated
from planted import CREDENTIALS
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig
from lmdiag.forward.message import DELIVERED, GONE, REJECTED, RETRY, Message
from lmdiag.forward.sinks.slack import escaped, make, payload
from lmdiag.report.jsonl import dumps

PATH = "/" + CREDENTIALS[4]


def checked(one: Message) -> Any:
    """Validate the payload, and that nothing of a log came to life in it."""
    got = validated("slack", payload(one))
    assert len(dumps(got["blocks"]).encode()) <= 12_000
    for block in got["blocks"][1:]:
        for text in [block["text"], *block.get("fields", ()), *block.get("elements", ())] if "text" in block else block.get("fields") or block["elements"]:
            assert_inert(text["text"], 3000)
    assert_inert(got["text"], 3000)
    assert not set("<>&") & set(got["blocks"][0]["text"]["text"])
    return got


def assert_inert(text: str, limit: int) -> None:
    assert len(text.encode()) <= limit
    links = re.findall(r"<[^>]*>?", text)
    assert all(re.fullmatch(r"<https://github\.com/vllm-project/[^|>]+>", link) for link in links), links
    assert re.fullmatch(r"(?:[^&]|&(?:amp|lt|gt);)*", text), "a cut entity"
    for line in outside_code(text):
        line = re.sub(r"^\*[^*]+\*", "", line)
        assert not re.search(r"[*~`]", line), line
        assert not re.search(r"(?<![^\W_])_|_(?![^\W_])", line), line
        assert not re.match(r"\s*&gt;", line), line
        assert not re.search(r":[\w+-]+:", line), line


def test_a_report_reads_well() -> None:
    blocks = checked(message())["blocks"]
    assert [block["type"] for block in blocks[:3]] == ["header", "section", "section"]
    assert blocks[0]["text"]["text"].startswith("CRITICAL  LMCache: layer-wise transfer")
    assert "*Node*: `node7`" in [field["text"] for field in blocks[2]["fields"]]
    (change,) = (block["text"]["text"] for block in blocks if "*What to change*" in block.get("text", {}).get("text", ""))
    assert "1. Set `use_layerwise` to `false`.\n```\n- use_layerwise: true  # LMCache YAML\n" in change
    assert blocks[-1]["elements"][0]["text"] == "The whole: `lmdiag outbox show key-opened` on `node7`"


def test_a_storm_is_a_list() -> None:
    got = checked(summary(50, left_out=1000))
    lines = [line for block in got["blocks"] if "text" in block for line in block["text"]["text"].split("\n")]
    assert len([line for line in lines if line.startswith("• CRITICAL")]) == 50
    assert any("… and 1,000 more incidents." in text for text in texts(got))


def test_log_text_is_still_readable() -> None:
    assert escaped("max_model_len = 4 * 1024") == "max_model_len = 4 ∗ 1024"
    assert escaped("a < b && c") == "a &lt; b &amp;&amp; c"
    assert escaped("> quoted") == "› quoted"


@pytest.mark.parametrize(
    ("answer", "result", "after"),
    [
        (Answer(200, body=b"ok"), DELIVERED, None),
        (Answer(429, (("Retry-After", "30"),)), RETRY, 30.0),
        (Answer(410, body=b"channel_is_archived"), GONE, None),
        (Answer(404, body=b"no_service"), REJECTED, None),
        (Answer(403, body=b"action_prohibited"), REJECTED, None),
        (Answer(400, body=b"invalid_blocks"), REJECTED, None),
        (Answer(500, body=b"rollup_error"), RETRY, None),
    ],
)
def test_answers(answer: Answer, result: str, after: float | None, tmp_path: Path) -> None:
    with Receiver([answer], own=(CREDENTIALS[4],)) as receiver:
        (tmp_path / "url").write_text(receiver.url + PATH)
        sink = make(SinkConfig("chat", "slack", url_file=str(tmp_path / "url")))
        outcome = sink.send([message()], NOW)
        assert (outcome.result, outcome.after) == (result, after)
        assert receiver.taken[0].path == PATH
        validated("slack", receiver.taken[0].json)
        assert CREDENTIALS[4] not in sink.preview([message()], NOW)
        assert outcome.result == DELIVERED or answer.body.decode() in outcome.detail
