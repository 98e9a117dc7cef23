"""What programs read: one JSON object per incident and one for the summary. schema.py says the same as a schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lmdiag.lazy_pattern import lazy

if TYPE_CHECKING:
    from lmdiag.model import Advice, Facts, Incident, RaisedAt, Summary

SCHEMA_VERSION = 1
"""Grows when a key is renamed, removed or changes its meaning; a new key does not change it."""

_SURROGATE = lazy("[\ud800-\udfff]")
_UNSAFE = lazy("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def incident_object(incident: Incident) -> dict[str, object]:
    """Make the incident a JSON object: the `data` of a webhook and a line of `--format jsonl`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "incident",
        "id": incident.id,
        "fingerprint": incident.fingerprint,
        "state": incident.state,
        "card": incident.card,
        "title": incident.title,
        "severity": incident.severity,
        "scope": incident.scope,
        "confidence": incident.confidence,
        "cause_visible": incident.cause_visible,
        "outcome": incident.outcome,
        "root": incident.root._asdict() if incident.root else None,
        "raised_at": _raised_at(incident.raised_at) if incident.raised_at else None,
        "symptoms": [symptom._asdict() for symptom in incident.symptoms],
        "fields": dict(incident.fields),
        "facts": _facts(incident.facts),
        "advice": [_advice(advice) for advice in incident.advice],
        "count": incident.occurrences,
        "processes": list(incident.processes),
        "first_seen": incident.first_seen,
        "last_seen": incident.last_seen,
        "source": incident.source,
        "first_line": incident.first_line,
        "last_line": incident.last_line,
        "evidence": list(incident.evidence),
        "earlier": [earlier._asdict() for earlier in incident.earlier],
        "reason": incident.reason,
        "clues": [{**clue._asdict(), "fields": dict(clue.fields)} for clue in incident.clues],
        "loop": incident.loop._asdict() if incident.loop else None,
    }


def summary_object(summary: Summary) -> dict[str, object]:
    """Make the summary a JSON object: the last line of `--format jsonl`. `seconds` is rounded to microseconds."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "summary",
        **summary._asdict(),
        "skipped": [{"path": path, "reason": reason} for path, reason in summary.skipped],
        "by_severity": dict(summary.by_severity),
        "by_card": dict(summary.by_card),
        "muted_patterns": dict(summary.muted_patterns),
        "seconds": round(summary.seconds, 6),
    }


def dumps(obj: object) -> str:
    """Write the object as one line of JSON, without a newline at its end.

    Letters of all scripts stay readable. Control characters, line separators and bidirectional overrides are escaped,
    so nothing is lost and a terminal is not commanded; a lone surrogate becomes U+FFFD, because strict readers
    refuse its escape (RFC 8259, section 8.2, calls it unpredictable).
    """
    import json

    text = json.dumps(obj, ensure_ascii=False, allow_nan=False)
    return _UNSAFE.sub(_escape, _SURROGATE.sub("\ufffd", text))


def _raised_at(site: RaisedAt) -> dict[str, object]:
    now = site.now._asdict() if site.now else None
    return {**site._asdict(), "now": now, "reworded": site.reworded._asdict() if site.reworded else None}


def _facts(facts: Facts) -> dict[str, object]:
    return {**facts._asdict(), "arguments": dict(facts.arguments)}


def _advice(advice: Advice) -> dict[str, object]:
    edits = [edit._asdict() for edit in advice.edits]
    return {"text": advice.text, "change": dict(advice.change), "risk": advice.risk, "edits": edits}


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
