"""The daemon's round, with a clock that the test drives, real files and a real state."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_node import Node

from lmdiag.config import SinkConfig
from lmdiag.errors import StateError
from lmdiag.forward.outbox import WAITING, Outbox
from lmdiag.match.library import Library, open_library
from lmdiag.watch import frozen

LOGS = Path(__file__).parent / "logs"
SERDE = (LOGS / "mla-serde-start-failed.log").read_bytes()
USAGE = (LOGS / "usage-error.log").read_bytes()
DEGRADED = (LOGS / "mla-serde-degraded.log").read_bytes()
HEALTHY = (Path(__file__).parent / "healthy" / "requests-032.log").read_bytes()


@pytest.fixture(scope="module")
def library() -> Library:
    """The shipped pack."""
    return open_library()


@pytest.fixture
def node(tmp_path: Path, library: Library) -> Iterator[Node]:
    """A node whose daemon has looked once."""
    node = Node(tmp_path, library)
    node.step()
    yield node
    node.kill()


def test_a_failed_start_is_told_at_once_and_once(node: Node) -> None:
    """The API server has had the last word, so there is nothing to wait for."""
    node.write(SERDE)
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
    assert node.step(30.0) == []


def test_what_is_not_final_is_told_when_it_has_settled(node: Node) -> None:
    node.write(DEGRADED)
    assert node.step() == []
    assert node.step(0.5) == []
    assert node.step(0.6) == [("opened", "lmcache-mla-naive-serde", 1)]


def test_a_healthy_server_is_met_with_silence(node: Node) -> None:
    node.write(HEALTHY)
    assert node.step() + node.step(2.0) + node.step(7200.0) == []


def test_the_server_that_starts_again_resolves_it(node: Node) -> None:
    node.write(SERDE)
    node.step()
    node.write(HEALTHY)
    assert [state for state, _, _ in node.step() + node.step(2.0)] == ["resolved"]


def test_a_crash_loop_is_told_as_one(node: Node) -> None:
    told = []
    for number in range(4):
        node.write(SERDE.replace(b"12-01 02:51", b"12-01 02:%02d" % (10 + number)))
        told += node.step(60.0)
    assert [state for state, _, _ in told] == ["opened", "repeated"]
    loop = json.loads(node.out.getvalue().splitlines()[-1])["loop"]
    assert (loop["times"], round(loop["seconds"])) == (3, 120)


def test_after_a_kill_nothing_is_lost_and_nothing_told_under_another_id(node: Node) -> None:
    """Wherever the log had been read to."""
    ids = set()
    for cut in range(0, len(SERDE), 1777):
        node.write(SERDE[cut : cut + 1777])
        node.step(0.3)
        ids |= {json.loads(line)["id"] for line in node.out.getvalue().splitlines()}
        node.kill()
        node.start()
    node.step(2.0)
    ids |= {json.loads(line)["id"] for line in node.out.getvalue().splitlines()}
    assert len(ids) == 1


def test_what_was_saved_and_not_told_is_told_after_the_kill(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill comes between the save and the print."""
    node.write(SERDE)
    asked: list[float] = []
    monkeypatch.setattr(node.daemon, "_tell", asked.append)
    node.step()
    assert asked
    assert node.told() == []
    node.kill()
    node.start()
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
    node.step(6.0)  # it is noted as told with the next save
    node.kill()
    node.start()
    assert node.step() == []


def test_it_is_told_even_if_it_cannot_be_saved(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> list[int]:
        raise StateError("state.db: database or disk is full")

    node.write(SERDE)
    monkeypatch.setattr(node.store, "save", full)
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
    assert "disk is full" in node.err.getvalue()
    monkeypatch.undo()
    assert node.step(6.0) == []
    assert [item.id for item in node.store.incidents()] != []


def test_rotation_between_two_rounds_loses_nothing(node: Node) -> None:
    half = SERDE.find(b"ValueError")
    node.write(SERDE[:half])
    node.step()
    os.rename(node.log, f"{node.log}.1")
    node.write(SERDE[half:])
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]


