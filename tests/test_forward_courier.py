"""When a sink is sent what: order, further attempts, dead letters, storms, alerts that are active."""

from __future__ import annotations

from pathlib import Path

import pytest
from forwarding import OK, FakeSink, Post, cards, incident, put, report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from messages import NOW
from report_samples import CARD

from lmdiag.errors import StateError
from lmdiag.forward.courier import GIVE_UP, NEVER, Courier
from lmdiag.forward.message import GONE, REJECTED, RETRY, Message, Outcome
from lmdiag.forward.outbox import DEAD, DELIVERED, MERGED, STATUSES, WAITING, Outbox
from lmdiag.forward.rows import Alert, encoded

FAILED = Outcome(RETRY, "connection refused")


def statuses(outbox: Outbox) -> list[tuple[str, str, str]]:
    """(key, status, detail) of all deliveries."""
    return [(one.key, one.status, one.detail) for one in outbox.select(None, STATUSES)]


def alert(outbox: Outbox, message: Message, *, sent: bool = True) -> None:
    """Note that a sink was told of an incident."""
    one = message.incident
    kept = Alert("x", one.id, message.alert, NOW, NOW, one.severity, False, sent, False, encoded(message))  # noqa: FBT003
    with outbox.transaction():
        outbox.set_alert(kept)


def test_messages_go_in_their_order_with_their_card(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.put(report("a"), report("b"), report("c"))
    assert post.run() == NEVER
    assert post.keys == ["a-opened-1", "b-opened-1", "c-opened-1"]
    assert {one.card for one in post.sink.delivered} == {CARD}
    assert post.courier.results == {"delivered": 3}


def test_what_was_delivered_is_not_put_there_again(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.put(report("a"))
    post.run()
    post.put(report("a"))
    assert post.run() == NEVER
    assert post.keys == ["a-opened-1"]


def test_a_failing_receiver_is_tried_at_widening_pauses_and_nothing_overtakes(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(*[FAILED] * 5))
    post.put(report("a"), report("b"))
    times = []
    while not post.sink.delivered:
        due = post.courier.step()
        times.append(due - NOW)
        post.clock.now = max(post.clock.now, due)
    assert times[:-1] == [0, 1, 1, 3, 3, 7, 7, 15, 15, 31]
    assert {tuple(one.key for one in attempt) for attempt in post.sink.sent} == {("a-opened-1",)}
    post.run(post.clock.now)
    assert post.keys == ["a-opened-1", "b-opened-1"]


def test_pauses_end_at_five_minutes_and_differ(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED))
    post.put(report("a"))
    post.run(NOW + 7200)
    first, second = post.courier.step() - post.clock.now, 360.0
    assert 0 < first <= 300
    courier = Courier(post.config, post.sink, post.outbox, cards, post.clock, chance=lambda: 1.0)
    post.clock.now += first
    courier.step()
    assert courier.step() - post.clock.now == pytest.approx(second)


def test_the_receivers_wish_is_kept(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(FAILED._replace(after=120.0), FAILED._replace(after=3600.0)))
    post.put(report("a"))
    assert post.run() == NOW + 120.5
    assert post.run(NOW + 121) == NOW + 120.5 + 3600.5


def test_after_24_hours_of_trying_it_is_a_dead_letter(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED))
    post.put(report("a"))
    post.run(NOW + GIVE_UP - 400)
    assert [status for _, status, _ in statuses(post.outbox)] == [WAITING]
    post.run(NOW + GIVE_UP + 400)
    assert statuses(post.outbox) == [("a-opened-1", DEAD, "given up after 24 hours: connection refused")]


def test_a_node_that_was_off_for_days_tries_for_24_hours_more(tmp_path: Path) -> None:
    Post(tmp_path, FakeSink()).put(report("a"), report("b"))
    post = Post(tmp_path, FakeSink(*[FAILED] * 9))
    post.clock.now = NOW + 3 * GIVE_UP
    post.courier = Courier(post.config, post.sink, post.outbox, cards, post.clock, steady=post.clock, chance=lambda: 0.5)
    post.run(post.clock.now + 3600)
    assert post.keys == ["a-opened-1", "b-opened-1"]


