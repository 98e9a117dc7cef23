from __future__ import annotations

import pytest
from helpers import NoCards, diagnose, roots
from report_samples import CARD
from shapes import raised

from lmdiag.diagnose.diagnoser import Diagnoser
from lmdiag.model import ExceptionInfo, Frame, Incident, Origin, Record, Traceback
from lmdiag.samples import CardSet

READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
BANNER = "(APIServer pid=1) INFO 12-01 02:00:00 [utils.py:326] non-default args: {'model': 'm'}\n"
CORE = "(EngineCore pid=79) ERROR 12-01 02:00:00 [core.py:1584] "
DEAD = raised(
    "(APIServer pid=1) ",
    "RuntimeError",
    "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
)


def trace(
    message: str, line: int, header: str = "EngineCore failed to start.", level: str = "ERROR", kind: str = "ValueError"
) -> Traceback:
    info = ExceptionInfo(kind, message, (Frame("/a/vllm_v1_adapter.py", 1, "_init_lmcache_engine"),))
    return Traceback(Origin("s", line, line + 5, "EngineCore", 7), (info,), header, level, "core.py")


def record(text: str, line: int, level: str = "ERROR", logger: str = "vllm") -> Record:
    return Record(Origin("s", line, line, "EngineCore", 7), level, "x.py", text, None, logger)


def incidents(*events: Record | Traceback, cards: CardSet | NoCards | None = None) -> list[Incident]:
    diagnoser = Diagnoser("s", cards or NoCards())
    for event in events:
        diagnoser.feed(event)
    return diagnoser.close()


def test_one_failure_of_many_workers_and_echoes_is_one_incident() -> None:
    workers = "".join(raised(f"(Worker_TP{rank} pid={rank + 10}) ERROR 12-01 02:00:00 [multiproc_executor.py:1] ", "ValueError", "x y") for rank in range(4))  # fmt: skip
    wrapper = raised(
        CORE,
        "Exception",
        "WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
    )
    (found,) = diagnose(BANNER + workers + wrapper + DEAD)
    assert roots([found]) == (("ValueError", "x y"),)
    assert (found.occurrences, found.processes, found.outcome) == (
        4,
        ("Worker_TP0", "Worker_TP1", "Worker_TP2", "Worker_TP3"),
        "start_failed",
    )
    assert {item.type for item in found.symptoms} == {"Exception", "RuntimeError"}


def test_the_card_of_an_exception_is_the_incidents() -> None:
    (found,) = incidents(trace(CARD.rules[0].message, 5), cards=CardSet([CARD]))
    assert (found.card, found.confidence) == (CARD.id, "exact")


def test_a_request_of_a_client_pages_nobody() -> None:
    (found,) = diagnose(
        BANNER + READY + raised("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "ValueError", "x y")
    )
    assert (found.outcome, found.scope, found.severity) == ("request_failed", "request", "info")


def test_a_start_that_failed_and_then_served_is_resolved() -> None:
    logo = "(APIServer pid=1) INFO 12-01 02:00:00 [api_server.py:1289] vLLM API server version 0.10.2\n"
    (found,) = diagnose(
        logo + BANNER + raised(CORE, "ValueError", "x y") + DEAD + (logo + BANNER + READY).replace("pid=1)", "pid=2)")
    )
    assert (found.state, found.severity) == ("resolved", "info")


@pytest.mark.parametrize("level", ["WARNING", "INFO", "DEBUG"])
def test_a_traceback_below_error_is_no_failure(level: str) -> None:
    assert incidents(trace("x", 5, level=level)) == []


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit"])
def test_being_stopped_is_no_failure(kind: str) -> None:
    assert incidents(trace("", 5, kind=kind)) == []


def test_what_follows_a_ctrl_c_is_noise() -> None:
    assert (
        incidents(
            record("Application startup complete.", 1, "INFO"), trace("", 5, kind="KeyboardInterrupt"), trace("x", 9)
        )
        == []
    )


def test_pseudo_tracebacks_are_ignored() -> None:
    assert incidents(trace("x", 5, "Exception ignored in: <function LLM.__del__ at 0x7f>")) == []


LMCACHE = "Failed to initialize LMCacheManager components: x y. System will operate in degraded mode (recompute)."


def test_lmcache_tells_a_failure_without_a_traceback() -> None:
    found = incidents(record(LMCACHE, 5, logger="lmcache"), record("Application startup complete.", 9, "INFO"))
    assert (roots(found), [item.outcome for item in found]) == (((None, "x y"),), ["degraded"])


SAYINGS = {
    "kserve": ("Failed to start model server: x y", (None, "x y")),
    "Modal": ("Runner failed with exception: RuntimeError('x y')", ("RuntimeError", "x y")),
}


@pytest.mark.parametrize(("text", "root"), SAYINGS.values(), ids=SAYINGS)
def test_a_saying_that_ends_a_server(text: str, root: tuple[str | None, str]) -> None:
    assert roots(incidents(record(text, 5))) == (root,)


def test_a_usage_error() -> None:
    found = incidents(record("vllm serve: error: argument --dtype: invalid choice: 'x'", 5, logger="argparse"))
    assert (roots(found), found[0].outcome) == (((None, "argument --dtype: invalid choice: 'x'"),), "start_failed")


def test_errors_that_only_say_something_are_no_incident() -> None:
    assert (
        incidents(record("Could not reach the usage server", 5), record("Application startup complete.", 9, "INFO"))
        == []
    )


def test_services_are_judged_apart() -> None:
    """One container's start says nothing about another's failure."""
    log = "".join(f"vllm-1  | {line}\n" for line in (BANNER + raised(CORE, "ValueError", "x y")).splitlines())
    log += "".join(f"vllm-2  | {line}\n" for line in (BANNER + READY).splitlines())
    (found,) = diagnose(log)
    assert (found.state, found.outcome) == ("opened", "start_failed")


def test_incidents_are_in_the_order_of_the_log() -> None:
    log = (
        BANNER
        + READY
        + "".join(
            raised("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "ValueError", word)
            for word in ("c", "a", "b")
        )
    )
    found = diagnose(log)
    assert [item.root and item.root.message for item in found] == ["c", "a", "b"]
    assert [item.first_line for item in found] == sorted(item.first_line for item in found)


def test_what_is_beyond_the_bounds_is_counted() -> None:
    diagnoser = Diagnoser("s", NoCards())
    names = [
        f"{first}{second} failed" for first in "abcdefghijklmnopqrstuvwxyz" for second in "abcdefghijklmnopqrstuvwxyz"
    ]
    for number, name in enumerate(names):
        diagnoser.feed(trace(name, number * 10 + 1, "Error in preprocessing prompt inputs"))
    kept = diagnoser.close()
    assert diagnoser.dropped > 0
    assert len(kept) + diagnoser.dropped == len(names)


def test_the_facts_of_the_server_are_the_incidents() -> None:
    (found,) = diagnose(
        "(APIServer pid=1) INFO 12-01 02:00:00 [x.py:1] vLLM API server version 0.10.2\n"
        + BANNER
        + raised(CORE, "ValueError", "x y")
    )
    assert (found.facts.vllm_version, found.facts.model, found.facts.arguments) == ("0.10.2", "m", (("model", "'m'"),))
