"""The JSON Schema of what `--format jsonl` prints. `python -m lmdiag.report.schema` prints it.

docs/incident.schema.json is that output.
"""

from __future__ import annotations

import sys

from lmdiag.model import OUTCOMES, PLACES, RISKS, SCOPES, SEVERITIES
from lmdiag.report.jsonl import SCHEMA_VERSION

Schema = dict[str, object]

_STRING: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_MAYBE: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_LINE: Schema = {"type": "integer", "minimum": 1}
_STRINGS: Schema = {"type": "object", "additionalProperties": _STRING}
_COUNTS: Schema = {"type": "object", "additionalProperties": _COUNT}


def json_schema() -> Schema:
    """JSON Schema 2020-12 of one line: an incident or the summary. Objects are closed and all their keys required."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of lmdiag's JSON Lines output",
        "oneOf": [{"$ref": "#/$defs/incident"}, {"$ref": "#/$defs/summary"}],
        "$defs": {
            "incident": _incident(),
            "summary": _summary(),
            "root": _closed({"type": _MAYBE, "message": _STRING, "process": _MAYBE, "pid": _maybe("integer")}),
            "raised_at": _raised_at(),
            "source_line": _source_line(),
            "rewording": _closed({"version": _STRING, "id": _STRING, "message": _STRING}),
            "facts": _facts(),
            "symptom": _closed({"type": _MAYBE, "message": _STRING, "process": _MAYBE}),
            "advice": _advice(),
            "clue": _closed({"name": _NAME, "line": _LINE, "text": _STRING, "fields": _STRINGS}),
            "earlier": _closed(
                {"type": _MAYBE, "message": _STRING, "card": _MAYBE, "source": _STRING, "line": _LINE},
            ),
            "loop": _described(
                _closed({"times": _COUNT, "seconds": {"type": "number", "minimum": 0}}),
                "A crash loop, as the daemon saw it: so many failures of the same cause within so many seconds.",
            ),
            "skipped": _closed({"path": _STRING, "reason": _STRING}),
        },
    }


def _incident() -> Schema:
    schema = _closed(
        {
            "schema_version": {"const": SCHEMA_VERSION},
            "kind": {"const": "incident"},
            "id": _NAME,
            "fingerprint": _NAME,
            "state": _enum("opened", "repeated", "resolved"),
            "card": _described(_MAYBE, "Null when no card fits."),
            "title": _STRING,
            "severity": _enum(*SEVERITIES),
            "scope": _enum(*SCOPES),
            "confidence": _enum("exact", "embedded", "partial", "none"),
            "cause_visible": _described({"type": "boolean"}, "False when the log shows only symptoms."),
            "outcome": _enum(*OUTCOMES),
            "root": _maybe_ref("root"),
            "raised_at": _maybe_ref("raised_at"),
            "symptoms": _array({"$ref": "#/$defs/symptom"}),
            "fields": _described(_STRINGS, "What the card's template captured from the message."),
            "facts": {"$ref": "#/$defs/facts"},
            "advice": _array({"$ref": "#/$defs/advice"}),
            "count": _LINE,
            "processes": _array(_STRING),
            "first_seen": _described(_MAYBE, "As the log prints it; it may lack year and time zone."),
            "last_seen": _MAYBE,
            "source": _STRING,
            "first_line": _LINE,
            "last_line": _LINE,
            "evidence": _described(_array(_STRING), "Redacted lines around the cause."),
            "earlier": _array({"$ref": "#/$defs/earlier"}),
            "reason": _described(_MAYBE, "Which of several causes of this message it was, as far as the log tells."),
            "clues": _described(_array({"$ref": "#/$defs/clue"}), "Redacted lines that told it."),
            "loop": {"oneOf": [{"$ref": "#/$defs/loop"}, {"type": "null"}]},
        }
    )
    no_root = {"properties": {"root": {"type": "null"}}}
    return schema | {"if": {"properties": {"cause_visible": {"const": False}}}, "then": no_root}


def _summary() -> Schema:
    return _closed(
        {
            "schema_version": {"const": SCHEMA_VERSION},
            "kind": {"const": "summary"},
            "sources": _COUNT,
            "lines": _COUNT,
            "bytes": _COUNT,
            "undecodable_lines": _COUNT,
            "truncated_lines": _COUNT,
            "records": _COUNT,
            "tracebacks": _COUNT,
            "dropped_tracebacks": _COUNT,
            "skipped": _array({"$ref": "#/$defs/skipped"}),
            "by_severity": _COUNTS | {"propertyNames": _enum(*SEVERITIES)},
            "by_card": _COUNTS,
            "seconds": {"type": "number", "minimum": 0},
            "interrupted": {"type": "boolean"},
            "muted_patterns": _described(_COUNTS, "How often a card's slow pattern was stopped or left out."),
        }
    )


def _advice() -> Schema:
    edit: Schema = {
        "place": _enum(*PLACES),
        "before": _described(_MAYBE, "What the log shows now; null where it is not set or not shown."),
        "after": _described(_MAYBE, "Null where it is taken away."),
    }
    edits = _described(_array(_closed(edit)), "The change in this server's terms; of several places, one will do.")
    return _closed({"text": _STRING, "change": _STRINGS, "risk": _enum(*RISKS), "edits": edits})


def _raised_at() -> Schema:
    keys = {"project": _NAME, "version": _MAYBE, "file": _MAYBE, "line": _maybe("integer"), "function": _MAYBE}
    catalog = {
        "told_by": _enum("traceback", "catalog", "card", "words"),
        "catalog": _described(_MAYBE, "Id of the message in the catalogue: `lmdiag catalog show ID`."),
        "confidence": _enum("certain", "probable", "candidate", None),
        "since": _described(_MAYBE, "First release that has the message."),
        "until": _described(_MAYBE, "Last release that has it; null while the newest still does."),
        "now": _described(_maybe_ref("source_line"), "Where the newest release raises it, if on another line."),
        "reworded": _maybe_ref("rewording"),
        "contradiction": _described(_MAYBE, "Why the stated version cannot be the one that ran."),
        "by_line": _described(_MAYBE, "The releases whose line this is, where the log states no version or another."),
        "elsewhere": _described(_COUNT, "Other functions that raise the same, where no frame tells which one it was."),
    }
    return _closed({**keys, "url": _MAYBE, **catalog})


def _source_line() -> Schema:
    place = {"version": _STRING, "file": _STRING, "line": {"type": "integer"}, "function": _STRING}
    return _closed({**place, "url": _MAYBE})


def _facts() -> Schema:
    named = dict.fromkeys(("vllm_version", "lmcache_version", "model", "architecture", "platform"), _MAYBE)
    return _closed({**named, "arguments": _STRINGS, "restarts": _COUNT})


def _closed(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _enum(*values: str | None) -> Schema:
    return {"enum": list(values)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _maybe(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def _maybe_ref(name: str) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def _described(schema: Schema, description: str) -> Schema:
    return schema | {"description": description}


if __name__ == "__main__":
    import json

    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
