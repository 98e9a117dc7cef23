from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.parse.prefixes import RecordKey, lmcache_end, read_prefix, unglue


def vllm(level: str, time: str, file: str, line: int) -> RecordKey:
    return RecordKey("vllm", level, time, file, line)


RECORDS = {
    "0.6, without a bracket": ("ERROR 02-19 18:44:46 engine.py:389] ", vllm("ERROR", "02-19 18:44:46", "engine.py", 389)),
    "0.8": ("ERROR 05-06 01:55:26 [core.py:383] ", vllm("ERROR", "05-06 01:55:26", "core.py", 383)),
    "a path at debug level": ("DEBUG 09-18 00:55:15 [v1/engine/core.py:718] ", vllm("DEBUG", "09-18 00:55:15", "v1/engine/core.py", 718)),
    "a shortened path": ("ERROR 09-18 00:55:15 [distributed/.../v1/nixl_connector.py:485] ", vllm("ERROR", "09-18 00:55:15", "distributed/.../v1/nixl_connector.py", 485)),
    "a bare module": ("INFO 08-26 09:12:13 [__init__.py:241] ", vllm("INFO", "08-26 09:12:13", "__init__.py", 241)),
    "a viewer ate the bracket": ("WARNING 09-18 00:55:15 [async_llm.py:485[] ", vllm("WARNING", "09-18 00:55:15", "async_llm.py", 485)),
    "VLLM_LOGGING_PREFIX": ("node7 ERROR 09-18 00:55:15 [core.py:485] ", vllm("ERROR", "09-18 00:55:15", "core.py", 485)),
    "vllm-omni's stage": ("[Stage-0] ERROR 09-18 00:55:15 [core.py:485] ", vllm("ERROR", "09-18 00:55:15", "core.py", 485)),
    "NIM": ("ERROR 2025-07-21 14:34:24.934 file.py:62] ", vllm("ERROR", "2025-07-21 14:34:24.934", "file.py", 62)),
    "critical": ("CRITICAL 12-01 02:00:00 [launcher.py:116] ", vllm("CRITICAL", "12-01 02:00:00", "launcher.py", 116)),
    "LMCache": ("[2026-02-24 23:14:43,998] LMCache INFO: ", RecordKey("lmcache", "INFO", "2026-02-24 23:14:43,998", "", 0)),
    "uvicorn": ("INFO:     ", RecordKey("uvicorn", "INFO", None, "", 0)),
    "uvicorn's error": ("ERROR:    ", RecordKey("uvicorn", "ERROR", None, "", 0)),
}  # fmt: skip


@pytest.mark.parametrize(("prefix", "key"), RECORDS.values(), ids=RECORDS)
def test_a_record_prefix_is_read(prefix: str, key: RecordKey) -> None:
    assert read_prefix(prefix + "some text") == ("", None, None, key, "some text")


@pytest.mark.parametrize(("prefix", "key"), RECORDS.values(), ids=RECORDS)
def test_only_vllms_one_blank_is_taken(prefix: str, key: RecordKey) -> None:
    if key.logger == "vllm":
        assert read_prefix(prefix + "    raise x").text == "    raise x"


def test_an_empty_line_of_a_record_without_its_trailing_blank() -> None:
    found = read_prefix("ERROR 10-23 23:20:26 registry.py:272]")
    assert (found.record, found.text) == (vllm("ERROR", "10-23 23:20:26", "registry.py", 272), "")


def test_old_lmcache_records_are_lmcaches() -> None:
    found = read_prefix("INFO LMCache: stored [2024-10-29 10:13:32,894] -- /a/file.py:34")
    assert found.record is not None
    assert found.record.logger.startswith("lmcache")
    assert (found.record.level, found.text.startswith("stored")) == ("INFO", True)


