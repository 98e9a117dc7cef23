from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from report_samples import HIDDEN, MATCHED, REQUEST, SUMMARY, UNMATCHED

from lmdiag.model import Facts, Incident, Loop, RaisedAt, Rewording, SourceLine, Summary
from lmdiag.report.jsonl import dumps, incident_object, summary_object
from lmdiag.report.schema import json_schema

KEYS = [
    "schema_version", "kind", "id", "fingerprint", "state", "card", "title", "severity", "scope", "confidence",
    "cause_visible", "outcome", "root", "raised_at", "symptoms", "fields", "facts", "advice", "count", "processes",
    "first_seen", "last_seen", "source", "first_line", "last_line", "evidence", "earlier", "reason", "clues", "loop",
]  # fmt: skip
INCIDENTS = [MATCHED, UNMATCHED, HIDDEN, REQUEST, MATCHED._replace(loop=Loop(5, 720.0)), UNMATCHED._replace(facts=Facts(), first_seen=None, evidence=())]
VALIDATOR = Draft202012Validator(json_schema())


def test_keys_stand_in_the_order_of_the_contract() -> None:
    assert list(incident_object(MATCHED)) == KEYS


def test_pairs_become_objects() -> None:
    got: dict[str, Any] = incident_object(MATCHED)
    assert got["fields"] == {"layers": "61"}
    assert got["facts"]["arguments"]["port"] == "8001"
    assert got["advice"][0] == {
        "text": "Set `use_layerwise` to `false`.", "change": {"lmcache.use_layerwise": "false"}, "risk": "safe",
        "edits": [{"place": "LMCache YAML", "before": "use_layerwise: true", "after": "use_layerwise: false"}],
    }  # fmt: skip
    assert got["root"] == {
        "type": "ValueError", "message": "layerwise MLA connector is not supported yet", "process": "Worker_TP0",
        "pid": 4242,
    }  # fmt: skip
    assert got["reason"] == "The log shows an MLA model."
    assert got["clues"] == [{"name": "mla", "line": 12, "text": "Using MLA backend", "fields": {"backend": "FLASHMLA"}}]
    assert got["earlier"] == [
        {"type": "ValueError", "message": "No available memory for the cache blocks.", "card": None,
         "source": "server.log", "line": 17}
    ]  # fmt: skip


def test_the_summary_has_every_count() -> None:
    got: dict[str, Any] = summary_object(SUMMARY)
    assert set(got) == {"schema_version", "kind", *Summary._fields}
    assert got["kind"] == "summary"
    assert got["skipped"][0] == {"path": "/logs/0.gz", "reason": "not gzip"}
    assert got["by_severity"] == {"critical": 1, "info": 2}


@pytest.mark.parametrize("incident", INCIDENTS)
def test_incidents_validate(incident: Incident) -> None:
    VALIDATOR.validate(json.loads(dumps(incident_object(incident))))


SITES = {
    "with a history": RaisedAt(
        "vllm", "0.26.0", "vllm/a.py", 5, "f", "https://example.org", "catalog", "3f5940884c", "probable", "0.11.1", "0.29.0",
        SourceLine("0.29.0", "vllm/b.py", 7, "g", None), Rewording("0.30.0", "ab", "no {x}"), "the log says 0.34.0", "0.14.0",
    ),
    "of a package": RaisedAt("transformers", None, None, None, None, None, "words"),
    "of a card": RaisedAt("vllm", None, "vllm/a.py", None, "f", None, "card"),
}  # fmt: skip


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_raise_sites_validate_and_become_objects(site: RaisedAt) -> None:
    line = json.loads(dumps(incident_object(MATCHED._replace(raised_at=site))))
    VALIDATOR.validate(line)
    got = line["raised_at"]
    assert list(got) == list(RaisedAt._fields)
    assert got["now"] == (site.now._asdict() if site.now else None)
    assert got["reworded"] == (site.reworded._asdict() if site.reworded else None)
    for key, wrong in {"told_by": "guess", "confidence": "exact", "now": {"version": "1"}, "by_line": 5}.items():
        assert not VALIDATOR.is_valid(line | {"raised_at": got | {key: wrong}})


@pytest.mark.parametrize("summary", [SUMMARY, Summary()])
def test_summaries_validate(summary: Summary) -> None:
    VALIDATOR.validate(json.loads(dumps(summary_object(summary))))


@pytest.mark.parametrize(
    "change",
    [
        {"severity": "fatal"}, {"unknown": 1}, {"scope": "later"}, {"outcome": "gone"}, {"count": 0},
        {"cause_visible": False}, {"advice": [{"text": "x", "change": {}, "risk": "none"}]},
    ],
)  # fmt: skip
def test_the_schema_is_closed(change: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(incident_object(MATCHED) | change)


@pytest.mark.parametrize("key", KEYS)
def test_the_schema_requires_every_key(key: str) -> None:
    got = incident_object(MATCHED)
    del got[key]
    assert not VALIDATOR.is_valid(got)


def test_the_schema_itself_is_valid() -> None:
    Draft202012Validator.check_schema(json_schema())


def test_the_published_schema_is_fresh() -> None:
    """`python -m lmdiag.report.schema > docs/incident.schema.json` makes it so."""
    path = Path(__file__).parent.parent / "docs" / "incident.schema.json"
    assert path.read_text(encoding="utf-8") == json.dumps(json_schema(), indent=2) + "\n"


@given(st.text(st.characters(exclude_categories=())))
def test_a_line_is_one_line_of_utf8_and_loses_nothing(text: str) -> None:
    line = dumps({"text": text})
    assert len(line.encode("utf-8").decode("utf-8").splitlines()) == 1
    assert not [char for char in line if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]
    assert json.loads(line)["text"] == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def test_letters_stay_readable() -> None:
    assert dumps({"a": "Grüße"}) == '{"a": "Grüße"}'