def test_the_schedule_outlives_the_process(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED))
    post.put(report("a"))
    due = post.run(NOW + 100)
    again = Post(tmp_path, FakeSink())
    again.clock.now = NOW + 100
    assert again.courier.step() == due
    assert again.sink.sent == []


def test_a_clock_that_was_set_back_does_not_stop_delivery(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(FAILED))
    post.put(report("a"))
    post.run()
    post.clock.now = NOW - 30 * 86400
    post.courier.step()
    assert post.keys == ["a-opened-1"]


def test_deliveries_of_the_future_are_no_burst(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), burst=1)
    post.put(report("a"))
    post.run()
    post.clock.now = NOW - 86400
    post.put(report("b"))
    post.courier.step()
    assert post.keys == ["a-opened-1", "b-opened-1"]


def test_what_was_delivered_is_not_sent_again_while_that_cannot_be_written_down(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.put(report("a"))
    post.outbox = Outbox(str(tmp_path))
    post.courier.outbox = Outbox(str(tmp_path), timeout=0)
    with post.outbox.transaction():
        for _ in range(3):
            with pytest.raises(StateError):
                post.courier.step()
    assert post.courier.step() == NEVER
    assert len(post.sink.sent) == 1
    assert statuses(post.outbox) == [("a-opened-1", DELIVERED, "")]


def test_at_once_is_not_taken_by_its_word_for_ever(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED._replace(after=0.0)))
    post.put(report("a"))
    post.run(NOW + 600)
    assert len(post.sink.sent) < 30


def test_a_refused_message_is_a_dead_letter_and_the_next_one_goes(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(Outcome(REJECTED, "HTTP 400 Bad Request")))
    post.put(report("a"), report("b"))
    post.run()
    assert statuses(post.outbox) == [
        ("a-opened-1", DEAD, "HTTP 400 Bad Request"),
        ("b-opened-1", DELIVERED, ""),
    ]


class Picky(FakeSink):
    """Refuses each batch in which one of some keys is, as Alertmanager does with a bad alert."""

    def __init__(self, *bad: str, batch: int) -> None:
        super().__init__(batch=batch)
        self.bad = bad

    def send(self, messages, now):  # type: ignore[no-untyped-def]
        """Refuse or take the whole."""
        self.default = Outcome(REJECTED, "HTTP 400") if any(one.key in self.bad for one in messages) else OK
        return super().send(messages, now)


@given(st.sets(st.integers(0, 12)), st.integers(1, 13))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_of_a_refused_batch_only_the_bad_messages_are_dead(tmp_path_factory, bad: set[int], batch: int) -> None:  # type: ignore[no-untyped-def]
    sink = Picky(*(f"{number}-opened-1" for number in bad), batch=batch)
    post = Post(tmp_path_factory.mktemp("outbox"), sink)
    post.put(*(report(str(number)) for number in range(13)))
    post.run()
    assert post.keys == [f"{number}-opened-1" for number in range(13) if number not in bad]
    assert [key for key, status, _ in statuses(post.outbox) if status == DEAD] == [f"{n}-opened-1" for n in sorted(bad)]


def test_a_batch_whose_first_half_must_wait_keeps_the_order(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(Outcome(REJECTED, "HTTP 400"), FAILED, batch=4))
    post.put(*(report(name) for name in "abcd"))
    post.run(NOW + 5)
    assert post.keys == ["a-opened-1", "b-opened-1", "c-opened-1", "d-opened-1"]