OTHER = {
    "Ray": ("2025-01-22 14:32:19,671\tERROR worker.py:1540 -- lost", "ERROR", "lost"),
    "kserve": ("2024-07-01 07:28:04.488 1 kserve ERROR [__main__.py:<module>():254] Failed to start model server: x", "ERROR", "Failed to start model server: x"),
    "Python's logging": ("2024-07-01 07:28:04,488 ERROR lost", "ERROR", "lost"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "level", "end"), OTHER.values(), ids=OTHER)
def test_other_loggers_are_records_too(line: str, level: str, end: str) -> None:
    """The date of kserve is taken off with the containers; both ways must come to the same."""
    found = read_prefix(line.removeprefix("2024-07-01 07:28:04.488 "))
    assert found.record is not None
    assert found.record.level == level
    assert found.text.endswith(end)


PROCESSES = {
    "V0": ("(VllmWorkerProcess pid=9) ", "VllmWorkerProcess", 9),
    "Ray before 0.4.1": ("(RayWorkerVllm pid=9) ", "RayWorkerVllm", 9),
    "Ray with an address": ("(RayWorkerWrapper pid=9, ip=10.0.0.2) ", "RayWorkerWrapper", 9),
    "Ray with an IPv6 address": ("(RayWorkerWrapper pid=9, ip=fd00::2) ", "RayWorkerWrapper", 9),
    "Ray without a name": ("(pid=1058) ", None, 1058),
    "Ray Serve": ("(ServeReplica:default:LLM pid=1) ", "ServeReplica:default:LLM", 1),
    "V1 with a rank": ("(VllmWorker rank=0 pid=4867) ", "VllmWorker rank=0", 4867),
    "0.10 with a rank": ("(VllmWorker TP0 pid=4867) ", "VllmWorker TP0", 4867),
    "0.11": ("(Worker_DP0_TP1_EP1 pid=5) ", "Worker_DP0_TP1_EP1", 5),
    "a plain worker": ("(Worker pid=5) ", "Worker", 5),
    "engine core": ("(EngineCore_DP0 pid=5) ", "EngineCore_DP0", 5),
    "several API servers": ("(ApiServer_0 pid=5) ", "ApiServer_0", 5),
    "vllm-omni": ("(StageEngineCoreProc_stage0_replica0 pid=5) ", "StageEngineCoreProc_stage0_replica0", 5),
    "nested": ("(APIServer pid=1) (EngineCore_DP0 pid=72) ", "EngineCore_DP0", 72),
    "nested, Ray": ("(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.2) ", "RayWorkerWrapper", 2),
    "without its bracket": ("EngineCore_DP0 pid=72) ", "EngineCore_DP0", 72),
}  # fmt: skip


@pytest.mark.parametrize(("chain", "process", "pid"), PROCESSES.values(), ids=PROCESSES)
@pytest.mark.parametrize(
    ("rest", "key", "text"),
    [
        ("ERROR 05-06 01:55:26 [core.py:383] x y", vllm("ERROR", "05-06 01:55:26", "core.py", 383), "x y"),
        ('  File "/a/x.py", line 1, in f', None, '  File "/a/x.py", line 1, in f'),
        ("INFO:     Started", RecordKey("uvicorn", "INFO", None, "", 0), "Started"),
        ("", None, ""),
    ],
    ids=["record", "frame", "uvicorn", "empty"],
)
def test_the_chain_names_the_innermost_process(
    chain: str, process: str | None, pid: int, rest: str, key: RecordKey | None, text: str
) -> None:
    assert read_prefix(chain + rest) == (chain, process, pid, key, text)


RAW = {
    "a header": "Traceback (most recent call last):",
    "a frame": '  File "/a/x.py", line 1, in f',
    "an exception": "ValueError: x",
    "a level inside of a sentence": "the ERROR 05-06 is not one",
    "an indented record is source or text": "    ERROR 05-06 01:55:26 [core.py:383] x",
    "a level without a place": "ERROR 05-06 01:55:26 something",
    "a pid in prose": "see pid=7 for more",
    "a multiprocessing header": "Process EngineCore_DP0:",
    "usage": "vllm serve: error: argument --x: y",
}


