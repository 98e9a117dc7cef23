"""The daemon's status: what it says, and how often."""

from __future__ import annotations

import io
from contextlib import ExitStack
from pathlib import Path

import pytest
from test_watch_daemon import SERDE, library  # noqa: F401 (a fixture)
from watched_node import Node

from lmdiag.config import SinkConfig
from lmdiag.match.library import Library
from lmdiag.watch.board import IDLE_EVERY, Board
from lmdiag.watch.status import read_status


@pytest.fixture
def node(tmp_path: Path, library: Library) -> Node:  # noqa: F811
    """A node whose daemon has read a failed start."""
    node = Node(tmp_path, library)
    node.step()
    node.write(SERDE)
    node.step()
    return node


def board_of(node: Node) -> Board:
    """A board without a server and a terminal."""
    return Board(node.daemon, node.daemon.config._replace(listen="", live=False), io.StringIO(), node.now, ExitStack())


def test_it_says_what_is_read_and_what_was_found(node: Node) -> None:
    status = board_of(node).status(node.now)
    [source] = status.sources
    assert (source.name, source.kind, source.offset, source.lag) == (str(node.log), "file", len(SERDE), 0)
    assert (source.lines, source.bytes, source.open_incidents) == (SERDE.count(b"\n"), len(SERDE), 1)
    assert source.last_line_at == node.now
    [incident] = status.incidents
    assert (incident.card, incident.state, incident.count) == ("lmcache-mla-naive-serde", "opened", 1)


def test_it_is_kept_for_the_status_command(node: Node) -> None:
    board_of(node).update(node.now)
    known = read_status(node.daemon.config.state, running=True)
    assert known is not None
    assert known.sources[0].offset == len(SERDE)


def test_it_is_written_once_a_second_and_seldom_when_idle(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    monkeypatch.setattr(node.daemon, "keep_status", kept.append)
    board = board_of(node)
    for tenth in range(50):
        node.write(b"INFO hello\n")
        node.step(0.1)
        board.update(node.now)
        assert len(kept) <= 1 + tenth // 10
    kept.clear()
    start = node.now
    while node.now < start + 4 * IDLE_EVERY:
        node.step(1.0)
        board.update(node.now)
    assert 3 <= len(kept) <= 5


def test_rates_are_those_of_the_last_seconds(node: Node) -> None:
    board = board_of(node)
    board.status(node.now)
    for _ in range(20):
        node.write(b"INFO hello\n" * 50)
        node.step(1.0)
        board.update(node.now)
    assert board.status(node.now).sources[0].lines_per_second == pytest.approx(50, rel=0.2)
    for _ in range(40):
        node.step(1.0)
        board.update(node.now)
    assert board.status(node.now).sources[0].lines_per_second == 0.0


def test_it_says_how_the_sinks_are(tmp_path: Path, library: Library) -> None:  # noqa: F811
    node = Node(tmp_path, library, sinks=(SinkConfig("oncall", "webhook", url="http://127.0.0.1:9"),))
    [sink] = board_of(node).status(node.now).sinks
    assert (sink.name, sink.type, sink.waiting) == ("oncall", "webhook", 0)
