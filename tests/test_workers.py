"""Several inputs in processes give what they give in this one, whatever happens to a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from endless import endless
from shapes import SHAPES, raised

from lmdiag.examine import Examined, examine
from lmdiag.match.cards import Problem
from lmdiag.match.library import Library, open_library
from lmdiag.read.paths import Input
from lmdiag.worker import Worker, start
from lmdiag.worker_process import Job
from lmdiag.workers import Workers

FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "x y") + "\n"
At = Callable[[int, int], None]


@pytest.fixture(scope="module")
def library() -> Library:
    """The shipped cards."""
    return open_library()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the processes that are started."""
    pids: list[int] = []

    def keep(job: Job, others: list[Worker]) -> Worker:
        worker = start(job, others)
        pids.append(worker.pid)
        return worker

    monkeypatch.setattr("lmdiag.workers.start", keep)
    return pids


def entry(path: Path, text: str | None = None) -> Input:
    """A file as an input, written if there is a text."""
    if text is not None:
        path.write_text(text, encoding="utf-8")
    return Input(str(path), path.name)


def ignore(number: int, position: int) -> None:
    """Take a position."""


def when_two_are_read(act: Callable[[], None]) -> At:
    """Act once, when two files that do not end have been read to where they would."""
    read: list[int] = []

    def at(number: int, position: int) -> None:
        if position == len(FAILED) and number not in read:
            read.append(number)
            if len(read) == 2:
                act()

    return at


def gone(pids: list[int]) -> bool:
    """Whether no process is left, not even to be waited for."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("jobs", [1, 2, 5, 50])
def test_processes_give_what_one_gives(tmp_path: Path, library: Library, started: list[int], jobs: int) -> None:
    """By the inputs' numbers, with any number of processes, of which none starts in vain."""
    inputs = {n * 3: entry(tmp_path / f"{n}.log", shape.log) for n, shape in enumerate(SHAPES[:12])}
    found = Workers(inputs, library, jobs, ignore).run()
    assert found == {number: examine(one, library, at=lambda _: None) for number, one in inputs.items()}
    assert len(started) == min(jobs, 12)
    assert gone(started)


def test_what_cannot_be_read_is_told(tmp_path: Path, library: Library) -> None:
    """As if it had been read here."""
    found = Workers({4: entry(tmp_path / "none.log")}, library, 2, ignore).run()
    assert "No such file" in found[4].problems[0]


def test_the_largest_inputs_are_begun_first_and_all_are_told_to_their_end(tmp_path: Path, library: Library) -> None:
    inputs = {n: entry(tmp_path / f"{n}.log", "x\n" * size) for n, size in enumerate((10, 30, 20, 30))}
    told: dict[int, int] = {}
    Workers(inputs, library, 1, told.__setitem__).run()
    assert list(told.items()) == [(1, 60), (3, 60), (2, 40), (0, 20)]


