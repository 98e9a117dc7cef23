from __future__ import annotations

import pytest

from lmdiag.diagnose.candidates import Candidate, candidate_key, evidence, is_fatal, is_request
from lmdiag.model import ExceptionInfo, Frame, Match, Origin, Record, Traceback

INFO = ExceptionInfo("ValueError", "x y", (Frame("/a/vllm/x.py", 1, "f"),))


def trace(
    header: str = "", level: str = "ERROR", file: str = "core.py", logger: str = "vllm", line: int = 1, process: str | None = None,
    pid: int | None = None, time: str | None = None, frames: tuple[Frame, ...] = INFO.frames,
) -> Traceback:  # fmt: skip
    exceptions = (INFO._replace(frames=frames),)
    return Traceback(Origin("s", line, line + 5, process, pid), exceptions, header, level, file, time, logger)


SAME = {
    "devices": ("CUDA error on device 0", "CUDA error on device 3"),
    "sizes": ("needs 10.25 GiB", "needs 9 GiB"),
    "addresses": ("object at 0x7f00aa", "object at 0x7f11bb"),
    "request ids": ("request chatcmpl-0a1b2c3d4e5f67 failed", "request chatcmpl-9f8e7d6c5b4a32 failed"),
    "later lines": ("x\nrank 0", "x\nrank y"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_workers_that_name_their_own_numbers_report_the_same(one: str, other: str) -> None:
    assert candidate_key(ExceptionInfo("ValueError", one), None) == candidate_key(
        ExceptionInfo("ValueError", other), None
    )


def test_other_words_are_another_failure() -> None:
    assert candidate_key(ExceptionInfo("E", "no memory"), None) != candidate_key(ExceptionInfo("E", "no disk"), None)


def test_without_a_message_the_type_tells_failures_apart() -> None:
    assert candidate_key(ExceptionInfo("AssertionError", ""), None) != candidate_key(
        ExceptionInfo("KeyError", ""), None
    )


def test_what_a_card_fits_is_one_failure() -> None:
    match = Match("a-card", (), "exact")
    assert candidate_key(ExceptionInfo("E", "one"), match) == candidate_key(ExceptionInfo(None, "two"), match)


FATAL = {
    "engine core": (trace("EngineCore failed to start."), True),
    "worker": (trace("WorkerProc hit an exception.", file="multiproc_executor.py"), True),
    "0.8": (trace("EngineCore hit an exception"), True),
    "V0 worker": (trace("Exception in worker VllmWorkerProcess while processing method load_model: x"), True),
    "Ray worker": (trace("Error executing method 'load_model'. This might cause deadlock in distributed execution."), True),
    "multiprocessing": (trace("Process EngineCore_DP0:", level="", logger="bare"), True),
    "the interpreter's own": (trace("", level="", logger="bare"), True),
    "an engine's main loop": (trace("x y", file="engine.py", frames=(Frame("/a/vllm/engine.py", 1, "run_mp_engine"),)), True),
    "a logged failure": (trace("Could not collect usage data"), False),
    "a request": (trace("Error in preprocessing prompt inputs", file="serving_chat.py"), False),
    "uvicorn's request": (trace("Exception in ASGI application", logger="uvicorn"), False),
}  # fmt: skip


@pytest.mark.parametrize(("event", "fatal"), FATAL.values(), ids=FATAL)
def test_whether_a_process_was_ending(event: Traceback, fatal: bool) -> None:
    assert is_fatal(event) is fatal


REQUEST = {
    "0.7 and later": (trace("Error in preprocessing prompt inputs", file="serving_chat.py"), True),
    "0.6": (trace("Error in applying chat template from request", file="serving_chat.py"), True),
    "uvicorn": (trace("Exception in ASGI application", logger="uvicorn"), True),
    "by its file": (trace("", file="serving_completion.py"), True),
    "by its file, at debug level": (trace("", file="entrypoints/openai/serving_chat.py"), True),
    "a stream": (trace("Error in chat completion stream generator.", file="serving_chat.py"), True),
    "engine core": (trace("EngineCore failed to start."), False),
    "engine core, by its file": (trace(""), False),
    "a bare traceback": (trace("", level="", logger="bare"), False),
    "a client's text in the place of the header": (trace("EngineCore encountered a fatal error.", file="serving_chat.py"), True),
}  # fmt: skip


@pytest.mark.parametrize(("event", "request_"), REQUEST.values(), ids=REQUEST)
def test_whether_one_clients_request_failed_alone(event: Traceback, request_: bool) -> None:
    assert is_request(event) is request_


def candidate(*events: Traceback, request: bool = False) -> Candidate:
    found = Candidate(INFO, events[0].origin, None)
    for event in events:
        found.add(event, event.exceptions[0])
    found.request = request
    return found


def test_an_echo_on_stderr_is_not_a_second_death() -> None:
    found = candidate(
        trace(process="EngineCore", pid=7),
        trace(level="", logger="bare", line=20),
        trace(process="EngineCore", pid=7, line=30),
    )
    assert found.count == 1


def test_each_worker_counts() -> None:
    found = candidate(*(trace(process=f"Worker_TP{rank}", pid=rank) for rank in range(4)))
    assert (found.count, list(found.processes)) == (4, ["Worker_TP0", "Worker_TP1", "Worker_TP2", "Worker_TP3"])


def test_each_request_counts() -> None:
    assert (
        candidate(trace(process="APIServer", pid=1), trace(process="APIServer", pid=1, line=20), request=True).count
        == 2
    )


def test_a_candidate_spans_its_reports_in_the_logs_order() -> None:
    found = candidate(
        trace(line=50, time="12-01 02:00:05"),
        trace(line=10, time="12-01 02:00:01"),
        trace(line=90, time="12-01 02:00:09"),
    )
    assert (found.first.first_line, found.last.last_line) == (10, 95)
    assert (found.first_time, found.last_time) == ("12-01 02:00:01", "12-01 02:00:09")


def test_the_fullest_report_is_kept() -> None:
    """A quotation has no frames and no type; the traceback that comes later has both."""
    found = Candidate(ExceptionInfo(None, "x y"), Origin("s", 1, 1), None)
    found.add(trace(), INFO)
    assert found.info == INFO


def test_evidence_is_a_handful_of_lines() -> None:
    event = trace()._replace(
        lines=(
            "Traceback (most recent call last):",
            *(f"line {number}" for number in range(30)),
            "    ^^^^",
            "ValueError: x y",
        )
    )
    lines = evidence(event)
    assert len(lines) < 10
    assert lines[-1] == "ValueError: x y"
    assert "    ^^^^" not in lines
    record = Record(Origin("s", 1, 1), "ERROR", "x.py", "\n".join(f"line {number}" for number in range(30)))
    assert evidence(record)[0] == "line 0"