@pytest.mark.parametrize("text", RAW.values(), ids=RAW)
def test_a_raw_line_has_no_record(text: str) -> None:
    assert read_prefix(text) == ("", None, None, None, text)


@pytest.mark.parametrize(
    "end",
    [
        " [repeated 7x across cluster]",
        " [repeated 3x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#log-deduplication for more options.)",
    ],
)
@pytest.mark.parametrize("text", ["ValueError: x", '  File "/a/x.py", line 1, in f', "    ^^^^"])
def test_rays_note_of_repetition_is_taken_off(text: str, end: str) -> None:
    assert read_prefix("(RayWorkerWrapper pid=320, ip=10.0.0.2) " + text + end).text == text


def test_torchs_warning_is_no_error_and_keeps_its_text() -> None:
    text = "[W409 11:42:27.77 ProcessGroupNCCL.cpp:1250] Warning: x"
    found = read_prefix(text)
    assert found.record is not None
    assert (found.record.level, found.text) == ("WARNING", text)


@given(st.text())
@settings(deadline=None)
def test_any_text_survives_and_its_end_is_never_lost(text: str) -> None:
    found = read_prefix(text)
    assert text.startswith(found.chain)
    assert text.endswith(found.text) or "across cluster]" in text


_LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60)


@given(st.sampled_from(sorted(PROCESSES)), st.sampled_from(sorted(name for name in RECORDS if RECORDS[name][1].logger == "vllm")), _LETTERS.map(lambda text: "x" + text))  # fmt: skip
@settings(deadline=None)
def test_the_text_behind_the_prefixes_is_never_looked_into(process: str, record: str, text: str) -> None:
    found = read_prefix(PROCESSES[process][0] + RECORDS[record][0] + text)
    assert (found.chain, found.record, found.text) == (PROCESSES[process][0], RECORDS[record][1], text)


@given(st.lists(st.sampled_from(("ERROR 05-06 01:55:26 [core.py:383] ", "(APIServer pid=1) ", "x", "'", '"', "\\", " ", "Traceback (most recent call last):", '  File "', 'INFO:     1.1.1.1:1 - "GET / HTTP/1.1" 200 OK'))))  # fmt: skip
@settings(deadline=None)
def test_no_piece_of_a_glued_line_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    assert "".join("".join(unglue(text)).split()) == "".join(text.split())


CORE, API = (
    "(EngineCore_DP0 pid=9) ERROR 04-18 10:00:00 [core.py:383] ",
    "(APIServer pid=1) ERROR 04-18 10:00:00 [core.py:1] ",
)
GLUED = {
    "one record": (CORE + "x", [CORE + "x"]),
    "raw text, then a record": ("    super().__init__(a)" + CORE + "x", ["    super().__init__(a)", CORE + "x"]),
    "a record, then itself again": (CORE + "x" + CORE + "y", [CORE + "x", CORE + "y"]),
    "behind an access line": ('INFO:     1.1.1.1:1 - "GET / HTTP/1.1" 200 OK ' + API + "x", ['INFO:     1.1.1.1:1 - "GET / HTTP/1.1" 200 OK', API + "x"]),
    "another record inside a record's text is a client's": (API + "no model " + CORE + "x", [API + "no model " + CORE + "x"]),
    "inside a literal": (f"prompt: '{CORE}x'", [f"prompt: '{CORE}x'"]),
    "nested prefixes are one": ("(APIServer pid=1) " + CORE + "x", ["(APIServer pid=1) " + CORE + "x"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pieces"), GLUED.values(), ids=GLUED)
def test_glued_writes_are_split_only_where_no_client_wrote(text: str, pieces: list[str]) -> None:
    assert unglue(text) == pieces


@pytest.mark.parametrize(
    ("text", "end"),
    [("text (file.py:172:lmcache.v1.cache_engine)", 4), ("text (see file.py:172)", None), ("text", None), ("(a.py:1:b) text", None)],
)  # fmt: skip
def test_the_end_of_a_record_of_lmcache(text: str, end: int | None) -> None:
    assert lmcache_end(text) == end
