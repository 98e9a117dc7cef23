"""Standard input and named pipes: what is read from them cannot be read again."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios
from typing import Any

_BLOCK = 1 << 16  # what a pipe holds
_MAX_READ = 1 << 18


class PipeSource:
    """The bytes of standard input (`-`) or of a named pipe. A Source.

    Standard input ends: at its end of file, a regular file's too. A named pipe does not: its writers come and go, and
    one that was removed and made anew is opened again (a new `generation`), after the rest of the old one. What was
    read is gone for good: there is no position, and lines written while nobody reads wait in the writer.
    """

    required = True

    def __init__(self, path: str = "-", *, stdin: int = 0) -> None:
        """`stdin`: the descriptor that `-` stands for, by default 0; it is not closed here."""
        self.name = path
        self.problem = ""
        self.generation = 0
        self.ended = False
        self._path = None if path == "-" else path
        self._fd: int | None = None
        self._waits = True  # select() waits for bytes, and does not return at once because no writer is there
        self._identity: tuple[int, int] | None = None
        self._closed = False
        if self._path is None:
            self._fd = stdin

    def read(self) -> bytes:
        """Return the bytes that are there, at most 256 KiB."""
        if self.ended or self._closed:
            return b""
        if self._path is not None and self._fd is None:
            self._open()
        data = self._take()
        if not data and self._path is not None and self._fd is not None and self._replaced():
            self._open()
            data = self._take()
        return data

    def position(self) -> dict[str, Any]:
        """Return nothing: a pipe cannot be read again."""
        return {}

    def fileno(self) -> int | None:
        """Return the descriptor to select on; None for a pipe that we may not hold open (see `_open`)."""
        return self._fd if self._waits and not self.ended else None

    def lag(self) -> int:
        """Return the bytes that wait in the pipe, as far as it tells."""
        if self._fd is None or self.ended:
            return 0
        try:
            return int(struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4))[0])
        except OSError:
            return 0

    def lost(self) -> list[tuple[str, int]]:
        """Return nothing: a pipe loses no bytes, its writer waits."""
        return []

    def close(self) -> None:
        """Close a named pipe; its writers get SIGPIPE. Standard input stays open."""
        self._closed = True
        if self._path is not None:
            self._forget()
        self._fd = None

    def _take(self) -> bytes:
        data = bytearray()
        while self._fd is not None and len(data) < _MAX_READ and _readable(self._fd):
            try:
                block = os.read(self._fd, min(_BLOCK, _MAX_READ - len(data)))
            except BlockingIOError:
                break
            except OSError as error:
                self._broken(error)
                break
            if not block:
                self.ended = self._path is None
                break
            data += block
        return bytes(data)

    def _broken(self, error: OSError) -> None:
        self.problem = f"{self.name} cannot be read: {error.strerror}"
        if self._path is None:
            self.ended = True
        else:
            self._forget()

    def _open(self) -> None:
        """Open for writing, too, so that the pipe has no end when its last writer leaves.

        Where only reading is allowed it has one, select() would return all the time, and so the pipe has to be polled.
        """
        assert self._path is not None
        self._forget()
        try:
            if not stat.S_ISFIFO(os.stat(self._path).st_mode):
                self.problem = f"{self._path} is not a named pipe: make it with mkfifo, or watch it as a file"
                return
            try:
                self._fd, self._waits = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC), True
            except PermissionError:
                self._fd, self._waits = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), False
        except FileNotFoundError:
            self.problem = f"{self._path} does not exist: make it with mkfifo"
            return
        except OSError as error:
            self.problem = f"{self._path} cannot be opened: {error.strerror}"
            return
        found = os.fstat(self._fd)
        self._identity = found.st_dev, found.st_ino
        self.generation += 1
        self.problem = ""

    def _replaced(self) -> bool:
        """Say whether another pipe stands at the path; one that was only removed may still have writers."""
        assert self._path is not None
        try:
            found = os.stat(self._path)
        except OSError as error:
            self.problem = f"{self._path} cannot be reached any more: {error.strerror}"
            return False
        if (found.st_dev, found.st_ino) != self._identity:
            return True
        self.problem = ""
        return False

    def _forget(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None


def _readable(fd: int) -> bool:
    """Say whether read() would return at once.

    O_NONBLOCK is not set on standard input: the flag is that of everybody who shares it, and on a terminal of our own
    output, which would then fail when the terminal is slow.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
