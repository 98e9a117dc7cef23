"""What became of a server, over its whole life: survived errors, restarts, deaths, and LMCache's swallowed failures."""

from __future__ import annotations

import pytest
from helpers import diagnose
from shapes import raised

START = (
    "(APIServer pid={pid}) INFO 12-01 02:00:00 [api_server.py:1839] vLLM API server version 0.11.0\n"
    "(APIServer pid={pid}) INFO 12-01 02:00:00 [utils.py:233] non-default args: {{'model': 'm'}}\n"
)
READY = "(APIServer pid={pid}) INFO:     Application startup complete.\n"
CORE = "(EngineCore_DP0 pid=79) ERROR 12-01 04:00:00 [core.py:710] "
DEGRADED = (
    "[2026-12-01 02:56:14,673] LMCache ERROR: Failed to initialize LMCacheManager components: x y.. "
    "System will operate in degraded mode (recompute). (manager.py:107:lmcache.v1.manager)\n"
)


def fatal(kind: str, message: str) -> str:
    """The engine core's last record."""
    return CORE + "EngineCore encountered a fatal error.\n" + raised(CORE, kind, message)


def judged(log: str) -> list[tuple[str | None, str, str, str]]:
    """(root's type, outcome, severity, state) of each incident."""
    return [(item.root.type if item.root else None, item.outcome, item.severity, item.state) for item in diagnose(log)]


@pytest.mark.parametrize("prefix", ["", "(APIServer pid=1) ERROR 12-01 02:00:01 [triton_utils.py:9] "])
def test_an_error_that_a_start_survives_is_for_information(prefix: str) -> None:
    """The server came up in spite of it."""
    log = START.format(pid=1) + raised(prefix, "ImportError", "no deepgemm") + READY.format(pid=1)
    assert judged(log) == [("ImportError", "running", "info", "opened")]


def test_a_death_before_a_good_start_is_not_resolved() -> None:
    """A failed start that was repaired is over; a server that dies now and then is not."""
    log = (
        START.format(pid=1)
        + READY.format(pid=1)
        + fatal("ValueError", "x y")
        + START.format(pid=2)
        + READY.format(pid=2)
    )
    assert judged(log) == [("ValueError", "died", "error", "opened")]
    failed = START.format(pid=1) + fatal("ValueError", "x y") + START.format(pid=2) + READY.format(pid=2)
    assert judged(failed) == [("ValueError", "start_failed", "info", "resolved")]


def test_a_start_is_counted_once_whatever_announces_it() -> None:
    """The shell's line, the banner and the arguments are those of one start."""
    log = "$ vllm serve m\n" + START.format(pid=1) + fatal("ValueError", "x y")
    (incident,) = diagnose(log)
    assert (incident.state, incident.occurrences, incident.facts.restarts) == ("opened", 1, 0)


def test_five_starts_that_fail_alike_are_one_incident() -> None:
    """A crash loop is one incident with a count."""
    (incident,) = diagnose("".join(START.format(pid=pid) + fatal("ValueError", "x y") for pid in range(1, 6)))
    assert (incident.state, incident.occurrences, incident.facts.restarts) == ("repeated", 5, 4)


def test_lmcaches_swallowed_failure_is_the_cause_of_an_empty_assertion() -> None:
    """LMCache 0.3.15: the degraded server dies of `assert self.lmcache_engine is not None` at its first request."""
    death = (
        CORE
        + "EngineCore encountered a fatal error.\n"
        + raised(CORE, "AssertionError", "")
        .replace("vllm/v1/core/kv_cache_utils.py", "lmcache/integration/vllm/vllm_v1_adapter.py")
        .replace("AssertionError: ", "AssertionError")
    )
    (incident,) = diagnose(START.format(pid=1) + DEGRADED + READY.format(pid=1) + death)
    assert incident.root is not None
    assert (incident.root.message, incident.outcome) == ("x y.", "died")


def test_lmcaches_failure_is_not_blamed_for_a_death_that_speaks_for_itself() -> None:
    """An exception with a message, hours later, is a matter of its own."""
    log = START.format(pid=1) + DEGRADED + READY.format(pid=1) + fatal("torch.OutOfMemoryError", "CUDA out of memory.")
    assert judged(log) == [
        (None, "degraded", "error", "opened"),
        ("torch.OutOfMemoryError", "died", "critical", "opened"),
    ]


def test_a_traceback_that_breaks_off_is_no_silence() -> None:
    """The log ends in the middle of a traceback: something failed, and the cause is not visible."""
    log = (
        START.format(pid=1)
        + CORE
        + "EngineCore failed to start.\n"
        + raised(CORE, "ValueError", "x").rsplit(CORE, 1)[0]
    )
    (incident,) = diagnose(log)
    assert (incident.cause_visible, incident.root, bool(incident.evidence)) == (False, None, True)


def test_a_workers_exception_alone_ends_nothing() -> None:
    """`WorkerProc hit an exception.` also comes of a bad LoRA, and the server lives on."""
    worker = "(Worker_TP0 pid=9) ERROR 12-01 04:00:00 [multiproc_executor.py:953] "
    log = (
        START.format(pid=1)
        + READY.format(pid=1)
        + worker
        + "WorkerProc hit an exception.\n"
        + raised(worker, "ValueError", "x y")
    )
    assert judged(log) == [("ValueError", "running", "warning", "opened")]


def test_an_engine_that_ran_has_died_though_the_log_begins_late() -> None:
    assert judged(fatal("ValueError", "x y")) == [("ValueError", "died", "critical", "opened")]