def test_the_past_is_read_in_silence_up_to_what_is_still_wrong(tmp_path: Path, library: Library) -> None:
    (tmp_path / "server.log").write_bytes(USAGE + HEALTHY + SERDE)
    node = Node(tmp_path, library)
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
    node.kill()


def test_a_new_file_is_read_from_its_start(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, paths=(str(tmp_path / "*.log"),), from_="end")
    node.step()
    (tmp_path / "other.log").write_bytes(USAGE)
    assert node.step(6.0) == [("opened", "unknown-dtype", 1)]
    node.kill()


def test_a_flood_of_repeats_is_sampled_and_what_is_new_in_it_is_not(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, max_behind=1 << 20)
    node.step()
    record = b'ERROR 12-01 02:00:00 [serving_chat.py:5] Error in preprocessing prompt inputs\nERROR 12-01 02:00:00 [serving_chat.py:5] Traceback (most recent call last):\nERROR 12-01 02:00:00 [serving_chat.py:5]   File "/v/vllm/entrypoints/openai/serving_chat.py", line 9, in f\nERROR 12-01 02:00:00 [serving_chat.py:5] ValueError: request 17 is too long\n'
    node.write(record * 8000 + SERDE + record * 8000)
    assert ("opened", "lmcache-mla-naive-serde", 1) in node.step() + node.step(2.0)
    dropped = node.counters.dropped[str(node.log), "flood"]
    assert len(record) * 8000 < dropped < len(record) * 16000
    assert node.counters.lines[str(node.log)] == (record * 16000 + SERDE).count(b"\n")
    node.kill()


def test_a_file_that_cannot_be_read_is_said_once(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, paths=(str(tmp_path / "missing.log"), str(tmp_path / "server.log")))
    node.step()
    node.step(5.0)
    assert node.err.getvalue().count("does not exist") == 1
    node.kill()


def test_new_cards_are_used_after_a_reload(node: Node, tmp_path: Path, library: Library) -> None:
    without = open_library((), ("lmcache-mla-naive-serde",))
    node.daemon.reload(node.daemon.config, without)
    node.write(SERDE)
    assert [card for _, card, _ in node.step()] == [None]


def test_everything_is_counted(node: Node) -> None:
    node.write(SERDE)
    node.step()
    name = str(node.log)
    assert node.counters.lines[name] == SERDE.count(b"\n")
    assert node.counters.bytes[name] == len(SERDE)
    assert node.counters.cards["lmcache-mla-naive-serde"] == 1
    assert node.counters.cards["unknown-dtype"] == 0
    assert node.counters.reports["opened"] == 1


def test_the_next_round_is_due_when_something_settles(node: Node) -> None:
    assert node.daemon.wait(node.now) == 5.0
    node.write(DEGRADED)
    node.step()
    assert 0.0 < node.daemon.wait(node.now) <= 1.0
    node.step(1.1)
    assert node.daemon.wait(node.now) == 5.0


