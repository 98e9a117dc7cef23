"""A log file delivers every byte that was written, once, whatever is done to it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.read.parts import BLOCK
from lmdiag.read.source import Source
from lmdiag.read.tail import FileSource


class Clock:
    """A clock that only the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Log:
    """A log, what was written into it, and what a FileSource made of it."""

    def __init__(self, directory: Path, name: str = "server.log") -> None:
        self.path = directory / name
        self.clock = Clock()
        self.written = b""
        self.delivered = b""
        self.lines = 0
        self.source = self.begin(None)

    def begin(self, position: dict[str, Any] | None, **options: Any) -> FileSource:
        """A source that goes on at a position."""
        return FileSource(str(self.path), "log", required=True, position=position, clock=self.clock, **options)

    def write(self, count: int = 1, newline: bytes = b"\n") -> None:
        """Append lines that are all different."""
        data = b""
        for _ in range(count):
            self.lines += 1
            data += b"INFO line %d" % self.lines + newline
        with self.path.open("ab") as file:
            file.write(data)
        self.written += data

    def parts(self) -> int:
        """How many rotated files there are."""
        return len(list(self.path.parent.glob(self.path.name + ".*")))

    def number(self, number: int) -> Path:
        """The rotated file of a number, compressed or not."""
        packed = Path(f"{self.path}.{number}.gz")
        return packed if packed.exists() else Path(f"{self.path}.{number}")

    def shift(self) -> None:
        """Number the rotated files anew."""
        for number in range(self.parts(), 0, -1):
            old = self.number(number)
            old.rename(str(old).replace(f".log.{number}", f".log.{number + 1}"))

    def rename(self, *, create: bool = True) -> None:
        """Rotate as logrotate does with `create` or `nocreate`."""
        if self.path.exists():
            self.shift()
            self.path.rename(f"{self.path}.1")
        if create:
            self.path.touch()

    def copytruncate(self) -> None:
        """Rotate as logrotate does with `copytruncate`."""
        if self.path.exists():
            self.shift()
            shutil.copy(self.path, f"{self.path}.1")
            os.truncate(self.path, 0)

    def compress(self, number: int) -> None:
        """Compress a rotated file."""
        plain = Path(f"{self.path}.{number}")
        if plain.exists():
            Path(f"{plain}.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()

    def delete_oldest(self) -> None:
        """What logrotate does; no log is deleted that was not read, which would be a loss."""
        self.drain()
        if count := self.parts():
            self.number(count).unlink()

    def read(self) -> bytes:
        """One read."""
        data = self.source.read()
        self.delivered += data
        return data

    def drain(self) -> bytes:
        """All there is to read."""
        out = b""
        while data := self.read():
            out += data
        return out

    def restart(self) -> None:
        """The daemon ends and starts."""
        position = json.loads(json.dumps(self.source.position()))
        self.source.close()
        self.source = self.begin(position)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    log.path.touch()
    assert log.read() == b""
    yield log
    log.source.close()


OPERATIONS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from([1, 2, 3, 500])),
    st.tuples(st.just("unfinished"), st.just(0)),
    st.tuples(st.just("rename"), st.booleans()),
    st.tuples(st.sampled_from(["copytruncate", "read", "restart", "delete", "drain"]), st.just(0)),
    st.tuples(st.just("compress"), st.integers(1, 4)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(OPERATIONS, max_size=25), st.booleans())
