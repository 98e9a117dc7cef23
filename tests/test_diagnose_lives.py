from __future__ import annotations

import pytest

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.lives import Life, start_kind
from lmdiag.model import ExceptionInfo, Origin, Record

BANNER = "vLLM API server version 0.10.2"
LOGO = " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.19.0\n  █▄█▀ █     █     █     █  model   Qwen/Qwen3"
ARGUMENTS = "non-default args: {'model': 'm'}"
READY = "Application startup complete."
GONE = "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor."


def record(text: str, line: int = 1, level: str = "INFO", process: str = "APIServer", pid: int = 1) -> Record:
    return Record(Origin("s", line, line, process, pid), level, "x.py", text)


def life(*texts: str) -> Life:
    found = Life("", 1)
    for number, text in enumerate(texts, 1):
        found.note(record(text, number))
    return found


KINDS = {
    "the banner": (BANNER, True),
    "the logo": (LOGO, True),
    "arguments": (ARGUMENTS, True),
    "arguments up to 0.9": ("args: Namespace(host=None, port=8000)", True),
    "ready": (READY, False),
    "anything": ("Loading weights took 3 seconds", False),
    "a client's text": ("Received request cmpl-1: prompt: 'vLLM API server version 0.6.5'", False),
}


@pytest.mark.parametrize(("text", "starts"), KINDS.values(), ids=KINDS)
def test_the_lines_of_a_start(text: str, starts: bool) -> None:
    assert (start_kind(record(text)) is not None) is starts


def test_a_line_of_the_shell_is_a_start() -> None:
    assert start_kind(Record(Origin("s", 1, 1), "", "", "$ vllm serve m", logger="bare")) is not None


def test_an_error_that_quotes_the_banner_is_no_start() -> None:
    assert start_kind(record(BANNER, level="ERROR")) is None


def test_one_start_has_several_lines() -> None:
    assert not Life("", 1).starts_anew(record(BANNER))
    assert not life(BANNER).starts_anew(record(ARGUMENTS, 2))


ANEW = {
    "the same line again": (BANNER, BANNER),
    "the arguments again": (ARGUMENTS, ARGUMENTS),
    "a start after serving": (READY, ARGUMENTS),
    "the logo again": (LOGO, LOGO),
}


@pytest.mark.parametrize(("before", "text"), ANEW.values(), ids=ANEW)
def test_the_next_start_opens_the_next_life(before: str, text: str) -> None:
    assert life(before).starts_anew(record(text, 9))


def test_a_start_after_a_failure_is_the_next_life() -> None:
    found = life(BANNER)
    found.candidates["text", "x"] = failed(5)
    assert found.starts_anew(record(ARGUMENTS, 9))


def test_another_process_of_the_api_server_is_the_next_life() -> None:
    assert life(BANNER).starts_anew(record(ARGUMENTS, 9, pid=2))


@pytest.mark.parametrize("text", [READY, "Uvicorn running on http://0.0.0.0:8000"])
def test_it_is_ready_from_the_first_such_line(text: str) -> None:
    assert life(BANNER, ARGUMENTS, text, READY).ready == 3
    assert life(BANNER, ARGUMENTS).ready is None


@pytest.mark.parametrize("text", ["[shutdown] API server: shutdown triggered", "Shutting down", "Waiting for application shutdown."])  # fmt: skip
def test_an_orderly_stop_is_noted(text: str) -> None:
    assert life(READY, text).stop == 2


def test_an_engine_that_is_stopped_says_nothing_about_the_server() -> None:
    """The API server sends SIGTERM to its engine also when it gives up itself."""
    found = life(READY)
    found.note(record("EngineCore received SIGTERM", 2, process="EngineCore", pid=7))
    assert found.stop is None


def failed(line: int, *, request: bool = False) -> Candidate:
    found = Candidate(ExceptionInfo("ValueError", "x"), Origin("s", line, line), None)
    found.request = request
    return found


def test_a_clients_mistake_is_no_failure_of_the_server() -> None:
    found = life(READY)
    found.candidates["text", "x"] = failed(5, request=True)
    assert not found.failing
    found.candidates["text", "y"] = failed(6)
    assert found.failing


def test_a_worker_that_is_gone_from_a_serving_server_was_killed() -> None:
    found = life(READY)
    found.gone = record(GONE, 9, "ERROR", "EngineCore", 7)
    found.settle()
    assert found.killed is found.gone


def test_a_worker_that_is_gone_after_its_own_exception_was_not_killed() -> None:
    found = life(READY)
    found.gone = record(GONE, 9, "ERROR", "EngineCore", 7)
    found.candidates["text", "x"] = failed(5)
    found.settle()
    assert found.killed is None


def test_a_worker_that_is_gone_before_the_server_served_was_not_killed() -> None:
    found = life(BANNER)
    found.gone = record(GONE, 9, "ERROR", "EngineCore", 7)
    found.settle()
    assert found.killed is None
