"""A file of JSON lines, with its own rotation, which several processes may write to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lmdiag.forward.data import record
from lmdiag.forward.message import DELIVERED, RETRY, Outcome
from lmdiag.report.control import one_line

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.message import Message

_PAUSE = 0.02
"""Seconds between two tries to get the lock."""
_HINTS = {
    errno.ENOENT: "; make its directory",
    errno.ELOOP: "; name the file that the link points to",
}


class FileSink:
    """Appends each message as one line, and renames the file to path.1, path.1 to path.2, … before it grows too large.

    A line is on the disk when it counts as delivered. New files are the owner's alone (0600). A link in place of the
    file is not followed, because whoever may write to the directory could point it anywhere; a rotation would rename
    the link besides. Directories on the way may be links.
    """

    batch = 64

    def __init__(self, config: SinkConfig) -> None:
        self._config = config

    def send(self, messages: Sequence[Message], now: float) -> Outcome:  # noqa: ARG002 (the time is in the messages)
        """Append the messages, or in the end none of those that are in the current file."""
        lines = [record(message).encode() for message in messages]
        until = time.monotonic() + self._config.timeout
        try:
            while lines:
                lines = self._append(lines, until)
        except OSError as error:
            reason = f"{error.strerror or error}{_HINTS.get(error.errno or 0, '')}"
            return Outcome(RETRY, one_line(f"{self._config.path}: {reason}"))
        return Outcome(DELIVERED)

    def preview(self, messages: Sequence[Message], now: float) -> str:  # noqa: ARG002
        """Return the lines, and the file that they go to."""
        return f"append to {one_line(self._config.path)}:\n" + "".join(map(record, messages))

    def _append(self, lines: list[bytes], until: float) -> list[bytes]:
        """Write as many of the lines as fit into the current file; rotate it if some do not, and return those."""
        fd = self._open(until)
        try:
            size = os.fstat(fd).st_size
            # A process that was killed, or a full disk, may have left half a line: ours begin on a new one.
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            count = self._fitting(lines, size + torn)
            if count:
                _write(fd, size, b"\n" * torn + b"".join(lines[:count]))
            if not size:
                _sync_directory(self._config.path)
            if count < len(lines):
                self._rotate()
        finally:
            os.close(fd)
        return lines[count:]

    def _fitting(self, lines: list[bytes], size: int) -> int:
        """How many of the lines fit behind so many bytes; one that is larger than a file may be gets its own."""
        count = 0
        for line in lines:
            size += len(line)
            if size > self._config.max_size and size > len(line):
                break
            count += 1
        return count

    def _open(self, until: float) -> int:
        """Open the file that stands at the path when its lock has been got. Raises OSError."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        while True:
            fd = os.open(self._config.path, flags, 0o600)
            try:
                _lock(fd, until)
                if self._stands(fd):
                    return fd
            except OSError:
                os.close(fd)
                raise
            os.close(fd)  # another process has rotated it meanwhile

    def _stands(self, fd: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(fd), os.lstat(self._config.path))
        return False

    def _rotate(self) -> None:
        """Give the file its number; who holds its lock is the only one to rename anything."""
        path, keep = self._config.path, self._config.keep
        if not keep:
            os.unlink(path)
            return
        names = [path, *(f"{path}.{number}" for number in range(1, keep + 1))]
        # From a gap that an interrupted rotation left, nothing has to move on.
        last = next((number for number in range(1, keep) if not os.path.lexists(names[number])), keep)
        for number in range(last, 0, -1):
            os.replace(names[number - 1], names[number])
        _sync_directory(path)


def make(config: SinkConfig) -> FileSink:
    """Make the sink. Nothing is opened before something is sent."""
    return FileSink(config)


def _lock(fd: int, until: float) -> None:
    """Get the lock of a regular file. Raises OSError if another process keeps it until then (monotonic seconds)."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    while not _locked(fd):
        if time.monotonic() >= until:
            raise OSError(errno.EAGAIN, "another process holds its lock")
        time.sleep(_PAUSE)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(fd: int, size: int, data: bytes) -> None:
    """Write all of it behind so many bytes and wait for the disk, or leave nothing of it. Raises OSError."""
    try:
        rest = memoryview(data)
        while rest:  # a second time only to learn why the first write was short
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _sync_directory(path: str) -> None:
    """Have the names on the disk as well; some file systems have nothing to do there, and say so by an error."""
    with suppress(OSError):
        fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
