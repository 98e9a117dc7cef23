from __future__ import annotations

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.chains import Quoted
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.verdict import Verdict
from lmdiag.diagnose.verdicts import judge
from lmdiag.model import ExceptionInfo, Facts, Match, Origin, Record, Symptom

DEAD = Symptom("RuntimeError", "Engine core initialization failed. See root cause above.", "APIServer")


def no_card(text: str) -> Match | None:
    return None


def life(first_line: int = 1, *, ready: int | None = None) -> Life:
    found = Life("", first_line)
    found.ready, found.last_line = ready, first_line + 99
    return found


def add(
    life: Life, message: str, line: int, kind: str = "ValueError", *, fatal: bool = True, request: bool = False
) -> Candidate:
    """Put a candidate into a life."""
    found = Candidate(ExceptionInfo(kind, message), Origin("s", line, line + 5, "EngineCore", 7), None)
    found.reports["EngineCore", 7, True] += 1
    found.processes["EngineCore"] = None
    found.fatal, found.request = fatal, request
    life.candidates["text", message] = found
    return found


def died(life: Life, line: int, quote: str | None = None) -> None:
    life.first_symptom = line
    life.symptoms.append((line, DEAD))
    if quote:
        life.quoted.append((line, Quoted("ValueError", quote), "APIServer"))


def said(*lives: Life) -> list[tuple[str | None, str]]:
    """(message of the cause, outcome) of each verdict."""
    return [(item.candidate.info.message if item.candidate else None, item.outcome) for item in judge(lives, no_card)]


def test_a_healthy_life_has_no_verdict() -> None:
    assert said(life(ready=5)) == []


def test_a_failed_start_has_one_cause_and_its_symptoms() -> None:
    only = life()
    add(only, "x y", 10)
    died(only, 30)
    (verdict,) = judge([only], no_card)
    assert (verdict.candidate and verdict.candidate.info.message, verdict.outcome) == ("x y", "start_failed")
    assert verdict.symptoms == [DEAD]
    assert (verdict.first_line, verdict.last_line) == (10, 15)


def test_the_first_strong_exception_is_the_cause() -> None:
    only = life()
    add(only, "peer gone", 5, "BrokenPipeError")
    add(only, "x y", 10)
    add(only, "z", 20)
    died(only, 30)
    (verdict,) = judge([only], no_card)
    assert verdict.candidate
    assert verdict.candidate.info.message == "x y"
    assert [item.message for item in verdict.symptoms] == ["peer gone", "z", DEAD.message]


def test_a_weak_one_is_the_cause_where_nothing_else_is() -> None:
    only = life()
    add(only, "peer gone", 5, "BrokenPipeError")
    assert said(only) == [("peer gone", "start_failed")]


def test_a_weak_one_with_symptoms_tells_only_that_the_cause_is_elsewhere() -> None:
    only = life()
    add(only, "peer gone", 5, "BrokenPipeError")
    died(only, 30)
    (verdict,) = judge([only], no_card)
    assert verdict.candidate is None


def test_what_a_symptom_quotes_is_confirmed() -> None:
    only = life()
    add(only, "first", 5)
    add(only, "second", 10)
    died(only, 30, quote="second")
    assert said(only) == [("second", "start_failed")]


def test_a_quotation_alone_is_the_cause() -> None:
    """Sometimes the executor's message is the only trace left."""
    only = life()
    died(only, 30, quote="x y")
    assert said(only) == [("x y", "start_failed")]


def test_symptoms_alone_leave_the_cause_invisible() -> None:
    only = life()
    died(only, 30)
    (verdict,) = judge([only], no_card)
    assert (verdict.candidate, verdict.outcome, verdict.first_line) == (None, "start_failed", 30)


def test_a_server_that_served_has_died() -> None:
    only = life(ready=5)
    add(only, "x y", 10)
    died(only, 30)
    assert said(only) == [("x y", "died")]