def test_a_state_of_another_version_loses_nothing_and_tells_nothing_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed while the daemon was updated is news; what had failed before is not, and may fail again."""
    node.write(SERDE)
    assert [state for state, _, _ in node.step()] == ["opened"]
    node.write(HEALTHY)
    assert [state for state, _, _ in node.step() + node.step(6.0)] == ["resolved"]
    node.kill()
    monkeypatch.setattr(frozen, "_HEAD", b"lmdiag 99\n")
    node.write(USAGE)
    node.start()
    assert node.step() + node.step(2.0) == [("opened", "unknown-dtype", 1)]
    node.write(SERDE)
    assert ("repeated", "lmcache-mla-naive-serde", 2) in node.step() + node.step(2.0)


def test_a_log_that_cannot_be_digested_does_not_hide_the_others(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, paths=(str(tmp_path / "a.log"), str(tmp_path / "server.log")))
    (tmp_path / "a.log").write_bytes(b"x\n")
    node.step()
    bad = next(stream for stream in node.daemon.streams.all() if stream.source.name.endswith("a.log"))
    real = bad.feed

    def fails(data: bytes, now: float) -> None:
        raise RecursionError("too deep")

    bad.feed = fails  # type: ignore[method-assign]
    (tmp_path / "a.log").write_bytes(b"x\ny\n")
    node.write(SERDE)
    assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
    assert "too deep" in node.err.getvalue()
    bad.feed = real  # type: ignore[method-assign]
    (tmp_path / "a.log").write_bytes(b"x\ny\n" + USAGE)
    assert node.step() + node.step(2.0) == [("opened", "unknown-dtype", 1)]
    node.kill()


def test_a_problem_that_comes_back_is_said_again(node: Node) -> None:
    node.daemon.say("a.log", "a.log: permission denied")
    node.daemon.say("a.log", "a.log: permission denied")
    node.daemon.say("a.log", "")
    node.daemon.say("a.log", "a.log: permission denied")
    assert node.err.getvalue().count("permission denied") == 2


def test_of_a_past_of_many_lives_only_how_it_ended_counts(tmp_path: Path, library: Library) -> None:
    """A loop that was mended long ago, more lives than are kept."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    failed = b"".join(SERDE.replace(b"MLA only works with naive serde mode..", f"Shard {a}{b} broke".encode()) for a in letters for b in letters[:4])  # fmt: skip
    (tmp_path / "server.log").write_bytes(failed + HEALTHY)
    node = Node(tmp_path, library)
    assert node.step() + node.step(2.0) == []
    node.write(failed)
    states = [state for state, _, _ in node.step() + node.step(2.0)]
    assert states.count("opened") == 26 * 4
    node.kill()


def test_on_a_new_node_everything_is_news(tmp_path: Path, library: Library) -> None:
    """The log was empty when the daemon first came; two failures arrive between two looks."""
    node = Node(tmp_path, library)
    node.step()
    node.step(3600.0)
    node.write(SERDE + USAGE)
    told = node.step() + node.step(2.0)
    assert [card for state, card, _ in told if state == "opened"] == ["lmcache-mla-naive-serde", "unknown-dtype"]
    node.kill()


def test_an_empty_log_has_a_place_to_go_on_from(node: Node) -> None:
    """Killed before it had read a line; then the log is written and rotated."""
    node.step(10.0)
    node.kill()
    node.write(SERDE)
    os.rename(node.log, f"{node.log}.1")
    node.write(b"INFO hello\n")
    node.start()
    assert ("opened", "lmcache-mla-naive-serde", 1) in node.step() + node.step(2.0)


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("lines", [40, 90, 113, 160, 200, 250])
def test_an_update_in_the_middle_of_a_failure_tells_it_once(node: Node, monkeypatch: pytest.MonkeyPatch, lines: int, rotate: bool) -> None:
    """However much of it had been told before."""
    cut = sum(len(line) + 1 for line in SERDE.split(b"\n")[:lines])
    node.write(SERDE[:cut])
    reports = [json.loads(line) for _ in (node.step(), node.step(2.0), node.step(6.0)) for line in node.out.getvalue().splitlines()]
    node.kill()
    monkeypatch.setattr(frozen, "_HEAD", b"lmdiag 99\n")
    node.write(SERDE[cut:])
    if rotate:
        os.rename(node.log, f"{node.log}.1")
        node.write(b"INFO 12-01 03:00:00 [x.py:1] hello\n")
    node.start()
    for seconds in (0.0, 2.0, 6.0):
        node.step(seconds)
    reports += [json.loads(line) for line in node.out.getvalue().splitlines()]
    told = {(one["id"], one["root"]["message"], one["count"]) for one in reports if one["state"] == "opened" and one["root"]}
    assert [(message, count) for _, message, count in told] == [("MLA only works with naive serde mode..", 1)]
    assert {one["first_line"] for one in reports if one["root"]} == {58}


