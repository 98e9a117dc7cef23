"""The bytes of one file or of standard input, as they lie there, without ever seeking (pipes, /proc)."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import Any, Protocol

from lmdiag.errors import InputError


class RawReader(Protocol):
    """Bytes of an input: a context manager that closes it."""

    @property
    def position(self) -> int:
        """How many bytes of the underlying (compressed) file are consumed."""

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Fill the buffer from its start with what is at hand; returns the number of bytes, 0 at the end.

        Raises InputError where the input cannot be read on; all bytes before that point were delivered.
        """

    def close(self) -> None:
        """Release the file; standard input stays open."""

    def __enter__(self) -> RawReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def explain(path: str, error: OSError) -> InputError:
    """Put an error of the system as a sentence: what, and what to try."""
    hint = ""
    if isinstance(error, FileNotFoundError):
        hint = "; check the path"
    elif isinstance(error, PermissionError):
        hint = "; run lmdiag as a user that may read it, for example with sudo"
    return InputError(f"{path}: {error.strerror or error}{hint}")


def readable_name(path: str) -> str:
    """Write a path that is not UTF-8 with escapes, so that it can be printed and kept."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class RawFile(RawReader):
    """A file, or standard input for the path "-"; raises InputError if it cannot be opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._head = b""
        self._consumed = 0
        self._readinto, self._close = _open_stdin() if path == "-" else _open_file(path)

    @property
    def position(self) -> int:
        """Bytes handed out; what was only peeked at does not count."""
        return self._consumed

    def close(self) -> None:
        """See RawReader."""
        self._close()

    def peek(self, size: int) -> bytes:
        """Look at the next `size` bytes (fewer at the end of the file), which stay to be read."""
        while len(self._head) < size:
            more = bytearray(size - len(self._head))
            count = self._fetch(more)
            if not count:
                break
            self._head += more[:count]
        return self._head[:size]

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        count = min(len(buffer), len(self._head))
        if count:
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            count = self._fetch(buffer)
        self._consumed += count
        return count

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, b"" at the end."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def _fetch(self, buffer: bytearray | memoryview) -> int:
        try:
            while (count := self._readinto(buffer)) is None:
                _wait_for_stdin()  # only a standard input that somebody made non-blocking answers None
        except OSError as error:
            raise explain(self.path, error) from error
        return count


Opened = tuple[Callable[[bytearray | memoryview], int | None], Callable[[], None]]


def _open_file(path: str) -> Opened:
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 (RawFile.close closes it)
    except OSError as error:
        raise explain(path, error) from error
    return file.readinto, file.close


def _open_stdin() -> Opened:
    if sys.stdin is None:
        raise InputError("-: standard input is closed; name a file, or pipe a log in")
    # Unbuffered: BufferedReader.readinto1 waits for more though it holds some, and read1 cannot tell "none yet" from
    # the end. Nothing else reads standard input, so its buffer is empty.
    raw: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    return raw.readinto, _keep_open


def _keep_open() -> None:
    """Do nothing: standard input belongs to the process."""


def _wait_for_stdin() -> None:
    import select

    select.select([sys.stdin.fileno()], [], [])


def size(path: str) -> int | None:
    """Bytes of the (compressed) file; None where that says nothing: a pipe, a device, /proc, a missing file."""
    try:
        status = os.stat(sys.stdin.fileno() if path == "-" else path)
    except (OSError, ValueError, AttributeError):
        return None
    return (status.st_size or None) if stat.S_ISREG(status.st_mode) else None
