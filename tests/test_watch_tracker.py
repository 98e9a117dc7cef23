"""Incidents over time, with findings made by hand and a clock that is a number."""

from __future__ import annotations

import msgspec
import pytest
from report_samples import with_message

from lmdiag.diagnose.diagnoser import Finding
from lmdiag.model import Incident, Loop
from lmdiag.watch.tracker import Report, Schedule, Tracked, Tracker

SCHEDULE = Schedule(remind=(60.0, 600.0), quiet=1000.0, quiet_down=5000.0)


def finding(name: str = "a", *, life: int = 1, occurrences: int = 1, outcome: str = "start_failed", over: bool = False,
            final: bool = False, severity: str = "critical", last: int = 0, restarts: int = 0, seen: tuple[str, str] | None = None) -> Finding:  # fmt: skip
    """A finding whose incident has the id `name-life`."""

    def build() -> Incident:
        made = with_message("x")
        first, last = seen or (None, None)
        return made._replace(
            id=f"{name}-{life}",
            fingerprint=name,
            severity=severity,
            outcome=outcome,
            occurrences=occurrences,
            state="opened",
            facts=made.facts._replace(restarts=restarts),
            first_seen=first,
            last_seen=last,
        )

    return Finding(name, outcome, occurrences, life, last or life + 10, life, over, final, "", build)


def told(reports: list[Report]) -> list[tuple[str, str, int]]:
    """(id, state, count) of reports."""
    return [(report.incident.id, report.incident.state, report.incident.occurrences) for report in reports]


def test_an_incident_opens_once() -> None:
    tracker = Tracker(SCHEDULE)
    assert told(tracker.update("s", [finding()], 0.0, settled=True)) == [("a-1", "opened", 1)]
    assert tracker.update("s", [finding()], 1.0, settled=True) == []
    assert tracker.tick(900.0) == []


def test_before_it_has_settled_only_what_is_final_counts() -> None:
    tracker = Tracker(SCHEDULE)
    assert tracker.update("s", [finding()], 0.0, settled=False) == []
    assert told(tracker.update("s", [finding(final=True)], 0.0, settled=False)) == [("a-1", "opened", 1)]


def test_the_same_cause_in_the_next_life_is_repeated_on_a_widening_schedule() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding(outcome="running")], 0.0, settled=True)
    assert tracker.update("s", [finding(life=50, occurrences=2, outcome="running")], 10.0, settled=True) == []
    assert told(tracker.tick(61.0)) == [("a-1", "repeated", 2)]
    assert tracker.tick(200.0) == []
    tracker.update("s", [finding(life=90, occurrences=5, outcome="running")], 300.0, settled=True)
    assert tracker.tick(600.0) == []
    assert told(tracker.tick(662.0)) == [("a-1", "repeated", 5)]


def test_a_later_start_that_succeeds_resolves_it() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    assert told(tracker.update("s", [finding(over=True)], 5.0, settled=True)) == [("a-1", "resolved", 1)]
    assert tracker.update("s", [finding(over=True)], 6.0, settled=True) == []


def test_soon_after_that_it_goes_on_as_the_same_incident() -> None:
    """A server that comes up and dies again is not a new matter each time."""
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    tracker.update("s", [finding(over=True)], 5.0, settled=True)
    assert told(tracker.update("s", [finding(life=80, occurrences=2)], 9.0, settled=True)) == [("a-1", "repeated", 2)]


def test_long_after_that_it_opens_under_a_new_id_and_counts_from_one() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    tracker.update("s", [finding(over=True)], 5.0, settled=True)
    [(name, state, count)] = told(tracker.update("s", [finding(life=80, occurrences=2)], 9000.0, settled=True))
    assert (state, count) == ("opened", 1)
    assert name != "a-1"


