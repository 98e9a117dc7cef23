from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.forward.status import SinkStatus
from lmdiag.model import SEVERITIES, Loop
from lmdiag.watch.counters import (
    FILE_REASONS,
    JOURNAL_REASONS,
    NO_CARD,
    OTHER,
    SERIES_LIMIT,
    Counters,
    DaemonStatus,
    IncidentStatus,
    SourceStatus,
    status_from_json,
    status_to_json,
)

SOURCE = SourceStatus("/var/log/vllm.log", "file", lag=5, lines_per_second=1.5, last_line_at=99.5)
INCIDENT = IncidentStatus(
    "i-1", "opened", "error", "a-card", "a title", "/var/log/vllm.log", 3, 10.0, 20.0, "died", Loop(5, 720.0)
)
SINK = SinkStatus("oncall", "slack", 1, 2, 50.5, "refused", (("delivered", 3),), (("dead", 4),))
STATUS = DaemonStatus(
    42, "1.0", 1.0, 100.0, (SOURCE,), (INCIDENT,), 2, (("a.log", "flood", 7),), "", ready=True, sinks=(SINK,)
)


def test_a_known_source_begins_at_zero() -> None:
    counters = Counters()
    counters.know_source("a.log")
    assert counters.lines == {"a.log": 0}
    assert counters.incidents == {("a.log", severity): 0 for severity in SEVERITIES}
    assert counters.dropped == {("a.log", reason): 0 for reason in FILE_REASONS}


def test_a_journal_has_other_reasons() -> None:
    counters = Counters()
    counters.know_source("journal:vllm.service")
    assert {reason for _, reason in counters.dropped} == set(JOURNAL_REASONS)


def test_what_is_known_already_keeps_its_count() -> None:
    counters = Counters()
    counters.add_lines("a.log", 3, 30)
    counters.add_incident("a-card", "error", "a.log")
    counters.know_source("a.log")
    counters.know_cards([("a-card", "critical")])
    assert counters.lines["a.log"] == 3
    assert counters.bytes["a.log"] == 30
    assert counters.cards["a-card"] == 1
    assert counters.incidents["a.log", "error"] == 1


def test_a_card_has_one_series_whatever_the_severity_was() -> None:
    counters = Counters()
    counters.know_cards([("a-card", "critical")])
    counters.add_incident("a-card", "info", "a.log")
    counters.add_incident("a-card", "critical", "a.log")
    assert counters.cards["a-card"] == 2
    assert counters.severities["a-card"] == "critical"


def test_an_incident_without_a_card_is_counted_where_it_was_born() -> None:
    counters = Counters()
    assert counters.cards == {NO_CARD: 0}
    counters.add_incident(None, "error", "a.log")
    assert counters.cards == {NO_CARD: 1}


def test_a_reason_that_names_a_file_makes_no_series() -> None:
    counters = Counters()
    counters.add_dropped("a.log", "a.log.1.gz: damaged", 100)
    counters.add_dropped("a.log", "truncated", 0)
    assert counters.dropped == {("a.log", OTHER): 100, ("a.log", "truncated"): 1}


def test_maps_are_bounded_and_nothing_is_lost() -> None:
    counters = Counters()
    many = SERIES_LIMIT * 2
    for number in range(many):
        counters.add_lines(f"{number}.log", 1, 10)
        counters.add_dropped(f"{number}.log", "flood", 2)
        counters.add_incident(f"card-{number}", "error", f"{number}.log")
        counters.set_records(f"{number}.log", 1, 1)
    for counts in (counters.lines, counters.bytes, counters.records, counters.cards):
        assert len(counts) <= SERIES_LIMIT + 1
    assert len(counters.dropped) <= SERIES_LIMIT + 2
    assert len(counters.severities) <= SERIES_LIMIT + 1
    assert sum(counters.lines.values()) == many
    assert sum(counters.bytes.values()) == 10 * many
    assert sum(counters.dropped.values()) == 2 * many
    assert sum(counters.incidents.values()) == sum(counters.cards.values()) == many
    assert counters.lines[OTHER] == SERIES_LIMIT


def test_a_forgotten_source_leaves_nothing() -> None:
    counters = Counters()
    for name in ("a.log", "b.log"):
        counters.know_source(name)
    counters.forget_source("a.log")
    assert set(counters.lines) == {"b.log"}
    assert {source for source, _ in (*counters.dropped, *counters.incidents)} == {"b.log"}


def test_json_and_back() -> None:
    assert status_from_json(status_to_json(STATUS)) == STATUS


def test_a_surrogate_of_a_path_is_written() -> None:
    status = STATUS._replace(sources=(SOURCE._replace(name="/x\udcff"),))
    assert status_from_json(status_to_json(status)).sources[0].name == "/x\ufffd"


def test_another_release_is_understood() -> None:
    data = json.loads(status_to_json(STATUS))
    data["new"] = data["sources"][0]["new"] = data["incidents"][0]["new"] = [1]
    del data["queue"], data["sources"][0]["lag"], data["incidents"][0]["loop"], data["dropped"], data["sinks"]
    read = status_from_json(json.dumps(data))
    assert read == STATUS._replace(
        queue=0, dropped=(), sinks=(), sources=(SOURCE._replace(lag=0),), incidents=(INCIDENT._replace(loop=None),)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pid", "42"), ("pid", True), ("now", None), ("sources", {}), ("sources", [1]), ("sources", [{"name": "x"}]),
        ("incidents", [{"id": 1}]), ("dropped", [{"source": "x"}]), ("dropped", ["x"]), ("ready", 1), ("sinks", [{"name": "x"}]),
        ("sinks", [{"name": "x", "type": "y", "lost": {"dead": "1"}}]),
    ],
)  # fmt: skip
def test_what_is_not_a_status_is_refused(key: str, value: object) -> None:
    data = json.loads(status_to_json(STATUS))
    data[key] = value
    with pytest.raises(ValueError, match=r"\w"):
        status_from_json(json.dumps(data))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_json_is_a_status_or_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        status_from_json(json.dumps(value))
