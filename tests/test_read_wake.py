from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmdiag.read import directories, inotify
from lmdiag.read.directories import Directories
from lmdiag.read.mounts import Mounts
from lmdiag.read.wake import PollWaker, WatchdogWaker, open_waker

SOON = 5.0
"""Seconds that nothing takes: who waits for so long fails."""
REST = 1000.0


@pytest.fixture
def waker() -> Iterator[WatchdogWaker]:
    made = WatchdogWaker(rest=0.0)
    yield made
    made.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text("first\n")
    return path


def append(path: Path, text: str = "more\n") -> None:
    with path.open("a") as file:
        file.write(text)


def listen(waker: WatchdogWaker, *paths: Path, roots: tuple[tuple[str, bool], ...] = ()) -> None:
    """Watch, and forget that what is watched from now on may have been written before."""
    waker.watch([str(path) for path in paths], roots)
    waker.dirty()


def heard(waker: WatchdogWaker) -> frozenset[str]:
    began = time.monotonic()
    waker.wait(SOON)
    assert time.monotonic() - began < SOON
    return waker.dirty()


@pytest.fixture(params=[PollWaker, WatchdogWaker])
def kind(request: pytest.FixtureRequest) -> type[PollWaker]:
    """What all wakers have in common is tried with each."""
    waker: type[PollWaker] = request.param
    return waker


def test_a_time_limit(kind: type[PollWaker]) -> None:
    waker = kind()
    assert waker.wait(0) == waker.wait(0.001) == frozenset()
    waker.close()


def test_descriptors_with_data(kind: type[PollWaker]) -> None:
    waker = kind()
    (quiet, _), (reader, writer) = os.pipe(), os.pipe()
    os.write(writer, b"x")
    assert waker.wait(SOON, [quiet, reader]) == {reader}
    waker.close()


def test_a_descriptor_that_was_hung_up(kind: type[PollWaker]) -> None:
    waker = kind()
    reader, writer = os.pipe()
    os.close(writer)
    assert waker.wait(SOON, [reader]) == {reader}
    os.close(reader)
    waker.close()


def test_waking_from_another_thread(kind: type[PollWaker]) -> None:
    waker = kind()
    thread = threading.Thread(target=waker.wake)
    thread.start()
    assert waker.wait(None) == frozenset()
    thread.join()
    waker.close()


def test_waking_from_a_signal_handler(kind: type[PollWaker]) -> None:
    waker = kind()
    before = signal.signal(signal.SIGALRM, lambda *_: waker.wake())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert waker.wait(None) == frozenset()
    finally:
        signal.signal(signal.SIGALRM, before)
        waker.close()


def test_many_wake_ups_are_one(kind: type[PollWaker]) -> None:
    waker = kind()
    for _ in range(100_000):  # more than a pipe holds
        waker.wake()
    assert waker.wait(None) == frozenset()
    reader, writer = os.pipe()
    os.write(writer, b"x")
    assert waker.wait(SOON, [reader]) == {reader}  # and not the pipe again
    waker.wake()
    assert waker.wait(None) == frozenset()
    waker.close()


