"""Several inputs in processes give what they give in this one, whatever happens to a process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shapes import SHAPES, raised

from lmdiag.examine import Examined, examine
from lmdiag.match.library import Library, open_library
from lmdiag.read.paths import Input
from lmdiag.workers import Workers

FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "x y") + "\n"


@pytest.fixture(scope="module")
def library() -> Library:
    """The shipped cards."""
    return open_library()


def entry(path: Path) -> Input:
    """A file as an input."""
    return Input(str(path), path.name)


def ignore(number: int, position: int) -> None:
    """Take a position."""


@contextmanager
def talking(path: Path) -> Iterator[threading.Event]:
    """A FIFO into which somebody writes a failure and more than it holds, and that stays open; tells when all is written."""
    os.mkfifo(path)
    written, leave = threading.Event(), threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            file.write(FAILED.encode() + b"INFO:     10.0.0.1:1 - x\n" * 10_000)
            written.set()
            leave.wait(60)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield written
    finally:
        leave.set()
        thread.join(60)


def kill(number: int) -> Callable[[int, int], None]:
    """End all processes as soon as the one of an input tells how far it is."""

    def at(at_number: int, position: int) -> None:
        if at_number == number:
            for child in multiprocessing.active_children():
                os.kill(child.pid or 0, signal.SIGKILL)

    return at


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_processes_give_what_one_gives(tmp_path: Path, library: Library, jobs: int) -> None:
    """By the inputs' numbers, with any number of processes."""
    inputs = {}
    for number, shape in enumerate(SHAPES[:12]):
        path = tmp_path / f"{number}.log"
        path.write_text(shape.log, encoding="utf-8")
        inputs[number * 3] = entry(path)
    found = Workers(inputs, library, jobs, ignore).run()
    assert found == {number: examine(one, library, at=lambda _: None) for number, one in inputs.items()}
    assert not multiprocessing.active_children()


def test_what_cannot_be_read_is_told(tmp_path: Path, library: Library) -> None:
    """As if it had been read here."""
    found = Workers({4: entry(tmp_path / "none.log")}, library, 2, ignore).run()
    assert "No such file" in found[4].problems[0]


def test_a_killed_process_loses_its_own_input(tmp_path: Path, library: Library) -> None:
    """It is named, and another process reads the rest."""
    log, fifo = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text(FAILED, encoding="utf-8")
    inputs = {0: entry(fifo), 1: entry(log), 2: entry(tmp_path / "none.log")}  # in the order 1, 0, 2: the largest first
    with talking(fifo):
        found = Workers(inputs, library, 1, kill(0)).run()
    assert found[0] == Examined(
        problems=(f"{fifo}: the process that read it was ended by signal 9; scan it again by itself, with --jobs 1",)
    )
    assert len(found[1].incidents) == 1
    assert "No such file" in found[2].problems[0]


def test_an_interruption_hands_over_what_was_found(tmp_path: Path, library: Library) -> None:
    """By the input at hand too, and nothing else is begun; no process is left."""
    fifo = tmp_path / "a.log"

    def at(number: int, position: int) -> None:
        assert written.wait(60)
        raise KeyboardInterrupt

    with talking(fifo) as written:
        workers = Workers({0: entry(fifo), 1: entry(tmp_path / "none.log")}, library, 1, at)
        found = workers.run()
    assert workers.interrupted
    assert list(found) == [0]
    assert found[0].interrupted
    assert found[0].incidents[0].title == "ValueError: x y"
    assert not multiprocessing.active_children()


def test_muted_patterns_are_added_up(library: Library) -> None:
    """Of all processes, each of which counts for itself."""
    workers = Workers({}, library, 2, ignore)
    assert workers.run() == {}
    assert workers.muted == ()
