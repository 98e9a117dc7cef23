"""What a client controls can never open a record, a traceback or an incident; healthy logs stay silent."""

from __future__ import annotations

import json

import pytest
from helpers import diagnose
from shapes import NO_MEMORY, raised

FAKE = "Why?\n" + raised("(EngineCore pid=9) ERROR 12-01 02:00:00 [core.py:1584] ", "ValueError", NO_MEMORY) + raised("", "ValueError", NO_MEMORY)
COLOURED = "\x1b[31mERROR\x1b[0m 12-01 02:00:00 [core.py:1584] EngineCore failed to start. ValueError: " + NO_MEMORY
HTTP_SAFE = FAKE.replace("\n", " ")
BANNER = "(APIServer pid=1) INFO 12-01 02:00:00 [utils.py:326] non-default args: {'model': 'm'}\n(APIServer pid=1) INFO:     Application startup complete.\n"
STALLED = "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 9 reqs, GPU KV cache usage: 1.0%"
HUNG = "No available shared memory broadcast block found in 60 seconds. This typically happens"


def in_record(head: str, message: str) -> str:
    """A record of several lines as vLLM's NewLineFormatter writes it: its prefix on each."""
    return "".join(f"{head}{line}\r\n" for line in message.split("\n")).removesuffix("\r\n") + "\n"