def test_a_server_that_comes_up_and_dies_again_and_again_is_in_a_loop() -> None:
    """Its incident stays open while it loops, and is over when no failure came for half an hour."""
    tracker = Tracker(SCHEDULE)
    states: list[str] = []
    for number in range(6):
        for over in (False, True):
            now = 100.0 * number + 50 * over
            reports = tracker.update("s", [finding(life=1 + number, occurrences=1 + number, outcome="died", over=over)], now, settled=True)  # fmt: skip
            states += [f"{report.incident.state}{'*' if report.incident.loop else ''}" for report in reports]
    assert states == ["opened", "resolved", "repeated", "resolved", "repeated*"]
    assert told(tracker.tick(801.0)) == [("a-1", "repeated", 6)]
    assert tracker.due() == 500.0 + 1800.0
    assert told(tracker.tick(2300.0)) == [("a-1", "resolved", 6)]


def test_what_was_over_when_it_was_first_seen_is_not_told() -> None:
    """The daemon reads the past at its first start."""
    tracker = Tracker(SCHEDULE)
    assert tracker.update("s", [finding(over=True)], 0.0, settled=True, baseline=True) == []
    assert [item.open for item in tracker.incidents] == [False]


def test_what_came_and_went_between_two_looks_is_told() -> None:
    """The daemon was away, or the server was quick."""
    tracker = Tracker(SCHEDULE)
    reports = tracker.update("s", [finding(over=True)], 0.0, settled=True)
    assert told(reports) == [("a-1", "opened", 1), ("a-1", "resolved", 1)]


@pytest.mark.parametrize(("outcome", "after"), [("running", 1000.0), ("died", 5000.0)])
def test_it_is_over_when_it_has_been_quiet(outcome: str, after: float) -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding(outcome=outcome)], 0.0, settled=True)
    assert tracker.due() == after
    assert tracker.tick(after - 1) == []
    assert told(tracker.tick(after)) == [("a-1", "resolved", 1)]
    assert tracker.due() is None


def test_a_stall_that_goes_on_is_not_quiet() -> None:
    tracker = Tracker(SCHEDULE)
    for number in range(10):
        now = number * 500.0
        assert [item.incident.state for item in tracker.update("s", [finding(outcome="degraded", last=10 + number)], now, settled=True)] == ["opened"] * (number == 0)
        assert tracker.tick(now + 1) == []


def test_another_cause_in_a_later_life_takes_its_place() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding("a")], 0.0, settled=True)
    reports = tracker.update("s", [finding("b", life=50)], 5.0, settled=True)
    assert told(reports) == [("b-50", "opened", 1), ("a-1", "resolved", 1)]


def test_what_is_not_shown_any_more_stays_open_without_another_failure() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding("a", life=70)], 0.0, settled=True)
    assert tracker.update("s", [finding("b", life=50)], 5.0, settled=True) != []
    assert sorted(item.fingerprint for item in tracker.incidents if item.open) == ["a", "b"]


def test_what_is_not_known_any_more_is_not_over() -> None:
    """After an upgrade the log is read from its current life on, and its lines are counted anew."""
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding("a", life=70)], 0.0, settled=True)
    tracker.rebase("s", ())
    assert tracker.update("s", [], 5.0, settled=True) == []
    assert told(tracker.update("s", [finding("a", life=9, occurrences=1)], 6.0, settled=True)) == []
    assert [(item.id, item.count, item.open) for item in tracker.incidents] == [("a-70", 2, True)]


def test_a_server_that_comes_up_after_that_resolves_it() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding("a", life=70)], 0.0, settled=True)
    tracker.rebase("s", ())
    assert told(tracker.update("s", [], 5.0, settled=True, serving={"": 3})) == [("a-70", "resolved", 1)]


def test_another_service_that_fails_or_comes_up_resolves_nothing() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding("a", life=70)._replace(service="one")], 0.0, settled=True)
    tracker.rebase("s", ())
    other = finding("b", life=90)._replace(service="two")
    assert [report.incident.state for report in tracker.update("s", [other], 5.0, settled=True, serving={"two": 99})] == ["opened"]


