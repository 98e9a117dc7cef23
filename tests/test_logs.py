"""Real logs, end to end, with the shipped cards: the right cause, card and outcome, and silence on healthy servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import lines_of

from lmdiag.match.library import open_library
from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline

HERE = Path(__file__).parent
LIBRARY = open_library()


def scan(path: Path) -> list[Incident]:
    """The incidents of a log file, with the shipped cards."""
    pipeline = Pipeline(path.name, LIBRARY)
    for line in lines_of(path.read_text(encoding="utf-8"), path.name):
        pipeline.feed(line)
    return pipeline.close()


@pytest.mark.parametrize(
    ("name", "card", "outcome", "severity", "count", "processes"),
    [
        ("mla-serde-start-failed", "lmcache-mla-naive-serde", "start_failed", "critical", 1, ("Worker",)),
        ("mla-serde-degraded", "lmcache-mla-naive-serde", "degraded", "error", 1, ()),
        ("mla-on-cpu-two-workers", "cpu-mla-not-supported", "start_failed", "critical", 2, ("Worker_TP0", "Worker_TP1")),
        ("kv-cache-too-small", "kv-cache-no-memory", "start_failed", "critical", 1, ("EngineCore",)),
        ("heads-not-divisible", "attention-heads-not-divisible", "start_failed", "critical", 1, ()),
        ("server-stalled", "server-stalled", "degraded", "error", 1, ("APIServer",)),
        ("usage-error", "unknown-dtype", "start_failed", "critical", 1, ()),
    ],
)
def test_a_failure_has_one_cause(
    name: str, card: str | None, outcome: str, severity: str, count: int, processes: tuple[str, ...]
) -> None:
    """The same seed error kills one server and leaves another limping: both are told apart."""
    (incident,) = scan(HERE / "logs" / f"{name}.log")
    found = (incident.card, incident.outcome, incident.severity, incident.occurrences, tuple(sorted(incident.processes)))
    assert found == (card, outcome, severity, count, processes)


@pytest.mark.parametrize("path", sorted((HERE / "healthy").glob("*.log")), ids=lambda path: path.stem)
def test_a_healthy_server_raises_no_alarm(path: Path) -> None:
    """Requests served and refused, a clean stop, a stop that leaves an EngineDeadError behind."""
    assert [item.title for item in scan(path) if item.severity != "info" or item.scope != "request"] == []


def test_the_raise_site_is_linked_in_the_version_that_ran() -> None:
    """VLLM 0.32.0 raises this in verify_with_parallel_config, as the log's last vLLM frame says."""
    (incident,) = scan(HERE / "logs" / "kv-cache-too-small.log")
    raised = incident.raised_at
    assert raised is not None
    assert (raised.project, raised.version, raised.function) == ("vllm", "0.32.0", "_check_enough_kv_cache_memory")
    assert raised.url == f"https://github.com/vllm-project/vllm/blob/v0.32.0/{raised.file}#L{raised.line}"


def test_facts_are_those_of_the_log() -> None:
    """Version, model and arguments come from the banner and `non-default args`."""
    (incident,) = scan(HERE / "logs" / "mla-serde-start-failed.log")
    facts = incident.facts
    assert (facts.vllm_version, facts.model, facts.architecture) == ("0.32.0", "/srv/models/mla", "DeepseekV2ForCausalLM")
    assert dict(facts.arguments)["max_model_len"] == "256"
