from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.parse.jsonlines import read_json

TRACE = 'Traceback (most recent call last):\n  File "/a/x.py", line 1, in f\nValueError: x'
NO_LOG = {
    "no JSON": "{'log': 'x'}",
    "cut off": '{"log": "x',
    "a list": '["log"]',
    "a number": "17",
    "no text in it": '{"level": "info", "count": 3}',
    "an API's error body": '{"object":"error","code":400}',
    "empty object": "{}",
    "nested beyond reason": "[" * 100_000,
}


@pytest.mark.parametrize("text", NO_LOG.values(), ids=NO_LOG)
def test_what_holds_no_log_line_is_none(text: str) -> None:
    assert read_json(text) is None


CARRIERS = {
    "docker": ({"log": "INFO: x\r\n", "stream": "stdout", "time": "2025-11-18T13:44:09.1Z"}, "INFO: x"),
    "journald": ({"MESSAGE": "INFO: x", "_PID": "7", "_SYSTEMD_UNIT": "vllm.service"}, "INFO: x"),
    "journald's byte values": ({"MESSAGE": [73, 78, 70, 79, 58, 32, 27, 120]}, "INFO: \x1bx"),
    "Loki": ({"line": "INFO: x", "labels": {"app": "vllm"}}, "INFO: x"),
    "a shipper adds a level": ({"message": "INFO: x", "level": "info", "ts": 1}, "INFO: x"),
    "escaped newlines stay": ({"log": "prompt: 'a\\nb'\n", "stream": "stdout"}, "prompt: 'a\\nb'"),
}


@pytest.mark.parametrize(("data", "text"), CARRIERS.values(), ids=CARRIERS)
def test_a_carrier_gives_the_inner_line(data: dict[str, object], text: str) -> None:
    found = read_json(json.dumps(data))
    assert found is not None
    assert (found.text, found.record, found.partial) == (text, None, False)


def test_docker_cuts_a_line_without_a_newline() -> None:
    found = read_json('{"log":"' + "x" * 16384 + '","stream":"stdout","time":"2025-11-18T13:44:09.1Z"}')
    assert found is not None
    assert (found.partial, len(found.text)) == (True, 16384)


def test_a_message_without_newline_is_whole_where_nobody_cuts() -> None:
    found = read_json('{"message": "INFO: x"}')
    assert found is not None
    assert not found.partial


@pytest.mark.parametrize("key", ["_SYSTEMD_UNIT", "_PID", "container_name", "pod"])
def test_two_origins_are_two_streams(key: str) -> None:
    one, other = read_json(json.dumps({"log": "x\n", key: "a"})), read_json(json.dumps({"log": "x\n", key: "b"}))
    assert one is not None
    assert other is not None
    assert one.stream != other.stream


def test_the_record_of_vllms_own_json_formatter() -> None:
    data = {"asctime": "12-01 02:00:00", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName": "EngineCore", "process": 79, "message": "EngineCore failed to start.", "exc_info": TRACE}  # fmt: skip
    found = read_json(json.dumps(data))
    assert found is not None
    assert found.record is not None
    record = found.record
    assert (record.process, record.pid) == ("EngineCore", 79)
    assert record.record is not None
    assert (record.record.level, record.record.time) == ("ERROR", "12-01 02:00:00")
    assert record.text == "EngineCore failed to start.\n" + TRACE


@pytest.mark.parametrize("key", ["exc_info", "exc_text", "stack_trace"])
@pytest.mark.parametrize(
    "value", [TRACE, TRACE.split("\n"), TRACE.splitlines(keepends=True)], ids=["text", "list", "lines"]
)
def test_a_traceback_is_read_from_any_key(key: str, value: object) -> None:
    found = read_json(json.dumps({"levelname": "ERROR", "message": "failed", key: value}))
    assert found is not None
    assert found.record is not None
    assert found.record.text == "failed\n" + TRACE


def test_a_traceback_alone_is_a_record() -> None:
    found = read_json(json.dumps({"exc_info": TRACE}))
    assert found is not None
    assert found.record is not None
    assert found.record.text == TRACE


@pytest.mark.parametrize(("name", "level"), [("warn", "WARNING"), ("fatal", "CRITICAL"), ("info", "INFO"), ("Error", "ERROR"), ("trace", "DEBUG")])  # fmt: skip
def test_levels_have_pythons_names(name: str, level: str) -> None:
    found = read_json(json.dumps({"level": name, "logger": "vllm", "message": "x"}))
    assert found is not None
    assert found.record is not None
    assert found.record.record is not None
    assert found.record.record.level == level


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(("log", "message", "level", "exc_info", "process", "name", "time", "x")), inner), max_leaves=12))  # fmt: skip
@settings(deadline=None)
def test_any_json_is_survived(data: object) -> None:
    found = read_json(json.dumps(data))
    assert found is None or isinstance(found.text, str)


@given(st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: text.rstrip("\r\n")).filter(bool))
@settings(deadline=None)
def test_no_character_of_dockers_text_is_lost(text: str) -> None:
    found = read_json(json.dumps({"log": text + "\n", "stream": "stderr"}))
    assert found is not None
    assert found.text == text