def test_sources_do_not_mix() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    assert told(tracker.update("t", [finding()], 1.0, settled=True)) == [("a-1", "opened", 1)]
    assert told(tracker.update("t", [finding(over=True)], 2.0, settled=True)) == [("a-1", "resolved", 1)]
    assert [item.source for item in tracker.incidents if item.open] == ["s"]


def test_below_the_least_severity_it_is_counted_and_not_told() -> None:
    tracker = Tracker(SCHEDULE)
    low = finding(severity="info", outcome="request_failed")
    assert tracker.update("s", [low], 0.0, settled=True) == []
    assert tracker.tick(1000.0) == []
    assert [item.count for item in tracker.incidents] == [1]


def test_what_becomes_worse_is_told_at_once() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding(severity="warning", outcome="running")], 0.0, settled=True)
    reports = tracker.update("s", [finding(severity="critical", outcome="died")], 1.0, settled=True)
    assert [(item.incident.severity, item.incident.state) for item in reports] == [("critical", "repeated")]


def test_three_failures_in_half_an_hour_are_a_crash_loop_told_at_once() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    tracker.update("s", [finding(life=20, occurrences=2)], 10.0, settled=True)
    [report] = tracker.update("s", [finding(life=40, occurrences=3)], 20.0, settled=True)
    assert report.incident.state == "repeated"
    assert report.incident.loop == Loop(3, 20.0)


def test_failures_far_apart_are_no_crash_loop() -> None:
    tracker = Tracker(SCHEDULE)
    for number in range(4):
        reports = tracker.update("s", [finding(life=1 + number, occurrences=1 + number)], number * 1000.0, settled=True)
        assert [report.incident.loop for report in reports if report.incident.loop] == []


def test_a_loop_in_the_past_is_seen_by_the_logs_own_times() -> None:
    tracker = Tracker(SCHEDULE)
    past = finding(life=90, occurrences=5, restarts=4, seen=("12-01 02:00:00", "12-01 02:12:00"))
    [report] = tracker.update("s", [past], 1_796_100_000.0, settled=True)  # 2026-12-01
    assert report.incident.loop == Loop(5, 720.0)


def test_a_restart_goes_on_with_what_was_saved() -> None:
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding()], 0.0, settled=True)
    saved = [msgspec.json.decode(msgspec.json.encode(item), type=Tracked) for item in tracker.changed.values()]
    again = Tracker(SCHEDULE, saved)
    assert again.update("s", [finding()], 1.0, settled=True) == []
    assert told(again.update("s", [finding(over=True)], 2.0, settled=True)) == [("a-1", "resolved", 1)]


def test_after_a_new_count_of_lines_nothing_is_told_again() -> None:
    """A state of another version cannot be used: the log is read anew, and its lines have other numbers."""
    tracker = Tracker(SCHEDULE)
    tracker.update("s", [finding(life=100), finding("b", life=100)], 0.0, settled=True)
    tracker.update("s", [finding(life=100, over=True), finding("b", life=100)], 1.0, settled=True)
    findings = [finding(life=900, over=True), finding("b", life=900)]
    tracker.rebase("s", findings)
    assert tracker.update("s", findings, 2.0, settled=True) == []


def test_closed_ones_are_bounded_but_not_while_a_log_shows_them() -> None:
    tracker = Tracker(SCHEDULE)
    for number in range(700):
        tracker.update(f"s{number}", [finding(over=True)], float(number), settled=True, baseline=True)
        tracker.update(f"s{number}", [], float(number), settled=True)
    assert len(tracker.incidents) <= 501
    many = [finding(f"f{number}", over=True) for number in range(700)]
    tracker = Tracker(SCHEDULE)
    tracker.update("s", many, 0.0, settled=True, baseline=True)
    assert tracker.update("s", many, 1.0, settled=True) == []
    assert len(tracker.incidents) == 700
