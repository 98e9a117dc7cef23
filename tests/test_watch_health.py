from __future__ import annotations

from lmdiag.watch.counters import DaemonStatus, SourceStatus
from lmdiag.watch.health import GRACE, STALL, Health, current_problems

GOOD = SourceStatus("a.log", "file", required=True)
BAD = GOOD._replace(problem="it does not exist")


def at(now: float, *sources: SourceStatus) -> DaemonStatus:
    return DaemonStatus(1, "1.0", 0.0, now, sources)


def test_a_required_source_may_be_gone_for_a_moment() -> None:
    health = Health()
    health.update(at(100.0, BAD))
    assert health.problems(100.0 + GRACE, None) == []
    assert health.problems(100.5 + GRACE, None) == ["a.log: it does not exist (for 16 s)"]


def test_the_time_counts_from_the_first_status_with_a_problem() -> None:
    health = Health()
    health.update(at(100.0, BAD))
    health.update(at(110.0, BAD._replace(problem="permission denied")))
    assert health.problems(116.0, None) == ["a.log: permission denied (for 16 s)"]


def test_a_source_that_came_back_begins_anew() -> None:
    health = Health()
    for now, source in ((100.0, BAD), (110.0, GOOD), (120.0, BAD)):
        health.update(at(now, source))
    assert health.problems(130.0, None) == []
    assert health.problems(136.0, None) != []


def test_a_source_that_need_not_be_there_is_no_fault() -> None:
    health = Health()
    health.update(at(100.0, BAD._replace(required=False)))
    assert health.problems(1000.0, None) == []


def test_a_loop_that_is_stuck_is_a_fault() -> None:
    health = Health()
    assert health.problems(100.0 + STALL, 100.0) == []
    assert health.problems(101.0 + STALL, 100.0) == ["the daemon has not gone round for 31 s"]


def test_a_person_is_told_everything_at_once() -> None:
    status = at(100.0, GOOD, BAD._replace(required=False))._replace(config_problem="unknown key")
    assert current_problems(status, 101.0) == [
        "unknown key",
        "a.log: it does not exist",
    ]
    assert current_problems(at(100.0, GOOD), 132.0) == ["the daemon has not gone round for 32 s"]
