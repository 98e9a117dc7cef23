"""Reads one line of JSON: docker's json-file, journald's export, log shippers, and vLLM's own JSON logging.

A JSON object either carries a line of text (docker, journald, Loki) or is a record itself (a level, a message, the
traceback as one string or as a list). Text inside it is never taken for more than text of that one record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lmdiag.parse.prefixes import Prefixed, RecordKey

_TEXT_KEYS = ("log", "MESSAGE", "message", "msg", "line", "text", "event")
_LEVEL_KEYS = ("levelname", "level", "severity", "lvl")
_TRACE_KEYS = ("exc_info", "exc_text", "stack_trace", "exception", "traceback")
_TIME_KEYS = ("asctime", "timestamp", "time", "ts", "@timestamp")
_STREAM_KEYS = ("_SYSTEMD_UNIT", "_PID", "CONTAINER_NAME", "kubernetes", "container_name", "pod")
_LEVELS = {"WARN": "WARNING", "FATAL": "CRITICAL", "ERR": "ERROR", "TRACE": "DEBUG", "NOTICE": "INFO"}
_MAX_JSON = 1 << 20
_SURROGATE = "\\ud"
_DOCKER, _DOCKER_END = b'{"log":"', b'\\n","stream":"std'
"""How docker's json-file driver begins a line, and how it goes on behind the last piece of a whole one."""


def is_plain_piece(block: bytes | bytearray, start: int, end: int) -> bool:
    r"""Say whether a line with no other anchor than its `{"` is docker's, whole, and without one inside of it.

    Docker escapes quotation marks, and control bytes as `\u001b`: behind those an anchor could be hidden.
    """
    return (
        block.startswith(_DOCKER, start)
        and block.find(_DOCKER_END, start, end) >= 0
        and block.find(b"\\u", start, end) < 0
        and block.find(b'File \\"', start, end) < 0
    )


def docker_text(text: str) -> str | None:
    """Return what docker's json-file driver carries in a line, with its quotation marks escaped; None for another line."""
    end = text.rfind('\\n","stream":"std')
    return text[len(_DOCKER) : end] if text.startswith('{"log":"') and end > 0 and "\\u" not in text else None


class JsonLine(NamedTuple):
    """What a line of JSON holds: either `text` of the inner line, or a whole `record`."""

    stream: str
    text: str
    record: Prefixed | None
    partial: bool


def read_json(text: str) -> JsonLine | None:
    """Return what a JSON line holds, or None if it is no JSON object or holds no log text."""
    if len(text) > _MAX_JSON:
        return None
    import json  # most logs have no JSON, and then nobody waits for the import

    try:
        found: Any = json.loads(text)
        if _SURROGATE in text.lower():  # half a pair is no text: nothing that is written later could hold it
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    message = _first(found, _TEXT_KEYS)
    trace = _as_text(_first(found, _TRACE_KEYS))
    if message is None and not trace:
        return None
    body = _as_text(message)
    if not trace and not _is_record(found):
        return JsonLine(_stream(found), body.rstrip("\r\n"), None, _cut_by_docker(found, body))
    return JsonLine(_stream(found), "", _record(found, body, trace), partial=False)


def _first(found: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((found[key] for key in keys if found.get(key) not in (None, "")), None)


def _as_text(value: Any) -> str:
    """A message may be a string, a list of lines, or (journald, with control bytes inside) a list of byte values."""
    if isinstance(value, list):
        if value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return bytes(value).decode("utf-8", "replace")
        return "\n".join(str(item).rstrip("\n") for item in value)
    return "" if value is None else str(value)


def _is_record(found: dict[str, Any]) -> bool:
    """A shipper adds its own level; only Python's logging also says which logger or process it was."""
    return _first(found, _LEVEL_KEYS) is not None and any(
        key in found for key in ("processName", "name", "logger", "levelname", "funcName", "lineno")
    )


def _cut_by_docker(found: dict[str, Any], body: str) -> bool:
    """Docker's json-file driver cuts a line after 16 KiB: only the last piece ends in a newline."""
    return "log" in found and "stream" in found and not body.endswith("\n")


def _stream(found: dict[str, Any]) -> str:
    return "".join(f"{found[key]} " for key in _STREAM_KEYS if isinstance(found.get(key), (str, int)))


def _record(found: dict[str, Any], body: str, trace: str) -> Prefixed:
    level = str(_first(found, _LEVEL_KEYS) or "ERROR").upper()
    process, pid = found.get("processName"), found.get("process")
    time = _first(found, _TIME_KEYS)
    key = RecordKey(
        "json", _LEVELS.get(level, level), None if time is None else str(time), str(found.get("name", "")), 0
    )
    text = "\n".join(part for part in (body, trace) if part).replace("\r", "")
    return Prefixed(
        f"json {process} {pid} ", str(process) if process else None, pid if isinstance(pid, int) else None, key, text
    )
