"""Reports become messages, once for each sink that wants them; threads deliver them; what nobody knows any more is ended."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forwarding import Clock, cards, incident
from messages import NOW
from receiver import Answer, Receiver, hang

from lmdiag.config import SinkConfig, WatchConfig
from lmdiag.errors import StateError
from lmdiag.forward.forwarder import Forwarder, Told
from lmdiag.forward.message import Message
from lmdiag.forward.outbox import DEAD, DELIVERED, FILE, STATUSES, WAITING, Outbox
from lmdiag.forward.rounds import LOCK, Turn
from lmdiag.model import Incident


def sink(url: str = "http://127.0.0.1:9", name: str = "x", **settings: object) -> SinkConfig:
    """A webhook."""
    return SinkConfig(**{"name": name, "type": "webhook", "url": url, "timeout": 5.0, **settings})  # type: ignore[arg-type]


def config(directory: Path, *sinks: SinkConfig, **settings: object) -> WatchConfig:
    """The configuration of a node."""
    plain: dict[str, object] = {"state": str(directory), "sinks": sinks, "instance": "node7", **settings}
    return WatchConfig(**plain)  # type: ignore[arg-type]


def opened(directory: Path, *sinks: SinkConfig, clock: Clock | None = None, follow: bool = True, **settings: object) -> Forwarder:
    """A forwarder that does not deliver yet."""
    return Forwarder(config(directory, *sinks, **settings), cards, clock or Clock(), follow=follow, timeout=0.0)


@contextmanager
def started(directory: Path, *sinks: SinkConfig) -> Iterator[Forwarder]:
    """A forwarder that delivers."""
    forwarder = Forwarder(config(directory, *sinks), cards)
    forwarder.start()
    yield forwarder
    forwarder.close(10)


def told(name: str = "one", state: str = "opened", number: int = 1) -> Told:
    """A report of the incident of this id."""
    return Told(incident(name, state), number)


def messages(directory: Path, name: str = "x") -> list[Message]:
    """What is in the outbox for a sink."""
    return [message for one in Outbox(str(directory)).select(name, STATUSES) if (message := one.message)]


def test_each_sink_that_wants_a_report_gets_it_once(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink(), sink(name="y"), sink(name="z", cards=("other-*",)))
    assert forwarder.put([told(), told()]) == 2
    assert forwarder.put([told()]) == 0
    assert [len(messages(tmp_path, name)) for name in "xyz"] == [1, 1, 0]


def test_a_report_has_its_own_key_and_an_incident_one_alert(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink(cooldown=0.0))
    forwarder.put([told(), told(state="repeated", number=2), told(state="resolved", number=2), told("two")])
    found = messages(tmp_path)
    assert len({one.key for one in found}) == 4
    assert len({one.alert for one in found if one.incident.id == "one"}) == 1
    assert len({one.alert for one in found}) == 2
    assert all(one.key.isalnum() and len(one.key) == 32 for one in found)


def test_nodes_tell_the_same_incident_under_keys_of_their_own(tmp_path: Path) -> None:
    for name in ("node7", "node8"):
        opened(tmp_path / name, sink(), instance=name).put([told()])
    (first,), (second,) = messages(tmp_path / "node7"), messages(tmp_path / "node8")
    assert first.key != second.key
    assert first.alert != second.alert
    assert (first.instance, second.instance) == ("node7", "node8")


def test_the_same_line_of_another_log_is_another_report(tmp_path: Path) -> None:
    """`vllm serve > server.log` writes the failures of two days into the same line."""
    forwarder = opened(tmp_path, sink(), follow=False)
    days = [incident()._replace(first_seen=f"12-0{day} 10:00:00") for day in (1, 2)]
    assert [forwarder.put([Told(one, 1)]) for one in [*days, days[0]]] == [1, 1, 0]


def test_the_end_goes_to_whoever_was_told_of_it(tmp_path: Path) -> None:
    low, high = sink(name="low"), sink(name="high", severity="critical")
    forwarder = opened(tmp_path, low, high)
    forwarder.put([Told(incident(severity="error"), 1)])
    forwarder.put([Told(incident(state="resolved"), 1)])
    assert [one.incident.state for one in messages(tmp_path, "low")] == ["opened", "resolved"]
    assert messages(tmp_path, "high") == []


def test_an_alert_that_becomes_worse_ends_under_its_old_severity(tmp_path: Path) -> None:
    """The severity is one of the labels by which Alertmanager knows it."""
    forwarder = opened(tmp_path, sink(type="alertmanager"), sink(name="y"))
    for state, severity, number in (("opened", "error", 1), ("repeated", "critical", 2), ("resolved", "critical", 2)):
        forwarder.put([Told(incident(state=state, severity=severity), number)])
    found = messages(tmp_path)
    assert [(one.incident.state, one.incident.severity) for one in found] == [
        ("opened", "error"),
        ("resolved", "error"),
        ("repeated", "critical"),
        ("resolved", "critical"),
    ]
    assert len({one.key for one in found}) == 4
    assert [one.incident.state for one in messages(tmp_path, "y")] == ["opened", "repeated", "resolved"]


def test_since_is_when_it_opened(tmp_path: Path) -> None:
    clock = Clock()
    forwarder = opened(tmp_path, sink(cooldown=0.0), clock=clock)
    forwarder.put([told()])
    clock.now += 600
    forwarder.put([told(state="repeated", number=2)])
    assert [(one.at - NOW, one.since - NOW) for one in messages(tmp_path)] == [(0, 0), (600, 0)]


def test_what_a_scan_found_is_not_waited_for_to_end(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink(), follow=False)
    forwarder.put([told()])
    assert forwarder.put([told(state="resolved")]) == 0


@pytest.mark.parametrize("delivered", [False, True])
def test_what_a_scan_was_first_to_find_is_ended_by_the_daemon(tmp_path: Path, delivered: bool) -> None:
    opened(tmp_path, sink(), follow=False).put([told()])
    outbox = Outbox(str(tmp_path))
    if delivered:
        outbox.finish(outbox.waiting("x", 1), DELIVERED, NOW)
    daemon = opened(tmp_path, sink())
    assert daemon.put([told()]) == 0
    assert [one.sent for one in outbox.alerts("x").values()] == [delivered]
    assert daemon.put([told(state="resolved")]) == 1


def test_what_nobody_knows_any_more_is_ended(tmp_path: Path) -> None:
    """The state was lost while an incident was open: its alert must not burn for ever."""
    forwarder = opened(tmp_path, sink())
    forwarder.put([told("lost"), told("known")])
    forwarder.reconcile([told("known")])
    forwarder.reconcile([told("known")])
    assert [(one.incident.id, one.incident.state) for one in messages(tmp_path)] == [
        ("lost", "opened"),
        ("known", "opened"),
        ("lost", "resolved"),
    ]


def test_each_sink_is_told_the_end_of_what_it_was_told(tmp_path: Path) -> None:
    clock = Clock()
    opened(tmp_path, sink(), clock=clock).put([told()])
    clock.now += 60
    both = opened(tmp_path, sink(), sink(name="y"), clock=clock)
    both.reconcile([told()])
    clock.now += 60
    both.reconcile([])
    assert [[one.incident.state for one in messages(tmp_path, name)] for name in "xy"] == [["opened", "resolved"]] * 2


def test_what_is_open_is_told_anew_if_the_outbox_was_lost(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink())
    forwarder.put([told("a"), told("b")])
    for file in tmp_path.glob(f"{FILE}*"):
        file.unlink()
    assert not forwarder.is_there()
    forwarder.put([told("c")])
    forwarder.reconcile([told("b"), told("c")])
    assert [one.incident.id for one in messages(tmp_path)] == ["c", "b"]


def test_an_outbox_that_is_damaged_while_it_is_open_is_put_aside(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink())
    forwarder.put([told(str(number)) for number in range(50)])
    Outbox(str(tmp_path))._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (tmp_path / FILE).open("r+b") as file:
        file.write(b"damaged!" * 4096)
    with pytest.raises(StateError):
        forwarder.put([told("a")])
    assert forwarder.put([told("a")]) == 1
    assert "put aside" in forwarder.problem


def test_a_bounded_outbox_counts_what_it_drops(tmp_path: Path) -> None:
    clock = Clock()
    forwarder = opened(tmp_path, sink(), outbox_size=60_000, clock=clock)
    assert forwarder.put([told(str(number)) for number in range(30)]) == 30
    forwarder.tend()
    (status,) = forwarder.statuses()
    kept = messages(tmp_path)
    assert 0 < len(kept) < 30
    assert kept[-1].incident.id == "29"
    assert dict(status.lost) == {"waiting": 30 - len(kept), "dead": 0}


def test_only_a_daemon_gives_up_what_is_for_other_sinks(tmp_path: Path) -> None:
    """A scan may have another configuration, and the same state directory."""
    clock = Clock()
    opened(tmp_path, sink(), clock=clock).put([told()])
    clock.now += 2 * 86400
    opened(tmp_path, sink(name="y"), clock=clock, follow=False).tend()
    assert [one.status for one in Outbox(str(tmp_path)).select("x", STATUSES)] == [WAITING]
    opened(tmp_path, sink(name="y"), clock=clock).tend()
    assert [one.status for one in Outbox(str(tmp_path)).select("x", STATUSES)] == [DEAD]


def test_an_outbox_that_cannot_be_written_takes_nothing(tmp_path: Path) -> None:
    forwarder = opened(tmp_path, sink())
    other = Outbox(str(tmp_path))
    with other.transaction(), pytest.raises(StateError, match="locked"):
        forwarder.put([told()])
    assert forwarder.put([told()]) == 1


def test_a_damaged_outbox_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    forwarder = opened(tmp_path, sink())
    assert "put aside" in forwarder.problem
    assert forwarder.put([told()]) == 1
    assert (tmp_path / f"{FILE}.damaged").exists()


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    opened(tmp_path / "state", sink()).put([told()])
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "state").iterdir()} == {"0o600"}


# -- delivering ------------------------------------------------------------------------------------------------------


def test_it_delivers_and_says_so(tmp_path: Path) -> None:
    with Receiver() as receiver, started(tmp_path, sink(receiver.url)) as forwarder:
        forwarder.put([told("a"), told("b")])
        forwarder.drain(30)
        (status,) = forwarder.statuses()
        assert [one.json["data"]["id"] for one in receiver.taken] == ["a", "b"]
        assert dict(status.results) == {"delivered": 2, "retry": 0, "rejected": 0, "gone": 0}
        assert (status.waiting, status.dead, status.problem) == (0, 0, "")


def test_a_sink_that_hangs_keeps_no_other_waiting(tmp_path: Path) -> None:
    with Receiver(default=hang) as hanging, Receiver() as receiver:
        sinks = sink(hanging.url, "hanging", timeout=5.0), sink(receiver.url, "fast")
        forwarder = Forwarder(config(tmp_path, *sinks), cards)
        forwarder.start()
        forwarder.put([told()])
        hanging.wait_for(1)
        receiver.wait_for(1)
        forwarder.put([told("two")])
        receiver.wait_for(2)
        assert len(hanging.taken) == 1
        forwarder.close(10.0)


def test_what_another_process_puts_there_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmdiag.forward.rounds.POLL", 0.05)
    with Receiver() as receiver, started(tmp_path, sink(receiver.url)):
        opened(tmp_path, sink(receiver.url)).put([told()])
        receiver.wait_for(1)


def test_one_process_delivers_at_a_time(tmp_path: Path) -> None:
    with Receiver() as receiver:
        turn = Turn(str(tmp_path))
        assert turn.mine()
        forwarder = opened(tmp_path, sink(receiver.url))
        assert not forwarder.is_ours()
        forwarder.put([told()])
        forwarder.start()
        forwarder.drain(30)
        assert receiver.taken == []
        turn.leave()
        receiver.wait_for(1)
        forwarder.close(10)


def test_new_sinks_take_over_and_old_ones_end(tmp_path: Path) -> None:
    with Receiver() as first, Receiver() as second, started(tmp_path, sink(first.url)) as forwarder:
        forwarder.put([told("a")])
        first.wait_for(1)
        forwarder.reload(config(tmp_path, sink(second.url)), cards)
        forwarder.put([told("b")])
        second.wait_for(1)
        assert [one.json["data"]["id"] for one in second.taken] == ["b"]
        assert len(first.taken) == 1


def test_a_sink_that_is_taken_out_and_put_back_overtakes_nothing(tmp_path: Path) -> None:
    released = threading.Event()

    def late(connection: socket.socket) -> None:
        released.wait(30)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with Receiver([late]) as receiver, started(tmp_path, sink(receiver.url, timeout=30.0)) as forwarder:
        forwarder.put([told("a"), told("b")])
        receiver.wait_for(1)
        forwarder.reload(config(tmp_path), cards)
        forwarder.reload(config(tmp_path, sink(receiver.url, timeout=30.0)), cards)
        forwarder.drain(0.2)
        assert len(receiver.taken) == 1
        released.set()
        receiver.wait_for(2)
    assert [one.json["data"]["id"] for one in receiver.taken] == ["a", "b"]


def test_a_reload_while_the_outbox_is_locked_stops_nothing(tmp_path: Path) -> None:
    other = Outbox(str(tmp_path))
    with Receiver() as receiver, started(tmp_path, sink()) as forwarder:
        with other.transaction():
            forwarder.reload(config(tmp_path, sink(receiver.url)), cards)
        forwarder.put([told()])
        receiver.wait_for(1)


def test_the_turn_is_left_when_the_last_request_has_ended(tmp_path: Path) -> None:
    with Receiver([hang]) as receiver:
        forwarder = Forwarder(config(tmp_path, sink(receiver.url, timeout=1.0)), cards)
        forwarder.start()
        forwarder.put([told()])
        receiver.wait_for(1)
        forwarder.close(0.0)
        turn = Turn(str(tmp_path))
        assert not turn.mine()
        for thread in [one for one in threading.enumerate() if one.name == "courier"]:
            thread.join(30)
        assert turn.mine()
        turn.leave()


def test_the_same_sinks_go_on(tmp_path: Path) -> None:
    with Receiver() as receiver, started(tmp_path, sink(receiver.url)) as forwarder:
        before = {thread for thread in threading.enumerate() if thread.name == "courier"}
        forwarder.reload(config(tmp_path, sink(receiver.url), instance="node8"), cards)
        assert {thread for thread in threading.enumerate() if thread.name == "courier"} == before
        forwarder.put([told()])
        (taken,) = receiver.wait_for(1)
        assert taken.json["data"]["id"] == "one"


def test_a_receiver_of_another_url_is_not_disabled(tmp_path: Path) -> None:
    with Receiver(default=Answer(410)) as gone, Receiver() as receiver, started(tmp_path, sink(gone.url)) as forwarder:
        forwarder.put([told("a")])
        forwarder.drain(30)
        assert forwarder.statuses()[0].dead == 1
        forwarder.reload(config(tmp_path, sink(receiver.url)), cards)
        forwarder.put([told("b")])
        receiver.wait_for(1)
    assert [one.incident for one in Outbox(str(tmp_path)).select("x", [DEAD])] == ["a"]


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(StateError, match=LOCK):
        opened(tmp_path, sink())
    os.rmdir(tmp_path / LOCK)
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="file"):
        opened(tmp_path / "file", sink())


def test_a_report_that_cannot_be_encoded_is_sent_all_the_same(tmp_path: Path) -> None:
    """A path that is no UTF-8 is in the incident as lone surrogates."""
    hostile: Incident = incident()._replace(source="/logs/\udcff.log", title="\ud800 \x00")
    with Receiver() as receiver, started(tmp_path, sink(receiver.url)) as forwarder:
        forwarder.put([Told(hostile, 1)])
        (taken,) = receiver.wait_for(1)
        assert taken.json["data"]["title"] == "? \x00"