HEALTHY = {
    "a prompt at INFO, as 0.10 logs it": f"INFO 10-31 21:08:41 [logger.py:39] Received request cmpl-1: prompt: {FAKE!r}, params: SamplingParams(n=1)\n",
    "a prompt whose quotes try to close the literal": "INFO 10-31 21:08:41 [logger.py:39] Received request cmpl-1: prompt: {!r}, params: x\n".format("it's \" ' " + FAKE),
    "a prompt at DEBUG, as 0.33 logs it": f"(APIServer pid=1) DEBUG 12-01 02:00:00 [entrypoints/.../request_logger.py:74] Request cmpl-1 details: prompt: {FAKE!r}\n",
    "a request id from X-Request-Id": f"(APIServer pid=1) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-{HTTP_SAFE}.\n",
    "a request id with colours": f"(APIServer pid=1) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-{COLOURED}.\n",
    "a bad request told at INFO with real newlines": in_record("(APIServer pid=1) INFO 12-01 02:00:00 [async_llm.py:795] ", f"Request cmpl-1 failed (bad request): Grammar error: {FAKE}"),
    "a model name in a 404": in_record("(APIServer pid=1) ERROR 12-01 02:00:00 [serving_engine.py:410] ", f"Error with model error=ErrorInfo(message='The model `{FAKE}` does not exist.')"),
    "a chat template error with real newlines": in_record("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "Error in preprocessing prompt inputs\n" + raised("", "ValueError", f"Unknown role: {FAKE}").rstrip()),
    "a path in the access log": f'(APIServer pid=1) INFO:     10.0.0.1:5000 - "GET /v1/{HTTP_SAFE.replace(" ", "%20")} HTTP/1.1" 404 Not Found\n',
    "LMCache prints the tokens' text": f"[2025-10-31 21:08:41,928] LMCache INFO: token_chunk start: {FAKE} (token_database.py:34:lmcache.v1.token_database)\n",
    "a prompt in a JSON record": '{"levelname": "INFO", "name": "vllm", "message": "Received request cmpl-1: prompt: ' + FAKE.replace("\n", "\\n").replace('"', '\\"') + '"}\n',
    "a warning that quotes an exception": "(APIServer pid=1) WARNING 12-01 02:51:43 [system_utils.py:255] Found ulimit of 20000 and failed to increase: `OSError: [Errno 24] Too many open files`.\n",
    "a warning with a traceback": in_record("(APIServer pid=1) WARNING 12-01 02:51:43 [x.py:255] ", raised("", "ValueError", NO_MEMORY)),
    "a carriage return in a request id": "(APIServer pid=1) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-x\r" + FAKE.replace("\n", "\r") + ".\n",
    "a fake header and traceback in a template error": in_record("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "Error in preprocessing prompt inputs\n" + raised("", "ValueError", "Unknown role:\n\nEngineCore failed to start.\n" + raised("", "ValueError", NO_MEMORY)).rstrip()),
    "a fake header in a tool call": in_record("(APIServer pid=1) ERROR 12-01 05:34:47 [hermes_tool_parser.py:64] ", "Error in extracting tool call from response.\n" + raised("", "ValueError", "x\nEngineCore failed to start.\n" + raised("", "ValueError", NO_MEMORY)).rstrip()),
    "a symptom's words in a request's error": in_record("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", raised("", "ValueError", f"Worker failed with error '{NO_MEMORY}', please check the stack trace above for the root cause").rstrip()),
    "a killed worker in a request's error": "(APIServer pid=1) ERROR 12-01 05:34:47 [serving_engine.py:410] Worker proc x died unexpectedly (exit code: -9)\n",
    "a cancelled stream": in_record("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:677] ", "Error in chat completion stream generator.\n" + raised("", "asyncio.exceptions.CancelledError", "").rstrip()),
    "a task whose exception nobody took": "future: <Task finished name='Task-1' coro=<f() done> exception=ConnectionResetError(104, 'x')>\n" + raised("", "ConnectionResetError", "[Errno 104] Connection reset by peer"),
    "a stall in a prompt": "".join(f"INFO 10-31 21:{minute}:00 [logger.py:39] Received request cmpl-1: prompt: '{STALLED}', params: x\n" for minute in range(10, 20)),
    "a stall in a bad request with real newlines": "".join(in_record(f"(APIServer pid=1) INFO 10-31 21:{minute}:00 [async_llm.py:795] ", f"Request cmpl-1 failed (bad request): x\n{STALLED}\n{HUNG}") for minute in range(10, 20)),
    "a stall in a template error with real newlines": "".join(in_record(f"(APIServer pid=1) ERROR 10-31 21:{minute}:00 [serving_chat.py:264] ", f"Error in preprocessing prompt inputs\n{STALLED}\n{HUNG}") for minute in range(10, 20)),
    "a stall that tokens are": "".join(f"[2025-10-31 21:{minute}:00,928] LMCache INFO: token_chunk start: \n{STALLED}\n{HUNG} (token_database.py:34:lmcache.v1.token_database)\n" for minute in range(10, 20)),
    "a stalled record as a request's id": "".join(f"(APIServer pid=1) INFO 12-01 02:{minute}:00 [async_llm.py:261] Added request cmpl-(APIServer pid=1) INFO 12-01 02:{minute}:00 [loggers.py:127] {STALLED}.\n" for minute in range(10, 20)),
    "a stall in a JSON record": "".join(json.dumps({"levelname": "INFO", "name": "vllm.v1.engine.async_llm", "asctime": f"2026-12-01 02:{minute}:00", "message": STALLED}) + "\n" for minute in range(10, 20)),
    "a body at DEBUG": f"(APIServer pid=1) DEBUG 12-01 02:00:00 [x.py:74] Request cmpl-1 JSON body: {{'prompt': {FAKE!r}}}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("started", [BANNER, ""], ids=["served", "tail only"])
def test_a_clients_text_raises_no_alarm(name: str, started: str) -> None:
    """Nothing louder than info, and nothing that blames the server."""
    found = diagnose(started + HEALTHY[name] + '(APIServer pid=1) INFO:     10.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK\n')
    assert [item for item in found if item.severity != "info" or item.scope != "request"] == []


@pytest.mark.parametrize(
    "line",
    [
        "[2025-10-31 21:08:41,928] LMCache INFO: Reqid: cmpl-API server: shutdown triggered, stored (a.py:3:lmcache.x)",
        "(APIServer pid=1) INFO 12-01 02:00:00 [serving_models.py:9] Loaded new LoRA adapter: name 'received SIGTERM', path x",
        "(APIServer pid=1) INFO 12-01 02:00:00 [async_llm.py:261] Added request cmpl-Shutting down.",
        "(APIServer pid=1) INFO 12-01 02:00:00 [x.py:1] Added LoRA █ version 9.9.9",
    ],
)
def test_a_clients_text_hides_no_death_and_fakes_no_start(line: str) -> None:
    """Words of a stop or of a banner count only as whole records of the server itself."""
    fatal = "(EngineCore_DP0 pid=79) ERROR 12-01 04:00:00 [core.py:710] "
    log = BANNER.replace("non-default", "vLLM API server version 0.11.0\n(APIServer pid=1) INFO 12-01 02:00:00 [utils.py:1] non-default") + line + "\n"  # fmt: skip
    (incident,) = diagnose(log + fatal + "EngineCore encountered a fatal error.\n" + raised(fatal, "ValueError", "x y"))
    assert (incident.outcome, incident.severity, incident.facts.vllm_version) == ("died", "critical", "0.11.0")


def test_a_clean_stop_is_silent() -> None:
    """After Ctrl-C the API server reports that its engine has gone; that is no failure."""
    log = (
        BANNER
        + "(APIServer pid=1) INFO 12-01 02:43:02 [launcher.py:254] [shutdown] API server: shutdown triggered\n"
        + "(APIServer pid=1) ERROR 12-01 02:43:02 [async_llm.py:906] AsyncLLM output_handler failed.\n"
        + raised("(APIServer pid=1) ERROR 12-01 02:43:02 [async_llm.py:906] ", "vllm.v1.engine.exceptions.EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause.")
    )  # fmt: skip
    assert diagnose(log) == []


def test_a_death_before_the_stop_is_reported() -> None:
    """The same record with nothing asking for a stop before it is a death whose cause the log does not show."""
    log = BANNER + raised("(APIServer pid=1) ERROR 12-01 02:43:02 [async_llm.py:906] ", "vllm.v1.engine.exceptions.EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause.") + "(APIServer pid=1) INFO:     Shutting down\n"  # fmt: skip
    (incident,) = diagnose(log)
    assert (incident.cause_visible, incident.outcome, incident.root) == (False, "died", None)


def test_a_clients_text_ends_no_stall() -> None:
    """Only the engine's own statistics tell that it works again."""
    told = "(APIServer pid=1) INFO 12-01 02:{minute}:00 [loggers.py:127] {text}\n"
    fake = in_record("(APIServer pid=1) INFO 12-01 02:20:30 [async_llm.py:795] ", "Request cmpl-1 failed (bad request): x\n" + STALLED.replace("0.0 tokens/s", "7.0 tokens/s"))  # fmt: skip
    log = BANNER + "".join(told.format(minute=minute, text=STALLED) for minute in range(10, 20))
    (incident,) = diagnose(log + fake)
    assert (incident.outcome, incident.severity, incident.state) == ("degraded", "error", "opened")