def test_a_receiver_that_is_gone_disables_its_sink_until_its_url_changes(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(Outcome(GONE, "HTTP 410 Gone")))
    post.put(report("a"), report("b"))
    post.run()
    assert [status for _, status, _ in statuses(post.outbox)] == [DEAD, DEAD]
    assert len(post.sink.sent) == 1
    assert post.courier.problem == "HTTP 410 Gone"
    again = Post(tmp_path, FakeSink())
    again.put(report("c"))
    again.run()
    assert again.sink.sent == []
    assert again.courier.results == {"gone": 1}
    elsewhere = Post(tmp_path, FakeSink(), url="http://y")
    elsewhere.put(report("d"))
    elsewhere.run()
    assert elsewhere.keys == ["d-opened-1"]


def test_a_secret_url_that_changes_in_its_file_enables_its_sink(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("https://chat.example/old")
    post = Post(tmp_path, FakeSink(Outcome(GONE, "HTTP 410 Gone")), url="", url_file=str(file))
    post.put(report("a"))
    post.run()
    file.write_text("https://chat.example/new")
    post.put(report("b"))
    post.run()
    assert post.keys == ["b-opened-1"]


def test_retrying_a_dead_letter_enables_its_sink(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(Outcome(GONE, "HTTP 410 Gone")))
    post.put(report("a"))
    post.run()
    assert post.outbox.revive(post.outbox.select("x", [DEAD]), NOW) == 1
    post.run()
    assert post.keys == ["a-opened-1"]


def test_a_defect_in_a_sink_costs_no_message_and_shows_no_text(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.sink.defect = KeyError("whsec_secret")
    post.put(report("a"))
    post.run()
    assert "KeyError" in post.courier.problem
    assert "whsec" not in post.courier.problem
    post.sink.defect = None
    post.run(NOW + 2)
    assert post.keys == ["a-opened-1"]


def test_what_another_version_wrote_is_a_dead_letter_that_keeps_its_content(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.put(report("a"), report("b"))
    with post.outbox.transaction():
        post.outbox._db.execute("UPDATE deliveries SET body = '[\"of the future\"]' WHERE key = 'a-opened-1'")
    post.run()
    assert post.keys == ["b-opened-1"]
    (dead,) = post.outbox.select("x", [DEAD])
    assert dead.body is not None
    assert dead.detail == "another version of lmdiag wrote it, and this one cannot read it"


# -- storms ----------------------------------------------------------------------------------------------------------


def test_the_last_of_a_burst_stands_for_all_that_wait(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), burst=5)
    post.put(*(report(str(number)) for number in range(40)))
    post.run()
    *single, summary = post.sink.delivered
    assert [one.incident.id for one in single] == ["0", "1", "2", "3"]
    assert [member.id for member in summary.members] == [str(number) for number in range(4, 40)]
    assert [status for _, status, _ in statuses(post.outbox)].count(MERGED) == 36


def test_after_a_burst_what_comes_waits_for_the_minute_to_end(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), burst=2)
    post.put(report("a"), report("b"))
    post.run()
    post.put(report("c"))
    assert post.run() == NOW + 60
    post.run(NOW + 60)
    assert post.keys == ["a-opened-1", "b-opened-1", "c-opened-1"]


def test_a_summary_has_one_key_over_all_attempts(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED), burst=1)
    post.put(*(report(str(number)) for number in range(5)))
    post.run(NOW + 60)
    post.sink.default = OK
    post.run(NOW + 600)
    assert len({one.key for attempt in post.sink.sent for one in attempt}) == 1
    assert len(post.sink.delivered) == 1
    assert len(post.sink.delivered[0].members) == 5


def opened_and_held(outbox: Outbox, *names: str) -> None:
    """Put there what a forwarder does when incidents open."""
    for name in names:
        alert(outbox, report(name), sent=False)
        put(outbox, report(name))


def ended(outbox: Outbox, *names: str) -> None:
    """Put there what a forwarder does when incidents end."""
    with outbox.transaction():
        for name in names:
            outbox.set_alert(outbox.alerts("x")[name]._replace(resolved=True))
            outbox.add("x", report(name, "resolved"), NOW)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("down", [False, True], ids=["", "while the receiver is down"])