def test_every_byte_is_delivered_once_in_order(operations: list[tuple[str, int]], exists: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Log(Path(directory))
        if exists:
            log.path.touch()
        log.read()
        for operation, argument in operations:
            apply(log, operation, argument)
            assert log.written.startswith(log.delivered), operation
        log.clock.now += 5
        log.drain()
        assert log.delivered == log.written
        assert log.source.lost() == []
        log.source.close()


def apply(log: Log, operation: str, argument: int) -> None:
    if operation == "write":
        log.write(argument)
    elif operation == "unfinished":
        log.write(1, newline=b";")  # else "line 1" might be the beginning of "line 10", in the same inode
    elif operation == "rename":
        log.rename(create=bool(argument))
    elif operation == "compress":
        log.compress(argument)
    elif operation == "delete":
        log.delete_oldest()
    else:
        getattr(log, operation)()


LATE = st.sampled_from(["write", "late", "later", "rename", "read", "drain", "restart", "pause"])


@settings(max_examples=200, deadline=None)
@given(st.lists(LATE, max_size=30))
def test_no_line_is_lost_or_doubled_when_old_files_are_still_written_to(operations: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Log(Path(directory))
        log.path.touch()
        log.read()
        late = 0
        for operation in operations:
            old = log.number(1 if operation == "late" else 2)
            if operation == "pause":
                log.clock.now += 60
            elif not operation.startswith("late"):
                apply(log, operation, 1)
            elif old.exists() and old.stat().st_size:  # one that was empty when it was rotated is not held
                late += 1
                with old.open("ab") as file:
                    file.write(b"late line %d\n" % late)
                log.written += b"late line %d\n" % late
                log.drain()
        log.clock.now += 5
        log.drain()
        assert sorted(log.delivered.splitlines()) == sorted(log.written.splitlines())
        log.source.close()


def hashes_only(position: dict[str, Any], log: Log) -> bool:
    return b"INFO" not in json.dumps(position).encode() and str(log.path) == position["path"]


def test_a_file_source_is_a_source(log: Log) -> None:
    source: Source = log.source
    assert (source.name, source.required, source.ended, source.fileno()) == ("log", True, False, None)


def test_what_is_appended_comes_once_and_the_position_holds_no_text(log: Log) -> None:
    log.write(3)
    assert log.drain() == log.written
    log.restart()
    assert log.drain() == b""
    assert hashes_only(log.source.position(), log)


def test_a_read_gives_at_most_a_block_and_lag_says_what_is_left(log: Log) -> None:
    log.write(30_000)
    assert log.source.lag() == len(log.written)
    assert len(log.read()) == BLOCK
    assert log.source.lag() == len(log.written) - BLOCK
    log.restart()
    log.drain()
    assert log.delivered == log.written


def counted(name: str, real: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        return real(*arguments, **options)

    return call


def test_an_idle_read_costs_two_calls(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write()
    log.drain()
    calls: list[str] = []
    for name in ("stat", "fstat", "pread", "open", "listdir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, counted(name, real, calls))
    assert log.read() == b""
    assert sorted(calls) == ["fstat", "stat"]


def test_it_begins_where_it_is_told_to_and_knows_the_older_parts(log: Log) -> None:
    log.write(2)
    log.rename()
    log.write(2)
    log.source = log.begin(None, start_offset=len(b"INFO line 3\n"))
    assert log.drain() == b"INFO line 4\n"
    log.write(1)
    log.rename()
    log.write(1)
    assert log.drain() == b"INFO line 5\nINFO line 6\n"


def test_a_start_beyond_the_end_of_the_file_is_its_beginning(log: Log) -> None:
    log.write()
    log.source = log.begin(None, start_offset=10_000)
    assert log.drain() == log.written


def test_a_writer_that_never_reopens_is_followed_into_the_renamed_file(log: Log) -> None:
    log.write()
    writer = log.path.open("ab", buffering=0)
    log.drain()
    log.rename()
    writer.write(b"nohup goes on\n")
    assert log.drain() == b"nohup goes on\n"
    assert log.source.generation == 0
    log.restart()
    writer.write(b"and on\n")
    assert log.drain() == b"and on\n"
    writer.close()


def test_late_lines_in_the_old_file_come_between_whole_lines_until_it_is_quiet(log: Log) -> None:
    log.write()
    writer = log.path.open("ab", buffering=0)
    log.drain()
    log.rename()
    log.write(newline=b"")
    log.drain()
    assert log.source.generation == 1
    writer.write(b"late\nunfinished")
    assert log.read() == b""  # a line of the current file waits for its end
    with log.path.open("ab") as file:
        file.write(b" whole\n")
    assert log.drain() == b" whole\nlate\n"
    log.restart()
    log.clock.now += 599
    writer.write(b" line\n")
    assert log.drain() == b"unfinished line\n"
    log.clock.now += 601
    log.drain()
    writer.write(b"too late\n")
    assert log.drain() == b""
    writer.close()


def test_a_deleted_old_file_is_let_go_sooner(log: Log) -> None:
    log.write()
    log.drain()
    log.rename()
    log.write()
    log.drain()
    log.number(1).unlink()
    log.clock.now += 11
    log.drain()
    assert log.source.position()["trailing"] == []


def test_a_busy_writer_in_the_old_file_does_not_hide_the_new_one(log: Log) -> None:
    log.write()
    writer = log.path.open("ab", buffering=0)
    log.drain()
    log.rename()
    log.write()
    out = b""
    for _ in range(4):
        writer.write(b"busy\n")
        out += log.read()
    assert b"INFO line 2\n" in out
    writer.close()


def test_several_rotations_while_away(log: Log) -> None:
    log.write(2)
    log.drain()
    position = log.source.position()
    log.source.close()
    for _ in range(3):
        log.write(2)
        log.rename()
        log.write(2)
    log.compress(3)
    log.compress(2)
    log.source = log.begin(position)
    log.drain()
    assert log.delivered == log.written
    assert log.source.generation == 3


def test_going_on_in_the_middle_of_a_compressed_part(log: Log) -> None:
    log.write(60_000)
    log.read()
    log.read()
    log.rename()
    log.compress(1)
    log.write()
    log.restart()
    log.read()
    assert BLOCK * 2 < log.source.position()["offset"] <= BLOCK * 3
    log.restart()
    log.drain()
    assert log.delivered == log.written


def test_nothing_of_ours_is_left(log: Log) -> None:
    log.write(5)
    log.drain()
    log.rename()
    log.write()
    log.number(1).unlink()
    position = json.loads(json.dumps(log.source.position()))
    log.source.close()
    log.source = log.begin(position)
    assert log.drain() == b"INFO line 6\n"
    assert log.source.lost() == [("rotated away", 0)]
    assert log.source.lost() == []


def test_an_inode_used_again_is_another_file(log: Log) -> None:
    log.write(5)
    log.drain()
    position = log.source.position()
    log.source.close()
    log.path.write_bytes(b"another log, longer than the one before: " + b"x" * 100 + b"\n")  # the same inode
    log.source = log.begin(position)
    assert log.drain().startswith(b"another log")


@pytest.mark.parametrize("way", ["rename", "copytruncate"])
def test_generations_may_begin_alike(log: Log, way: str) -> None:
    first = b"Starting the server with a banner that is always the same, of more than 64 bytes\n"
    for text in (b"one\n", b"two\n", b"three\n"):
        with log.path.open("ab") as file:
            file.write(first + text)
        log.written += first + text
        if text == b"one\n":
            log.drain()
            log.restart()
        getattr(log, way)()
    log.drain()
    log.clock.now += 5
    log.drain()
    assert log.delivered == log.written


def test_emptied_and_grown_beyond_the_old_offset(log: Log) -> None:
    log.write(2)
    log.drain()
    log.write(2)
    log.copytruncate()
    log.write(20)
    log.drain()
    assert log.delivered == log.written
    assert log.source.lost() == []


def test_emptied_by_hand_loses_what_was_not_read(log: Log) -> None:
    log.write(30_000)
    log.read()
    os.truncate(log.path, 0)
    log.write()
    assert log.drain() == b"\nINFO line 30001\n"
    [(reason, size)] = log.source.lost()
    assert reason == "truncated"
    assert size > 0


def test_a_writer_that_is_not_in_append_mode_leaves_a_hole(log: Log) -> None:
    with log.path.open("wb", buffering=0) as writer:
        writer.seek(4 << 30)
        writer.write(b"before\n")
        assert log.drain() == b"before\n"
        log.restart()
        os.truncate(log.path, 0)
        writer.write(b"after\n")
        assert log.drain() == b"after\n"
    log.restart()
    assert log.drain() == b""


def test_deleted_and_there_again(log: Log) -> None:
    log.write()
    writer = log.path.open("ab", buffering=0)
    log.drain()
    log.path.unlink()
    writer.write(b"still\n")
    assert log.read() == b"still\n"
    assert log.source.problem == ""
    assert log.read() == b""
    assert log.source.problem == f"{log.path} does not exist"
    log.write()
    assert log.read() == b"INFO line 2\n"
    assert log.source.problem == ""
    writer.close()


def test_a_file_that_is_missing_is_a_problem_only_if_it_was_named(tmp_path: Path) -> None:
    for required, problem in ((True, f"{tmp_path}/no.log does not exist"), (False, "")):
        source = FileSource(f"{tmp_path}/no.log", "no.log", required=required, position=None)
        assert (source.read(), source.problem) == (b"", problem)


def test_a_directory_link_that_leads_elsewhere(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.log").write_bytes(name.encode() + b"\n")
    link = tmp_path / "current"
    link.symlink_to("one")
    source = FileSource(str(link / "server.log"), "log", required=True, position=None, clock=Clock())
    assert source.read() == b"one\n"
    link.unlink()
    link.symlink_to("two")
    assert source.read() == b"two\n"
    link.unlink()
    link.symlink_to("one")
    assert (source.read(), source.read()) == (b"", b"")  # it was read
    source.close()


def test_a_link_to_a_log_that_is_rotated_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    log = Log(tmp_path / "pods")
    link = tmp_path / "name_of_container.log"
    link.symlink_to(log.path)
    log.path.touch()
    log.source = FileSource(str(link), "log", required=True, position=None, clock=log.clock)
    log.write()
    log.drain()
    for _ in range(3):
        log.write()
        log.rename()
        log.write()
    log.drain()
    assert log.delivered == log.written
    log.source.close()


def test_a_file_that_may_not_be_read_yet(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write()
    real = os.open
    with monkeypatch.context() as patch:

        def refuse(path: Any, *rest: Any) -> int:
            raise PermissionError(errno.EACCES, "Permission denied", path)

        patch.setattr(os, "open", refuse)
        source = log.begin(None)
        assert source.read() == b""
        assert source.problem.startswith(f"{log.path}: Permission denied; run lmdiag as a user")
    assert os.open is real
    assert source.read() == log.written
    assert source.problem == ""
    source.close()


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_a_descriptor_that_broke_is_opened_anew(log: Log, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    log.write()
    log.drain()
    log.write()

    def fail(*_: Any) -> bytes:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fail)
        assert log.read() == b""
        assert os.strerror(code) in log.source.problem
        assert log.read() == b""
    log.drain()
    assert (log.delivered, log.source.problem) == (log.written, "")


def test_a_rotated_part_that_is_broken_is_reported(log: Log) -> None:
    log.write(50)
    log.drain()
    log.rename()
    log.write(50_000)
    log.rename()
    log.compress(1)
    packed = log.number(1)
    packed.write_bytes(packed.read_bytes()[:-4000])
    log.write()
    log.drain()
    assert log.delivered.endswith(b"\nINFO line 50051\n")
    assert log.source.lost() == [("broken archive", 0)]


def test_a_copy_that_is_kept_beside_the_log_is_not_delivered_again(log: Log) -> None:
    log.write(3)
    log.drain()
    shutil.copy(log.path, f"{log.path}.bak")
    log.source.close()
    log.source = log.begin(None, start_offset=log.path.stat().st_size)
    log.path.rename(f"{log.path}.1")
    log.write()
    log.drain()
    assert log.delivered == log.written


class Pod:
    """A container's directory as the kubelet keeps it."""

    def __init__(self, top: Path) -> None:
        self.directory = top / "ns_pod_0a1b" / "vllm"
        self.directory.mkdir(parents=True)
        self.clock = Clock()
        self.put("0.log", b"0 first\n")
        self.source = self.begin(None)

    def begin(self, position: dict[str, Any] | None) -> FileSource:
        """A source that goes on at a position."""
        path = str(self.directory / "0.log")
        return FileSource(path, "ns/pod/vllm", required=False, position=position, clock=self.clock)

    def put(self, name: str, data: bytes) -> None:
        """Append to a file."""
        with (self.directory / name).open("ab") as file:
            file.write(data)

    def drain(self) -> bytes:
        """All there is to read."""
        self.clock.now += 5
        return b"".join(iter(self.source.read, b""))


def test_a_restart_of_the_container_is_the_next_file(tmp_path: Path) -> None:
    pod = Pod(tmp_path)
    assert pod.drain() == b"0 first\n"
    pod.put("0.log", b"0 killed")
    pod.put("1.log", b"1 first\n")
    assert pod.drain() == b"0 killed\n1 first\n"
    assert pod.source.generation == 1
    position = pod.source.position()
    pod.source.close()
    pod.put("1.log", b"1 last\n")
    pod.put("2.log", b"2 first\n")
    (pod.directory / "0.log").unlink()
    pod.source = pod.begin(position)
    assert pod.drain() == b"1 last\n2 first\n"
    pod.source.close()


def test_the_newline_between_containers_is_part_of_the_position(tmp_path: Path) -> None:
    pod = Pod(tmp_path)
    pod.put("0.log", b"0 killed")
    pod.put("1.log", b"1 first\n")
    out = []
    for _ in range(3):
        pod.clock.now += 5
        out.append(pod.source.read())
        position = json.loads(json.dumps(pod.source.position()))
        pod.source.close()
        pod.source = pod.begin(position)
    assert out == [b"0 first\n0 killed", b"\n", b"1 first\n"]
    pod.source.close()


def test_the_kubelets_rotation(tmp_path: Path) -> None:
    pod = Pod(tmp_path)
    pod.drain()
    pod.put("0.log", b"0 second\n")
    rotated = pod.directory / "0.log.20260101-120000"
    (pod.directory / "0.log").rename(rotated)
    pod.put("0.log", b"0 third\n")
    (pod.directory / "0.log").rename(pod.directory / "0.log.20260101-130000")
    pod.put("0.log", b"0 fourth\n")
    (pod.directory / "0.log.20260101-130000.gz").write_bytes(gzip.compress(b"0 third\n"))
    (pod.directory / "0.log.20260101-130000").unlink()
    pod.put("1.log.20260101-140000", b"1 first\n")
    pod.put("1.log", b"1 second\n")
    assert pod.drain() == b"0 second\n0 third\n0 fourth\n1 first\n1 second\n"
    pod.source.close()


@pytest.mark.parametrize("seen", [True, False])
def test_a_copy_that_is_written_over_in_place_is_read_each_time(tmp_path: Path, seen: bool) -> None:
    """A script's `cp server.log server.log.1; : > server.log`: the copy keeps its inode, and may keep its size and its end."""
    log, copy = tmp_path / "server.log", tmp_path / "server.log.1"
    log.touch()
    source = FileSource(str(log), str(log), required=True, position=None)
    drained = b"".join(iter(source.read, b""))
    written = b""
    for number in range(6):
        data = b"start %d\n" % number + b"the same end of every life of this server, longer than sixty-four bytes\n" * 3
        written += data
        with log.open("ab") as file:
            file.write(data)
        drained += source.read() if seen and number % 2 else b""
        copy.write_bytes(log.read_bytes())
        os.truncate(log, 0)
        drained += b"".join(iter(source.read, b""))
    assert drained == written