def test_what_a_worker_gives_may_be_larger_than_a_pipe_holds(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Examined(notes=("x" * 3_000_000,))
    monkeypatch.setattr("lmdiag.worker_process.examine", lambda *_, **__: large)
    inputs = {n: entry(tmp_path / f"{n}.log", "x") for n in range(4)}
    assert Workers(inputs, library, 2, ignore).run() == dict.fromkeys(range(4), large)


def test_a_killed_process_loses_its_own_input(
    tmp_path: Path, library: Library, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and another process reads the rest."""
    endless(monkeypatch)
    inputs = {
        0: entry(tmp_path / "endless.log", FAILED),
        1: entry(tmp_path / "a.log", FAILED * 2),
        2: entry(tmp_path / "none.log"),
    }

    def at(number: int, position: int) -> None:
        if number == 0:
            os.kill(started[-1], signal.SIGKILL)

    found = Workers(inputs, library, 1, at).run()
    path = inputs[0].path
    assert found[0] == Examined(
        problems=(f"{path}: the process that read it was ended by signal 9; scan it again by itself, with --jobs 1",)
    )
    assert len(found[1].incidents) == 1
    assert "No such file" in found[2].problems[0]
    assert len(started) == 2
    assert gone(started)


def test_an_error_of_lmdiag_itself_costs_its_own_input(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def breaks(one: Input, *_: object, **__: object) -> Examined:
        if one.source == "bad.log":
            raise ZeroDivisionError("a bug")
        return Examined(notes=("good",))

    monkeypatch.setattr("lmdiag.worker_process.examine", breaks)
    monkeypatch.setattr("sys.stderr", open(2, "w", closefd=False))  # noqa: SIM115
    inputs = {0: entry(tmp_path / "bad.log", "x"), 1: entry(tmp_path / "good.log", "x")}
    found = Workers(inputs, library, 1, ignore).run()
    assert "ended unexpectedly" in found[0].problems[0]
    assert found[1].notes == ("good",)
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err


def test_an_interruption_hands_over_what_was_found(
    tmp_path: Path, library: Library, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the inputs at hand too, and nothing else is begun; no process is left, and the signal means what it did."""
    endless(monkeypatch)
    inputs = {n: entry(tmp_path / f"endless{n}.log", FAILED) for n in range(3)}
    before = signal.getsignal(signal.SIGINT)
    workers = Workers(inputs, library, 2, when_two_are_read(lambda: os.kill(os.getpid(), signal.SIGINT)))
    found = workers.run()
    assert workers.interrupted
    assert sorted(found) == [0, 1]
    assert all(one.interrupted and one.incidents[0].title == "ValueError: x y" for one in found.values())
    assert gone(started)
    assert signal.getsignal(signal.SIGINT) == before


def test_an_interruption_of_one_worker_is_one_of_all(
    tmp_path: Path, library: Library, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    endless(monkeypatch)
    inputs = {n: entry(tmp_path / f"endless{n}.log", FAILED) for n in range(3)}
    workers = Workers(inputs, library, 2, when_two_are_read(lambda: os.kill(started[0], signal.SIGINT)))
    found = workers.run()
    assert workers.interrupted
    assert sorted(found) == [0, 1]
    assert gone(started)


def test_a_second_interruption_waits_for_nobody(
    tmp_path: Path, library: Library, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for a worker that does not listen."""

    def deaf(*_: object, at: Callable[[int], None], **__: object) -> Examined:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            at(0)

    monkeypatch.setattr("lmdiag.worker_process.examine", deaf)
    workers = Workers({0: entry(tmp_path / "a.log", "x")}, library, 1, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        workers.run()
    assert gone(started)


@pytest.mark.parametrize("possible", [0, 1])
def test_where_no_process_can_be_started_the_others_do_it(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch, possible: int
) -> None:
    """Those that run; without any, the inputs are left to the caller."""
    pids: list[int] = []

    def limited(job: Job, others: list[Worker]) -> Worker:
        if len(pids) == possible:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        pids.append(0)
        return start(job, others)

    monkeypatch.setattr("lmdiag.workers.start", limited)
    inputs = {n: entry(tmp_path / f"{n}.log", FAILED) for n in range(5)}
    assert len(Workers(inputs, library, 3, ignore).run()) == 5 * possible


def test_no_pipe_is_left_open(tmp_path: Path, library: Library) -> None:
    before = os.listdir("/proc/self/fd")
    Workers({n: entry(tmp_path / f"{n}.log", FAILED) for n in range(5)}, library, 3, ignore).run()
    assert os.listdir("/proc/self/fd") == before


def test_what_the_workers_libraries_met_is_collected(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New problems once, however many met them; the counts of each worker's muted patterns."""
    met = Problem("a.toml", "match.pattern", "took too long")

    def meets(*_: object, **__: object) -> Examined:
        library._broken.append(met)
        return Examined()

    monkeypatch.setattr("lmdiag.worker_process.examine", meets)
    monkeypatch.setattr(Library, "muted_patterns", (("a", 2),))
    workers = Workers({n: entry(tmp_path / f"{n}.log", "x") for n in range(2)}, library, 1, ignore)
    workers.run()
    assert workers.problems == (met,)
    assert workers.muted == (("a", 2),)
    assert library.problems == ()
