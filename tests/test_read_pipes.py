"""Standard input and named pipes."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lmdiag.read.pipes import PipeSource

Open = Callable[..., PipeSource]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open sources that are closed at the end."""
    sources: list[PipeSource] = []

    def open_one(path: str | Path = "-", stdin: int = 0) -> PipeSource:
        sources.append(PipeSource(str(path), stdin=stdin))
        return sources[-1]

    yield open_one
    for source in sources:
        source.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe; its ends may be closed by the test."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A named pipe."""
    os.mkfifo(path := tmp_path / "server.fifo")
    return path


def write(path: Path, data: bytes) -> None:
    """Write as a process that opens the pipe, writes, and leaves."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    assert os.write(fd, data) == len(data)
    os.close(fd)


def test_standard_input_ends_when_its_writer_leaves(pipe: tuple[int, int], opened: Open) -> None:
    source = opened(stdin=pipe[0])
    assert (source.read(), source.ended, source.fileno()) == (b"", False, pipe[0])
    os.write(pipe[1], b"one\nhalf")
    assert (source.lag(), source.read(), source.lag(), source.ended) == (8, b"one\nhalf", 0, False)
    os.write(pipe[1], b" end")
    os.close(pipe[1])
    assert (source.read(), source.ended, source.problem) == (b" end", True, "")
    assert (source.read(), source.fileno(), source.position(), source.lost()) == (b"", None, {}, [])


def test_standard_input_keeps_its_mode(pipe: tuple[int, int], opened: Open) -> None:
    """The flag is shared with whoever has the other copies, our own standard output on a terminal among them."""
    source = opened(stdin=pipe[0])
    source.read()
    assert os.get_blocking(pipe[0])
    source.close()
    assert os.get_blocking(pipe[0])


def test_a_terminal_is_read_line_by_line_and_ends(opened: Open) -> None:
    """At ^D."""
    keyboard, terminal = pty.openpty()
    try:
        source = opened(stdin=terminal)
        assert source.read() == b""
        os.write(keyboard, b"typed\n")
        select.select([terminal], [], [], 5)
        assert (source.read(), source.ended) == (b"typed\n", False)
        os.write(keyboard, b"\x04")
        select.select([terminal], [], [], 5)
        assert (source.read(), source.ended) == (b"", True)
    finally:
        os.close(keyboard)
        os.close(terminal)


@pytest.mark.parametrize("data", [b"", b"one\ntwo", b"x" * 1_000_000])
def test_a_file_as_standard_input_is_read_to_its_end(data: bytes, tmp_path: Path, opened: Open) -> None:
    """In pieces of at most 256 KiB."""
    (tmp_path / "log").write_bytes(data)
    with (tmp_path / "log").open("rb") as file:
        source = opened(stdin=file.fileno())
        assert source.lag() == len(data)
        found = bytearray()
        while not source.ended:
            piece = source.read()
            assert len(piece) <= 1 << 18
            found += piece
    assert bytes(found) == data


def test_a_standard_input_that_cannot_be_read_has_ended(tmp_path: Path, opened: Open) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    source = opened(stdin=directory)
    assert (source.read(), source.ended, source.problem) == (b"", True, "- cannot be read: Is a directory")
    os.close(directory)
    source = opened(stdin=directory)
    assert (source.read(), source.ended, source.problem) == (b"", True, "- cannot be read: Bad file descriptor")


def test_a_process_feeds_standard_input(opened: Open) -> None:
    """More than the pipe holds: the writer waits for the reader, and nothing is lost."""
    with subprocess.Popen(["head", "-c", "3000000", "/dev/zero"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        source = opened(stdin=process.stdout.fileno())
        size = 0
        while not source.ended:
            select.select([process.stdout], [], [], 5)
            size += len(source.read())
    assert size == 3_000_000


def test_writers_of_a_named_pipe_come_and_go(fifo: Path, opened: Open) -> None:
    source = opened(fifo)
    assert (source.read(), source.ended, source.problem, source.generation) == (b"", False, "", 1)
    for text in (b"one\n", b"two\n"):
        write(fifo, text)
        assert (source.lag(), source.read(), source.read(), source.ended) == (4, text, b"", False)
    fd = source.fileno()
    assert fd is not None
    assert select.select([fd], [], [], 0)[0] == []  # it would otherwise be a busy loop
    assert (source.generation, source.position()) == (1, {})


def test_a_read_is_bounded(fifo: Path, opened: Open) -> None:
    source = opened(fifo)
    source.read()
    fd = source.fileno()
    assert fd is not None
    with fifo.open("wb") as out, subprocess.Popen(["head", "-c", "1000000", "/dev/zero"], stdout=out) as process:
        size = 0
        while size < 1_000_000:
            select.select([fd], [], [], 5)
            data = source.read()
            assert 0 < len(data) <= 1 << 18
            size += len(data)
    assert process.returncode == 0


def test_a_pipe_made_anew_is_opened_after_the_rest_of_the_old(fifo: Path, opened: Open) -> None:
    source = opened(fifo)
    source.read()
    write(fifo, b"old\n")
    fifo.unlink()
    assert source.read() == b"old\n"
    assert (source.read(), source.problem) == (b"", f"{fifo} cannot be reached any more: No such file or directory")
    os.mkfifo(fifo)
    assert (source.read(), source.problem, source.generation) == (b"", "", 2)
    write(fifo, b"new\n")
    assert source.read() == b"new\n"


def test_a_writer_of_a_removed_pipe_is_still_heard(fifo: Path, opened: Open) -> None:
    source = opened(fifo)
    source.read()
    writer = os.open(fifo, os.O_WRONLY)
    fifo.unlink()
    os.write(writer, b"late\n")
    os.close(writer)
    assert source.read() == b"late\n"


def test_a_missing_pipe_is_a_problem_until_it_is_there(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "server.fifo"
    source = opened(path)
    assert (source.read(), source.problem, source.fileno()) == (b"", f"{path} does not exist: make it with mkfifo", None)
    assert (source.ended, source.lag()) == (False, 0)
    os.mkfifo(path)
    assert (source.read(), source.problem) == (b"", "")
    write(path, b"x")
    assert source.read() == b"x"


def test_what_is_no_pipe_is_not_read(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"x")
    source = opened(path)
    assert (source.read(), source.problem) == (b"", f"{path} is not a named pipe: make it with mkfifo, or watch it as a file")


def test_a_pipe_that_may_only_be_read_has_to_be_polled(
    fifo: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may always write, and so the system's answer is given here."""
    real = os.open

    def refuse(path: str, flags: int, *more: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", refuse)
    source = opened(fifo)
    assert (source.read(), source.problem, source.fileno()) == (b"", "", None)
    for text in (b"one\n", b"two\n"):
        write(fifo, text)
        assert (source.read(), source.read(), source.ended) == (text, b"", False)


def test_close_lets_the_writer_know(fifo: Path, opened: Open) -> None:
    source = opened(fifo)
    source.read()
    source.close()
    with pytest.raises(OSError, match="No such device"):
        write(fifo, b"x")
    assert (source.read(), source.fileno()) == (b"", None)


def test_close_leaves_standard_input_open(pipe: tuple[int, int], opened: Open) -> None:
    source = opened(stdin=pipe[0])
    source.close()
    os.write(pipe[1], b"x")
    assert (source.read(), os.read(pipe[0], 1)) == (b"", b"x")
