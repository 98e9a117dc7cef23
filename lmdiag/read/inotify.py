"""inotify(7) without threads: a descriptor to select on, and the events that lie there, each once.

watchdog gives the binding to the C library. Its observer is not used: it has a thread for each directory and spends
13 µs on every write, which is a third of a core where ten servers log 20,000 lines a second; and it looks at each event
while the kernel joins equal ones only as long as nobody looks.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = struct.Struct("iIII")  # wd, mask, cookie, length of the name
_LENGTH = struct.Struct("I")
_BLOCK = 1 << 16
_MANY = 1 << 15
"""Bytes of events that are looked at one by one; of more, nothing is said but that there were many."""


class Event(NamedTuple):
    """Something that happened in a watched directory."""

    watch: int
    name: str
    """Of the entry in the directory; "" for the directory itself."""
    structural: bool
    """An entry has come or gone; else one was written."""
    directory: bool
    """The entry is a directory."""
    gone: bool
    """The watched directory was deleted, moved or unmounted, and its watch is no more."""


class Inotify:
    """One inotify instance. Raises ImportError without watchdog (or its libc), OSError at the kernel's limits."""

    def __init__(self) -> None:
        from watchdog.observers import inotify_c

        names = inotify_c.InotifyConstants
        self._library: Any = inotify_c
        self._written = int(names.IN_MODIFY)
        self._gone = int(names.IN_DELETE_SELF | names.IN_MOVE_SELF | names.IN_UNMOUNT)
        self._ignored = int(names.IN_IGNORED)
        self._overflow = int(names.IN_Q_OVERFLOW)
        self._is_directory = int(names.IN_ISDIR)
        moves = int(names.IN_MOVED_FROM | names.IN_MOVED_TO | names.IN_CREATE | names.IN_DELETE)
        self._mask = self._written | moves | int(names.IN_DELETE_SELF | names.IN_MOVE_SELF | names.IN_ONLYDIR)
        self.fd = int(inotify_c.inotify_init())
        if self.fd < 0:
            raise _error("no more inotify instances")
        os.set_blocking(self.fd, False)
        os.set_inheritable(self.fd, False)  # noqa: FBT003

    def add(self, directory: str) -> int:
        """Watch a directory, and return its number; the same one for the same directory under another name."""
        watch = int(self._library.inotify_add_watch(self.fd, os.fsencode(directory), self._mask))
        if watch < 0:
            raise _error(f"cannot watch {directory}")
        return watch

    def remove(self, watch: int) -> None:
        """Watch no longer; a watch that is gone already is no mistake."""
        self._library.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[Event] | None:
        """Take all events that lie there, equal ones once; None if there were too many, or the kernel lost some.

        The work is bounded, however much was written: a crowd of events is thrown away unseen.
        """
        data = self._block()
        if len(data) < _MANY:
            return self._parse(data)
        while self._block():
            pass
        return None

    def close(self) -> None:
        """Give back the descriptor, and with it all watches."""
        os.close(self.fd)

    def _block(self) -> bytes:
        try:
            return os.read(self.fd, _BLOCK)
        except BlockingIOError:
            return b""

    def _parse(self, data: bytes) -> list[Event] | None:
        heads = [(*_HEAD.unpack_from(one), one[_HEAD.size :].rstrip(b"\0")) for one in dict.fromkeys(_split(data))]
        if any(mask & self._overflow for _, mask, *_ in heads):
            return None
        return [self._event(watch, mask, name) for watch, mask, _, _, name in heads]

    def _event(self, watch: int, mask: int, name: bytes) -> Event:
        return Event(
            watch,
            os.fsdecode(name),
            structural=not mask & self._written,
            directory=bool(mask & self._is_directory),
            gone=bool(mask & (self._gone | self._ignored)),
        )


def _split(data: bytes) -> Iterator[bytes]:
    """Cut a block into events. They are compared before they are read: a file that is written gives many equal ones."""
    start = 0
    while start < len(data):
        end = start + _HEAD.size + _LENGTH.unpack_from(data, start + 12)[0]
        yield data[start:end]
        start = end


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    hint = {
        errno.ENOSPC: "; raise fs.inotify.max_user_watches",
        errno.EMFILE: "; raise fs.inotify.max_user_instances",
    }.get(number, "")
    return OSError(number, f"{what}: {os.strerror(number)}{hint}")