def test_a_storms_alert_is_over_when_its_last_incident_is(tmp_path: Path, together: bool, down: bool) -> None:
    names = [str(number) for number in range(700)]
    post = Post(tmp_path, FakeSink(default=FAILED if down else OK), type="pagerduty", burst=1)
    opened_and_held(post.outbox, *names)
    post.run(NOW + 30)
    post.clock.now += 3600
    for some in [names] if together else [names[:400], names[400:]]:
        ended(post.outbox, *some)
        post.run(post.clock.now)
    post.sink.default = OK
    post.run(post.clock.now + 7200)
    assert post.outbox.alerts("x") == {}
    assert post.outbox.waiting("x", 1) == []
    storm, *_, last = post.sink.delivered
    assert len(post.sink.delivered) == 2
    assert (last.alert, last.incident.state, storm.incident.state) == (storm.alert, "resolved", "opened")


def test_reminders_of_a_storms_incidents_make_no_other_storm(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), type="pagerduty", burst=1)
    opened_and_held(post.outbox, *"abcd")
    post.run()
    post.clock.now += 3600
    post.put(*(report(name, "repeated", 2) for name in "abcd"))
    post.run(post.clock.now + 600)
    storm, *again = post.sink.delivered
    assert [bool(one.members) for one in again] == [False] * 4
    assert {one.alert for one in again} == {storm.alert}


def test_the_end_of_an_alert_that_a_service_holds_is_never_part_of_a_summary(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), type="pagerduty", burst=1)
    alert(post.outbox, report("held"))
    post.put(report("held", "resolved"), *(report(str(number)) for number in range(4)))
    post.run(NOW + 120)
    assert [(one.key, bool(one.members)) for one in post.sink.delivered] == [
        ("held-resolved-1", False),
        (post.sink.delivered[1].key, True),
    ]


# -- alerts that are active ------------------------------------------------------------------------------------------


def test_active_alerts_are_sent_again_until_they_are_over(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(batch=64), type="alertmanager", resend=60.0)
    post.put(report("a"))
    alert(post.outbox, report("a"))
    assert post.run(NOW + 150) == NOW + 180
    assert [[one.key for one in attempt] for attempt in post.sink.sent] == [["a-opened-1"]] * 4
    with post.outbox.transaction():
        post.outbox.drop_alert("x", "a")
    post.run(NOW + 600)
    assert len(post.sink.sent) == 4


def test_a_refused_alert_stops_no_others(tmp_path: Path) -> None:
    sink = Picky("bad-opened-1", batch=64)
    post = Post(tmp_path, sink, type="alertmanager", resend=60.0)
    for name in ("a", "bad", "b"):
        alert(post.outbox, report(name))
    post.run()
    assert post.keys == ["a-opened-1", "b-opened-1"]


def test_only_who_ends_alerts_keeps_them_alive(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), type="alertmanager")
    alert(post.outbox, report("a"))
    scan = Courier(post.config, post.sink, post.outbox, cards, post.clock, resends=False)
    assert scan.step() == NEVER
    assert post.sink.sent == []


def test_other_services_are_told_once(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(), type="slack")
    alert(post.outbox, report("a"))
    assert post.run(NOW + 1000) == NEVER
    assert post.sink.sent == []


def test_an_alert_without_a_card_that_can_be_had_is_sent_without(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink())
    post.put(report("a")._replace(incident=incident("a")._replace(card="gone")))
    post.run()
    assert [one.card for one in post.sink.delivered] == [None]


def test_waiting_messages_stay_there(tmp_path: Path) -> None:
    post = Post(tmp_path, FakeSink(default=FAILED))
    post.put(report("a"))
    post.run(NOW + 3600)
    assert [(one.status, one.attempts > 10) for one in post.outbox.select("x", STATUSES)] == [(WAITING, True)]
    assert post.outbox.count("x")[:2] == (1, 0)