def test_a_killed_worker_is_the_cause() -> None:
    only = life(ready=5)
    only.killed = Record(
        Origin("s", 10, 10, "EngineCore", 7), "ERROR", "x.py", "Worker proc W died unexpectedly (exit code: -9)"
    )
    died(only, 30)
    assert said(only) == [(only.killed.text, "died")]


def test_the_exception_before_a_kill_is_the_cause() -> None:
    only = life(ready=5)
    add(only, "x y", 8)
    only.killed = Record(Origin("s", 10, 10), "ERROR", "x.py", "Worker proc W died unexpectedly (exit code: -9)")
    assert said(only) == [("x y", "died")]


def test_a_clients_mistake_is_the_clients() -> None:
    only = life(ready=5)
    add(only, "bad", 10, fatal=False, request=True)
    assert said(only) == [("bad", "request_failed")]


def test_an_error_of_a_serving_server_is_told() -> None:
    only = life(ready=5)
    add(only, "x y", 10, fatal=False)
    assert said(only) == [("x y", "running")]


def test_a_degraded_server_serves_on() -> None:
    only = life(ready=50)
    add(only, "x y", 10, fatal=False).degraded = True
    assert said(only) == [("x y", "degraded")]


def test_what_happened_long_before_a_death_is_a_matter_of_its_own() -> None:
    only = life(ready=5)
    add(only, "long ago", 10, fatal=False)
    add(only, "x y", 900)
    died(only, 950)
    assert sorted(said(only), key=str) == [("long ago", "running"), ("x y", "died")]


def test_the_noise_of_an_orderly_stop_is_no_failure() -> None:
    only = life(ready=5)
    only.stop = 20
    add(only, "noise", 25)
    died(only, 30)
    assert said(only) == []


def test_a_failure_before_the_stop_is_one() -> None:
    only = life(ready=5)
    only.stop = 20
    add(only, "x y", 10)
    died(only, 30)
    assert said(only) == [("x y", "died")]


def test_a_crash_loop_is_one_verdict() -> None:
    lives = [life(first) for first in (1, 101, 201)]
    for each in lives:
        add(each, "x y", each.first_line + 5)
        died(each, each.first_line + 20)
    (verdict,) = judge(lives, no_card)
    assert (verdict.lives, verdict.first_line, verdict.last_line) == (3, 6, 211)
    assert verdict.life.facts.restarts == 2


def test_the_newest_failed_start_is_the_one_to_repair() -> None:
    lives = [life(1), life(101)]
    for each, message in zip(lives, ("old", "new"), strict=True):
        add(each, message, each.first_line + 5)
        died(each, each.first_line + 20)
    (verdict,) = judge(lives, no_card)
    assert verdict.candidate
    assert verdict.candidate.info.message == "new"
    assert [item.candidate and item.candidate.info.message for item in verdict.earlier] == ["old"]


def test_a_failure_that_was_overcome_is_resolved() -> None:
    lives = [life(1), life(101, ready=150)]
    add(lives[0], "x y", 5)
    died(lives[0], 20)
    (verdict,) = judge(lives, no_card)
    assert verdict.resolved


def test_the_facts_of_a_crash_loop_are_those_of_the_newest_life() -> None:
    lives = [life(1), life(101)]
    for each, version in zip(lives, ("0.9.0", "0.9.1"), strict=True):
        each.facts = Facts(vllm_version=version)
        add(each, "x y", each.first_line + 5)
        died(each, each.first_line + 20)
    (verdict,) = judge(lives, no_card)
    assert verdict.life.facts.vllm_version == "0.9.1"


def test_a_message_in_the_log_that_a_card_fits_is_the_cause() -> None:
    only = life()
    only.said.append(Record(Origin("s", 10, 10), "ERROR", "x.py", "known words"))
    died(only, 30)
    (verdict,) = judge([only], lambda text: Match("a-card", (), "exact") if text == "known words" else None)
    assert verdict.key == ("card", "a-card")


def test_an_invisible_cause_has_no_key() -> None:
    assert Verdict(life(), None, "died").key is None
