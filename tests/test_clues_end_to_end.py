"""What else the log says chooses the reason and the advice, through the whole pipeline."""

from __future__ import annotations

import pytest
from report_samples import CARD
from shapes import raised

from lmdiag.model import Card, Case, Clue, Incident, MatchRule, Solution
from lmdiag.samples import CardSet, diagnose

START = "(APIServer pid=1) INFO 12-01 01:59:50 [utils.py:299] vLLM API server version 0.26.0\n"
MEMORY = "(Worker pid=9) INFO 12-01 02:00:00 [gpu_worker.py:561] Available KV cache memory: {} GiB\n"
ERROR = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "no memory for 4 blocks") + "\n"
CARD_OF_MEMORY: Card = CARD._replace(
    id="memory-card",
    rules=(MatchRule("memory-card", "no memory for {blocks} blocks", ("ValueError",)),),
    clues=(
        Clue("memory-card", "available", "Available KV cache memory: {gib} GiB"),
        Clue("memory-card", "import", "ImportError: cannot import name {name}"),
        Clue("memory-card", "caught", "could not load {module}"),
    ),
    cases=(
        Case("log.caught", "The module {log.caught.module} is missing."),
        Case("log.available.gib < 0", "The memory is {log.available.gib} GiB."),
    ),
    solutions=(
        Solution("Free {-log.available.gib} GiB. Then start.", (("--a", "{up(-log.available.gib, 1)}"),), "safe", "", "log.available"),
        Solution("Look at the import.", (), "safe", "", "log.caught"),
    ),
    related=(),
    aliases=(),
)


def incident(log: str) -> Incident:
    (found,) = diagnose(log, CardSet([CARD_OF_MEMORY]))
    return found


def test_a_quiet_line_before_the_error_gives_the_reason_and_the_number() -> None:
    found = incident(START + MEMORY.format("-2.31") + ERROR)
    assert found.reason == "The memory is -2.31 GiB."
    assert [item.text for item in found.advice] == ["Free 2.31 GiB. Then start."]
    assert found.advice[0].change == (("--a", "3"),)
    assert [(clue.name, clue.line, clue.text) for clue in found.clues] == [
        ("available", 2, "Available KV cache memory: -2.31 GiB")
    ]


def test_without_it_there_is_no_reason_and_no_advice() -> None:
    found = incident(START + ERROR)
    assert (found.reason, found.advice, found.clues) == (None, (), ())


def test_a_line_of_another_life_says_nothing() -> None:
    other = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "another failure") + "\n"
    log = START + MEMORY.format("-2.31") + other + START.replace("pid=1", "pid=2") + ERROR
    (found,) = [item for item in diagnose(log, CardSet([CARD_OF_MEMORY])) if item.card]
    assert found.reason is None


def test_of_several_the_last_before_the_error_counts() -> None:
    early, late = MEMORY.replace("02:00:00", "01:59:59"), MEMORY.replace("02:00:00", "02:00:01")
    found = incident(START + early.format("8") + MEMORY.format("-1.5") + ERROR + late.format("7"))
    assert found.reason == "The memory is -1.5 GiB."


def test_an_exception_is_a_clue() -> None:
    caught = raised("(EngineCore pid=7) WARNING 12-01 01:59:59 [registry.py:1] ", "RuntimeError", "could not load flash") + "\n"
    found = incident(START + caught + ERROR.replace("02:00:00", "02:00:01"))
    assert found.reason == "The module flash is missing."


@pytest.mark.parametrize("prefix", ["", "(APIServer pid=1) INFO 12-01 02:00:00 [logger.py:40] "], ids=["bare", "in its record"])
def test_a_clients_text_is_no_clue(prefix: str) -> None:
    lines = ["Received request a: prompt: 'x", "Available KV cache memory: -9 GiB", "'"]
    request = "(APIServer pid=1) INFO 12-01 02:00:00 [logger.py:40] " + f"\n{prefix}".join(lines) + "\n"
    assert incident(START + request + ERROR).reason is None


def test_a_clue_is_redacted() -> None:
    log = START + raised("(EngineCore pid=7) WARNING 12-01 01:59:59 [a.py:1] ", "RuntimeError", "could not load hf_abcdefghijklmnopqrstuvwxyz0123") + "\n"
    found = incident(log + ERROR.replace("02:00:00", "02:00:01"))
    assert "hf_abc" not in repr(found)