def test_an_update_does_not_end_what_is_still_wrong(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start has begun and has not come up yet."""
    node.write(SERDE)
    assert [state for state, _, _ in node.step()] == ["opened"]
    node.kill()
    monkeypatch.setattr(frozen, "_HEAD", b"lmdiag 99\n")
    start = b"\n".join(SERDE.split(b"\n")[:40]) + b"\n"
    node.write(start)
    node.start()
    assert node.step() + node.step(2.0) + node.step(6.0) == []
    node.write(SERDE[len(start) :])
    assert node.step() + node.step(2.0) == []
    assert [state for state, _, _ in node.step(400.0)] == ["repeated"]


# -- forwarding ------------------------------------------------------------------------------------------------------

WEBHOOK = SinkConfig(name="x", type="webhook", url="http://127.0.0.1:9")


def outbox(node: Node) -> list[tuple[str, str | None]]:
    """(state, card) of what was put there to be delivered."""
    found = Outbox(node.daemon.config.state).select("x", [WAITING])
    return [(message.incident.state, message.incident.card) for one in found if (message := one.message)]


def failed(directory: Path, library: Library) -> Node:
    """A node with a sink, on which a server has failed to start."""
    node = Node(directory, library, sinks=(WEBHOOK,))
    node.step()
    node.write(SERDE)
    node.step()
    return node


def lose_state(node: Node) -> None:
    """Kill the daemon, and damage what it knows."""
    node.kill()
    Path(node.daemon.config.state, "state.db").write_bytes(b"damaged" * 1000)


def test_what_is_told_is_forwarded(tmp_path: Path, library: Library) -> None:
    node = failed(tmp_path, library)
    node.write(HEALTHY)
    node.step(2.0)
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde"), ("resolved", "lmcache-mla-naive-serde")]
    assert node.store.pending() == []


def test_while_the_outbox_cannot_be_written_reports_are_printed_and_wait_in_the_state(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, sinks=(WEBHOOK,))
    node.step()
    other = Outbox(node.daemon.config.state)
    with other.transaction():
        node.write(SERDE)
        assert node.step() == [("opened", "lmcache-mla-naive-serde", 1)]
        assert len(node.store.pending()) == 1
        assert "locked" in node.err.getvalue()
        assert 0 < node.daemon.wait(node.now) <= 5
    assert node.step(5.0) == []
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde")]
    assert node.store.pending() == []


def test_what_waits_in_the_state_is_forwarded_after_a_kill(tmp_path: Path, library: Library) -> None:
    node = Node(tmp_path, library, sinks=(WEBHOOK,))
    node.step()
    other = Outbox(node.daemon.config.state)
    with other.transaction():
        node.write(SERDE)
        node.step()
        node.kill()
    node.start()
    node.step()
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde")]


def test_alerts_of_a_state_that_was_lost_are_ended(tmp_path: Path, library: Library) -> None:
    node = failed(tmp_path, library)
    lose_state(node)
    node.log.write_bytes(b"")
    node.start()
    node.step()
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde"), ("resolved", "lmcache-mla-naive-serde")]


def test_a_server_that_is_still_down_is_not_called_well_because_the_state_was_lost(tmp_path: Path, library: Library) -> None:
    node = failed(tmp_path, library)
    lose_state(node)
    node.start()
    node.step()
    node.step(5.0)
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde")]
    node.write(HEALTHY)
    node.step(5.0)
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde"), ("resolved", "lmcache-mla-naive-serde")]


def test_what_is_open_is_told_to_a_new_outbox_and_to_a_new_sink(tmp_path: Path, library: Library) -> None:
    node = failed(tmp_path, library)
    for file in (tmp_path / "state").glob("outbox.db*"):
        file.unlink()
    node.step(5.0)
    assert outbox(node) == [("opened", "lmcache-mla-naive-serde")]
    assert node.forwarder is not None
    config = node.daemon.config._replace(sinks=(WEBHOOK._replace(name="x"), WEBHOOK._replace(name="y")))
    node.forwarder.reload(config, library.card)
    node.daemon.reload(config, library)
    for _ in range(50):  # the couriers have begun, and one of them may be writing just then: it is tried again
        node.step(30.0)
        if found := Outbox(config.state).select("y", [WAITING]):
            break
    node.forwarder.close(0.0)
    assert len(found) == 1