def test_after_the_end(kind: type[PollWaker]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    waker = kind()
    waker.close()
    waker.close()
    waker.wake()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_rest_lets_data_gather_but_not_a_stop(kind: type[PollWaker]) -> None:
    waker = kind(rest=REST)
    reader, writer = os.pipe()
    os.write(writer, b"x")
    assert waker.wait(SOON, [reader]) == {reader}
    began = time.monotonic()
    assert waker.wait(0.03, [reader]) == {reader}
    assert time.monotonic() - began >= 0.03
    waker.rest = 0.0
    assert waker.wait(0, [reader]) == {reader}  # who does not wait at all wants to know
    began = time.monotonic()
    assert waker.wait(SOON, [reader]) == {reader}
    assert time.monotonic() - began < SOON
    waker.rest = REST
    assert waker.wait(SOON, [reader]) == {reader}
    waker.wake()
    assert waker.wait(None, [reader]) == frozenset()
    waker.close()


def test_polling_hears_nothing(log: Path) -> None:
    waker = open_waker(poll=True)
    waker.watch([str(log)])
    append(log)
    assert waker.deaf(str(log))
    assert waker.dirty() == frozenset()
    assert waker.problems == []
    waker.close()


def test_a_write_wakes(waker: WatchdogWaker, log: Path) -> None:
    listen(waker, log)
    append(log)
    assert heard(waker) == {str(log)}
    assert waker.dirty() == frozenset()


def test_what_is_heard_from_now_on_may_have_been_written_before(waker: WatchdogWaker, log: Path) -> None:
    waker.watch([str(log)])
    assert heard(waker) == {str(log)}


def test_other_files_of_the_directory_wake_nobody(waker: WatchdogWaker, log: Path) -> None:
    listen(waker, log)
    append(log.with_name("b.log"))
    began = time.monotonic()
    assert waker.wait(0.02) == frozenset()
    assert time.monotonic() - began >= 0.02
    assert waker.dirty() == frozenset()


def test_a_file_that_does_not_exist_yet(waker: WatchdogWaker, tmp_path: Path) -> None:
    listen(waker, tmp_path / "new.log")
    append(tmp_path / "new.log")
    assert heard(waker) == {str(tmp_path / "new.log")}


def test_rotation_is_heard(waker: WatchdogWaker, log: Path) -> None:
    listen(waker, log)
    log.rename(log.with_name("a.log.1"))
    assert heard(waker) == {str(log)}
    append(log)
    assert heard(waker) == {str(log)}
    log.unlink()
    assert heard(waker) == {str(log)}


def test_relative_paths(waker: WatchdogWaker, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    listen(waker, Path("a.log"))
    append(log)
    assert heard(waker) == {"a.log"}


def test_links_are_heard_at_both_ends(waker: WatchdogWaker, log: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "x.log"
    link.symlink_to(log)
    listen(waker, link)
    append(log)
    assert heard(waker) == {str(link)}
    link.unlink()
    assert heard(waker) == {str(link)}


def test_one_directory_under_two_names(waker: WatchdogWaker, log: Path, tmp_path: Path) -> None:
    alias = tmp_path.with_name(tmp_path.name + "-alias")
    alias.symlink_to(tmp_path)
    listen(waker, log, alias / "a.log")
    append(log)
    assert heard(waker) == {str(log), str(alias / "a.log")}
    listen(waker, log)
    append(log)
    assert heard(waker) == {str(log)}


def test_a_directory_that_is_made_anew(waker: WatchdogWaker, tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    log = directory / "a.log"
    append(log)
    listen(waker, log)
    assert not waker.deaf(str(log))
    log.unlink()
    directory.rmdir()
    heard(waker)
    waker.wait(0.01)
    assert waker.deaf(str(log))
    directory.mkdir()
    waker.watch([str(log)])
    assert not waker.deaf(str(log))
    waker.dirty()
    append(log)
    assert heard(waker) == {str(log)}


def test_a_directory_that_was_moved_is_heard_no_more(waker: WatchdogWaker, tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    log = directory / "a.log"
    append(log)
    listen(waker, log)
    directory.rename(tmp_path / "old")
    assert heard(waker) == {str(log)}
    append(tmp_path / "old" / "a.log")
    assert waker.wait(0.01) == frozenset()
    assert waker.dirty() == frozenset()


def test_another_directory_in_the_same_place(waker: WatchdogWaker, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        append(tmp_path / name / "a.log")
    link = tmp_path / "latest"
    link.symlink_to("one")
    listen(waker, link / "a.log")
    link.unlink()
    link.symlink_to("two")
    waker.watch([str(link / "a.log")])
    assert waker.dirty() == {str(link / "a.log")}
    append(tmp_path / "two" / "a.log")
    assert heard(waker) == {str(link / "a.log")}
    append(tmp_path / "one" / "a.log")
    waker.wait(0.01)
    assert waker.dirty() == frozenset()


def test_a_new_file_under_a_root(waker: WatchdogWaker, log: Path, tmp_path: Path) -> None:
    listen(waker, log, roots=((str(tmp_path), False),))
    append(tmp_path / "new.log")
    assert heard(waker) == {str(tmp_path)}
    append(tmp_path / "new.log")
    assert waker.wait(0.01) == frozenset()
    (tmp_path / "sub").mkdir()
    assert heard(waker) == {str(tmp_path)}
    append(tmp_path / "sub" / "x.log")
    waker.wait(0.01)
    assert waker.dirty() == frozenset()


def test_a_deep_root(waker: WatchdogWaker, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    listen(waker, roots=((str(tmp_path), True),))
    append(tmp_path / "a" / "b" / "x.log")
    assert heard(waker) == {str(tmp_path)}
    (tmp_path / "c" / "d").mkdir(parents=True)
    assert heard(waker) == {str(tmp_path)}
    waker.wait(0.01)
    waker.dirty()
    append(tmp_path / "c" / "d" / "x.log")
    assert heard(waker) == {str(tmp_path)}


def test_a_directory_that_is_renamed_under_a_deep_root(waker: WatchdogWaker, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    listen(waker, roots=((str(tmp_path), True),))
    (tmp_path / "a").rename(tmp_path / "b")
    heard(waker)
    waker.wait(0.01)
    waker.dirty()
    append(tmp_path / "b" / "x.log")
    assert heard(waker) == {str(tmp_path)}


def test_links_do_not_lead_out_of_a_root_or_in_circles(waker: WatchdogWaker, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "out").symlink_to("/usr")
    listen(waker, roots=((str(tmp_path), True),))
    assert waker.problems == []


def test_watches_that_nobody_wants_are_given_back(waker: WatchdogWaker, tmp_path: Path) -> None:
    paths = []
    for number in range(50):
        (tmp_path / str(number)).mkdir()
        paths.append(tmp_path / str(number) / "a.log")
    listen(waker, *paths)
    assert watches(waker) == 50
    listen(waker, paths[0])
    assert watches(waker) == 1
    listen(waker)
    assert watches(waker) == 0


def watches(waker: WatchdogWaker) -> int:
    """How many the kernel keeps (proc(5), /proc/pid/fdinfo)."""
    return Path(f"/proc/self/fdinfo/{waker._directories.fd}").read_text().count("inotify wd:")


def test_a_burst_needs_no_memory(waker: WatchdogWaker, log: Path, tmp_path: Path) -> None:
    listen(waker, log, roots=((str(tmp_path), False),))
    others = [tmp_path / f"{number % 100}.log" for number in range(10_000)]
    tracemalloc.start()
    for path in others:
        with path.open("a") as file:
            file.write("x")
    append(log)
    before = tracemalloc.take_snapshot()
    assert heard(waker) == {str(log), str(tmp_path)}
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    assert sum(stat.size_diff for stat in after.compare_to(before, "filename")) < 200_000


def test_an_overflow_of_the_kernels_queue_is_everything(waker: WatchdogWaker, log: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    listen(waker, log, roots=((str(tmp_path / "deep"), True),))
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY) for number in range(2)]
    (tmp_path / "deep" / "new").mkdir()
    for number in range(limit + 10):
        os.write(files[number % 2], b"x")
    assert heard(waker) == {str(log), str(tmp_path / "deep")}
    waker.watch([str(log)], ((str(tmp_path / "deep"), True),))
    waker.dirty()
    append(tmp_path / "deep" / "new" / "x.log")
    assert heard(waker) == {str(tmp_path / "deep")}


def test_writes_gather_during_a_rest(log: Path) -> None:
    waker = WatchdogWaker(rest=REST)
    listen(waker, log)
    append(log)
    assert heard(waker) == {str(log)}
    append(log)
    began = time.monotonic()
    waker.wait(0.03)
    assert time.monotonic() - began >= 0.03
    assert waker.dirty() == {str(log)}
    waker.close()


def test_where_notification_is_deaf_files_are_polled_too(tmp_path: Path, log: Path) -> None:
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/x rw\n")
    heard_in = Directories([], Mounts(str(tmp_path / "mountinfo")))
    heard_in.watch([str(log)], ())
    assert heard_in.deaf(str(log))
    heard_in.close()


def test_a_file_that_was_never_named_is_deaf(waker: WatchdogWaker, log: Path) -> None:
    assert waker.deaf(str(log))


def test_too_many_directories_are_said_once(
    waker: WatchdogWaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "LIMIT", 5)
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    for _ in range(3):
        waker.watch([], ((str(tmp_path), True),))
    assert watches(waker) == 5
    assert waker.problems == ["more than 5 directories: files in the others are polled"]


def test_the_kernels_limit_of_watches_is_said_once(
    waker: WatchdogWaker, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(self: object, directory: str) -> int:
        raise OSError(errno.ENOSPC, "cannot watch: no space; raise fs.inotify.max_user_watches")

    monkeypatch.setattr(inotify.Inotify, "add", add)
    for _ in range(3):
        waker.watch([str(log)])
    assert waker.problems == ["some files are polled: cannot watch: no space; raise fs.inotify.max_user_watches"]
    assert waker.deaf(str(log))


def test_the_kernels_limit_of_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers import inotify_c

    monkeypatch.setattr(inotify_c, "inotify_init", lambda: -1)
    before = len(os.listdir("/proc/self/fd"))
    waker = open_waker()
    assert isinstance(waker, PollWaker)
    assert not isinstance(waker, WatchdogWaker)
    assert "inotify instances" in waker.problems[0]
    waker.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchdog.observers", None)
    waker = open_waker()
    assert "files are polled" in waker.problems[0]
    waker.close()
