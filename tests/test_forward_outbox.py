"""What is to be delivered survives, is bounded, and can be looked at."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from forwarding import incident, put, report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from messages import NOW, message, summary

from lmdiag.errors import StateError
from lmdiag.forward.message import Message
from lmdiag.forward.outbox import DEAD, DELIVERED, FILE, KEPT, STATUSES, WAITING, Outbox
from lmdiag.forward.rows import Alert, decoded, encoded

DAY = 86400.0


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    """An empty outbox."""
    return Outbox(str(tmp_path))


def alert(message: Message, *, resolved: bool = False) -> Alert:
    """What sink x was told of an incident."""
    one = message.incident
    return Alert("x", one.id, message.alert, NOW, NOW, one.severity, looping=False, sent=True, resolved=resolved, body=encoded(message))


def kept(outbox: Outbox) -> list[tuple[str, str]]:
    """(key, status) of all."""
    return [(one.key, one.status) for one in outbox.select(None, STATUSES)]


@pytest.mark.parametrize("one", [message(), summary(60, 3), message("resolved")])
def test_a_message_is_read_as_it_was_written(one: Message) -> None:
    assert decoded(encoded(one)) == one._replace(card=None)


def test_what_an_older_version_wrote_is_read(tmp_path: Path) -> None:
    """A later field has a default, so a row without it is a message still."""
    text = encoded(message()).decode()
    assert text.endswith(",[],0,null]")
    assert decoded(text.removesuffix(",[],0,null]").encode() + b"]") == message()._replace(card=None)


def test_it_outlives_its_process(tmp_path: Path) -> None:
    first = Outbox(str(tmp_path))
    put(first, report("a"), report("b"))
    first.close()
    assert [one.key for one in Outbox(str(tmp_path)).waiting("x", 10)] == ["a-opened-1", "b-opened-1"]


def test_a_commit_waits_for_the_disk(outbox: Outbox) -> None:
    """WAL and FULL: what was put there survives a power cut."""
    assert outbox._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert outbox._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_transaction_is_all_or_nothing(outbox: Outbox) -> None:
    def fail() -> None:
        with outbox.transaction():
            outbox.add("x", report("a"), NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert kept(outbox) == []


def test_two_threads_write_at_once(tmp_path: Path) -> None:
    def fill(name: str) -> None:
        mine = Outbox(str(tmp_path), checked=False)
        for number in range(50):
            put(mine, report(f"{name}{number}"))
        mine.close()

    Outbox(str(tmp_path)).close()
    threads = [threading.Thread(target=fill, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [one.incident for one in Outbox(str(tmp_path)).select(None, [WAITING])]
    assert [name for name in found if name[0] == "a"] == [f"a{number}" for number in range(50)]
    assert len(found) == 100


def test_the_end_of_an_incident_ends_its_alert_once_it_was_told(outbox: Outbox) -> None:
    with outbox.transaction():
        outbox.set_alert(alert(report("a"), resolved=True))
    put(outbox, report("a", "resolved"))
    assert set(outbox.alerts("x")) == {"a"}
    outbox.finish(outbox.waiting("x", 1), DELIVERED, NOW)
    assert outbox.alerts("x") == {}


def test_an_incident_that_opens_again_meanwhile_keeps_its_alert(outbox: Outbox) -> None:
    put(outbox, report("a", "resolved"))
    with outbox.transaction():
        outbox.set_alert(alert(report("a", "repeated")))
    outbox.finish(outbox.waiting("x", 1), DELIVERED, NOW)
    assert set(outbox.alerts("x")) == {"a"}


def test_what_is_done_can_be_shown_for_a_week(outbox: Outbox) -> None:
    put(outbox, report("a"))
    outbox.finish(outbox.waiting("x", 1), DELIVERED, NOW)
    (one,) = outbox.select(None, [DELIVERED])
    assert one.message == report("a")._replace(card=None)
    assert outbox.trim(NOW + KEPT - 1, age=DAY, size=1 << 20) == []
    assert len(kept(outbox)) == 1
    outbox.trim(NOW + KEPT + 1, age=DAY, size=1 << 20)
    assert kept(outbox) == []


def test_what_is_done_makes_room_first_and_keeps_its_key(outbox: Outbox) -> None:
    put(outbox, *(report(name) for name in "abc"))
    outbox.finish(outbox.waiting("x", 1), DEAD, NOW, "HTTP 400")
    (_, waiting) = outbox.waiting("x", 2)
    outbox.finish([waiting], DELIVERED, NOW)
    size = len(encoded(report("a"))) + 500
    assert outbox.trim(NOW, age=DAY, size=2 * size) == []
    assert kept(outbox) == [("a-opened-1", DEAD), ("b-opened-1", WAITING), ("c-opened-1", DELIVERED)]
    assert [one.key for one in outbox.select(None, STATUSES) if one.body is None] == ["c-opened-1"]


def test_a_report_that_keeps_coming_stays_known(outbox: Outbox) -> None:
    put(outbox, report("a"))
    outbox.finish(outbox.waiting("x", 1), DELIVERED, NOW)
    put(outbox, report("a"), now=NOW + KEPT - 1)
    outbox.trim(NOW + KEPT + 1, age=DAY, size=1 << 20)
    assert kept(outbox) == [("a-opened-1", DELIVERED)]


def test_old_dead_letters_go_and_are_told(outbox: Outbox) -> None:
    put(outbox, report("a"), report("b"))
    outbox.finish(outbox.waiting("x", 1), DEAD, NOW, "HTTP 400")
    assert outbox.trim(NOW + DAY - 1, age=DAY, size=1 << 20) == []
    assert outbox.trim(NOW + DAY + 1, age=DAY, size=1 << 20) == [("x", DEAD)]
    assert kept(outbox) == [("b-opened-1", WAITING)]


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_in_a_full_outbox_the_oldest_dead_letters_go_first(
    tmp_path_factory: pytest.TempPathFactory, dead: list[bool], room: int
) -> None:
    outbox = Outbox(str(tmp_path_factory.mktemp("outbox")))
    put(outbox, *(report(f"{number:02}") for number in range(len(dead))))
    for one, is_dead in zip(outbox.waiting("x", 100), dead, strict=True):
        if is_dead:
            outbox.finish([one], DEAD, NOW, "HTTP 400")
    size = len(encoded(report("00"))) + 500
    lost = outbox.trim(NOW, age=DAY, size=room * size)
    order = [*(n for n, is_dead in enumerate(dead) if is_dead), *(n for n, is_dead in enumerate(dead) if not is_dead)]
    left = sorted(order[max(0, len(dead) - room) :])
    assert [key for key, _ in kept(outbox)] == [f"{number:02}-opened-1" for number in left]
    assert len(lost) == len(dead) - len(left)


def test_it_is_found_by_number_key_and_incident(outbox: Outbox) -> None:
    put(outbox, report("a"), report("a", "resolved"), report("b"))
    assert [one.key for one in outbox.find("a")] == ["a-opened-1", "a-resolved-1"]
    assert [one.key for one in outbox.find("b-opened-1")] == ["b-opened-1"]
    assert [one.key for one in outbox.find("3")] == ["b-opened-1"]
    assert outbox.find("nothing") == []


def test_dead_letters_come_back_to_life_in_their_place(outbox: Outbox) -> None:
    put(outbox, report("a"), report("b"))
    outbox.finish(outbox.waiting("x", 1), DEAD, NOW, "HTTP 400")
    assert outbox.revive(outbox.select("x", STATUSES), NOW + 5) == 2
    assert [(one.key, one.next_at, one.attempts) for one in outbox.waiting("x", 10)] == [
        ("a-opened-1", NOW + 5, 0),
        ("b-opened-1", NOW + 5, 0),
    ]


def test_a_dead_letter_that_later_news_has_overtaken_stays_dead(outbox: Outbox) -> None:
    """PagerDuty would open an alert that nobody ends."""
    put(outbox, report("a"), report("a", "resolved"), report("b"))
    first, second, _ = outbox.waiting("x", 3)
    outbox.finish([first], DEAD, NOW, "HTTP 400")
    outbox.finish([second], DELIVERED, NOW)
    assert outbox.revive(outbox.select("x", [DEAD]), NOW) == 0
    assert kept(outbox)[0] == ("a-opened-1", DEAD)


def test_what_was_delivered_meanwhile_is_neither_sent_again_nor_dropped(outbox: Outbox) -> None:
    put(outbox, report("a"))
    seen = outbox.waiting("x", 1)
    outbox.finish(seen, DELIVERED, NOW)
    assert (outbox.revive(seen, NOW), outbox.drop(seen)) == (0, 0)
    assert kept(outbox) == [("a-opened-1", DELIVERED)]


@pytest.mark.parametrize(("state", "sent", "left"), [("opened", False, False), ("repeated", True, True), ("resolved", True, False)])
def test_dropping_a_report_drops_what_the_sink_would_know_by_it(outbox: Outbox, state: str, sent: bool, left: bool) -> None:
    put(outbox, report("a", state))
    with outbox.transaction():
        outbox.set_alert(alert(report("a", state), resolved=state == "resolved")._replace(sent=sent))
    outbox.drop(outbox.waiting("x", 1))
    assert bool(outbox.alerts("x")) is left


def test_a_summary_that_was_delivered_meanwhile_keeps_its_incidents(outbox: Outbox) -> None:
    """`drop` has seen it waiting; without them, nobody would end the storm."""
    put(outbox, report("a"), report("b"))
    with outbox.transaction():
        for name in "ab":
            outbox.set_alert(alert(report(name))._replace(sent=False))
    outbox.merge(outbox.waiting("x", 2), summary(2), NOW)
    seen = outbox.waiting("x", 1)
    outbox.finish(seen, DELIVERED, NOW)
    assert outbox.drop(seen) == 0
    assert {one.alert for one in outbox.alerts("x").values()} == {"storm-1"}


def test_what_waits_for_a_sink_that_is_no_more_becomes_a_dead_letter(outbox: Outbox) -> None:
    put(outbox, report("a"), report("b"))
    put(outbox, report("c"), sink="gone", now=NOW)
    put(outbox, report("d"), sink="gone", now=NOW + DAY)
    outbox.abandon(["x"], NOW + 1, NOW + DAY)
    assert [(one.key, one.detail) for one in outbox.select(None, [DEAD])] == [("c-opened-1", "no sink of this name is configured")]
    assert len(outbox.select(None, [WAITING])) == 3


def test_it_counts_by_sink(outbox: Outbox) -> None:
    put(outbox, report("a"), report("b"), now=NOW)
    put(outbox, report("c"), sink="y", now=NOW + 1)
    outbox.finish(outbox.waiting("x", 1), DEAD, NOW, "HTTP 400")
    assert [outbox.count(name) for name in "xyz"] == [(1, 1, NOW), (1, 0, NOW + 1), (0, 0, None)]


def test_a_file_that_is_another_programs_is_put_aside(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("CREATE TABLE deliveries (x)")
    db.close()
    outbox = Outbox(str(tmp_path))
    assert "put aside" in outbox.problem
    put(outbox, report("a"))


def test_a_locked_outbox_is_an_error_that_says_so(tmp_path: Path) -> None:
    first, second = Outbox(str(tmp_path)), Outbox(str(tmp_path), timeout=0)
    with first.transaction(), pytest.raises(StateError, match="locked"):
        put(second, report("a"))


def test_incidents_with_bytes_that_are_no_utf8_are_kept(outbox: Outbox) -> None:
    put(outbox, report("a")._replace(incident=incident("a")._replace(source="\udcff.log")))
    (one,) = outbox.waiting("x", 1)
    assert one.message is not None
    assert one.message.incident.source == "?.log"
