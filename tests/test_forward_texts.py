from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message, summary
from payloads import HOSTILE_TEXT, MESSAGES, hostile, of_hostiles
from report_samples import MATCHED, UNMATCHED

from lmdiag.forward.texts import body, facts, headline, is_resolved, markdown, plain
from lmdiag.report.control import one_line
from lmdiag.report.layout import Block

LIMITS = st.integers(min_value=1, max_value=6000)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("opened", "CRITICAL  LMCache: layer-wise transfer does not support MLA models · start failed · server.log on node7"),
        ("repeated", "CRITICAL AGAIN  LMCache: layer-wise transfer does not support MLA models · start failed · server.log on node7"),
        ("resolved", "RESOLVED  LMCache: layer-wise transfer does not support MLA models · server.log on node7"),
        ("no card", "ERROR  AssertionError: expected 16 heads, it's 12 · server died · server.log on node7"),
        ("no root", "ERROR  The engine core failed · server died · server.log on node7"),
        ("summary", "CRITICAL  42 incidents on node7 · the worst: LMCache: layer-wise transfer does not support MLA models"),
        ("storm over", "RESOLVED  5 incidents on node7 · the worst: LMCache: layer-wise transfer does not support MLA models"),
    ],
)  # fmt: skip
def test_the_headline_says_what_and_where(kind: str, said: str) -> None:
    assert headline(MESSAGES[kind]) == said


def test_a_long_path_loses_its_beginning() -> None:
    got = headline(message(change=lambda incident: incident._replace(source="/" + "a" * 200 + "/server.log")))
    assert len(got) <= 200
    assert got.endswith("a/server.log on node7")


@settings(deadline=None)
@given(text=HOSTILE_TEXT, limit=st.integers(min_value=1, max_value=300))
def test_a_headline_is_one_line_within_its_limit(text: str, limit: int) -> None:
    for one in (hostile(text), of_hostiles(text)):
        got = headline(one, limit)
        assert 0 < len(got) <= limit
        assert one_line(got) == got


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("limit", [1, 20, 100, 400, 1000, 4000])
def test_texts_keep_their_limit(kind: str, limit: int) -> None:
    for text in (plain(MESSAGES[kind], limit), markdown(MESSAGES[kind], limit)):
        assert 0 < len(text) <= limit


@settings(deadline=None)
@given(text=HOSTILE_TEXT, limit=LIMITS)
def test_texts_of_hostile_incidents_keep_their_limit(text: str, limit: int) -> None:
    for one in (plain(hostile(text), limit), markdown(hostile(text), limit)):
        assert len(one) <= limit
        one.encode()


@settings(deadline=None)
@given(limit=LIMITS)
def test_fences_are_never_cut(limit: int) -> None:
    fences = re.findall(r"^ *```", markdown(message(), limit), re.MULTILINE)
    assert len(fences) % 2 == 0


@pytest.mark.parametrize("limit", [400, 700, 1500, 6000])
@pytest.mark.parametrize("kind", ["opened", "repeated", "resolved", "summary", "hostile"])
def test_every_text_says_where_the_whole_is(kind: str, limit: int) -> None:
    one = MESSAGES[kind]._replace(instance="node7")
    for text in (plain(one, limit), markdown(one, limit)):
        assert f"lmdiag outbox show {one.key}" in text
        assert "node7" in text


def test_what_is_left_out_is_named_and_the_advice_stays() -> None:
    text = plain(message(), 1200)
    assert "1. Set `use_layerwise` to `false`." in text
    last = " ".join(text.rpartition("… left out: ")[2].split())
    assert last.startswith("Check afterwards, In the source, Example, Followed by,")
    assert "From the log. The whole: `lmdiag outbox show key-opened` on node7" in last
    assert "ERROR line 11" not in text


def test_nothing_is_said_to_be_left_out_of_a_whole_report() -> None:
    assert "left out:" not in plain(message(), 6000)


def test_a_long_message_leaves_room_for_the_advice() -> None:
    long = message(change=lambda incident: incident._replace(root=MATCHED.root and MATCHED.root._replace(message="word " * 20_000)))
    text = plain(long, 1500)
    assert "characters left out" in text
    assert "What to change" in text


def test_the_evidence_is_the_last_to_come() -> None:
    text = plain(message(), 6000)
    headings = ["Meaning", "What to change", "Why it happened here", "Check afterwards", "In the source", "Example", "From the log"]
    assert [text.index(f"\n  {heading}\n") for heading in headings] == sorted(text.index(f"\n  {heading}\n") for heading in headings)


def test_repeated_and_resolved_are_short() -> None:
    for state in ("repeated", "resolved"):
        assert len(plain(message(state), 6000)) < 600
    assert "Try first" in plain(message("repeated"), 6000)
    assert "a restart will not help" in plain(MESSAGES["looping"], 6000)


def test_a_summary_lists_its_members_and_counts_the_others() -> None:
    text = plain(summary(12, left_out=30), 6000)
    assert "Failure 11 (server-11.log, card lmcache-mla-layerwise)" in text
    assert "… and 30 more incidents." in text
    short = plain(summary(12, left_out=30), 400)
    listed = short.count("- CRITICAL")
    assert 0 < listed < 12
    assert f"… and {42 - listed} more incidents." in short


def test_members_say_their_state_and_all_are_over_with_the_storm() -> None:
    one = summary(2)
    one = one._replace(members=(one.members[0]._replace(state="repeated"), one.members[1]._replace(state="resolved")))
    assert re.findall(r"CRITICAL ([a-z]+) ", plain(one, 2000)) == ["again", "resolved"]
    over = one._replace(incident=one.incident._replace(state="resolved"))
    assert re.findall(r"CRITICAL ([a-z]+) ", plain(over, 2000)) == ["resolved", "resolved"]
    assert is_resolved(over)
    assert not is_resolved(one)


def test_facts_are_labelled_values_of_one_line() -> None:
    assert facts(message()) == [
        ("Severity", "critical"), ("Node", "node7"), ("Where", "server.log:210-262"), ("Card", "lmcache-mla-layerwise"),
        ("Outcome", "start failed"), ("Count", "3"), ("Incident", "a1"),
    ]  # fmt: skip
    assert dict(facts(MESSAGES["hostile"]._replace(incident=UNMATCHED._replace(card=None))))["Card"] == "none"
    assert facts(summary(3, left_out=4)) == [("Severity", "critical"), ("Node", "node7"), ("Incidents", "7")]
    assert all(one_line(value) == value for _, value in facts(MESSAGES["hostile"]))


def test_a_log_is_no_markdown() -> None:
    text = markdown(hostile("<script> **LIVE** [LIVE](https://evil.example/) @everyone"), 6000)
    code = re.sub(r"```text\n.*?\n *```|`[^`\n]+`", "", text, flags=re.DOTALL)
    assert "<script>" not in code
    assert "**LIVE**" not in code
    assert "[LIVE]" not in code
    assert "@everyone" not in code


def test_the_body_has_no_title_and_is_never_empty() -> None:
    blocks = body(message(), lambda _: True)
    assert "title" not in [block.kind for block in blocks]
    nothing: list[Block] = body(message(), lambda _: False)
    assert len(nothing) == 1
    assert nothing[0].spans[1].text == "lmdiag outbox show key-opened"
