"""The contents that a log is made of: reading each on, and finding again the place where it was read up to.

A file is known by device and inode as long as somebody holds it open; after that the inode may be another file's. So
what is remembered of a file are hashes of its bytes as well, never the bytes themselves.
"""

from __future__ import annotations

import errno
import os
from hashlib import blake2b
from typing import Any, NamedTuple

from lmdiag.errors import InputError
from lmdiag.read.archives import RawReader, open_bytes
from lmdiag.read.decoders import MAGIC_SIZE, foreign, sniff

BLOCK = 1 << 18
HEAD = 4096
TAIL = 64

Ident = tuple[int, int]
"""Device and inode."""


def digest(data: bytes) -> str:
    """Hash bytes so that they can be recognized and not be read."""
    return blake2b(data, digest_size=16).hexdigest()


def ident_of(status: os.stat_result) -> Ident:
    """Return what tells a file from all others that exist at the same time."""
    return status.st_dev, status.st_ino


class Mark(NamedTuple):
    """A place in a file's content that is found again in a copy, a renamed or a compressed one."""

    ident: Ident
    offset: int
    head: str
    """Of the first min(4096, offset) bytes."""
    tail: str
    """Of the last min(64, offset) bytes before the offset."""

    def as_json(self) -> dict[str, Any]:
        """Turn it into JSON; see from_json."""
        head, tail = [min(HEAD, self.offset), self.head], [min(TAIL, self.offset), self.tail]
        return {"dev": self.ident[0], "ino": self.ident[1], "offset": self.offset, "head": head, "tail": tail}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Mark:
        """Read what as_json wrote."""
        return cls((value["dev"], value["ino"]), value["offset"], value["head"][1], value["tail"][1])


NOTHING_READ = Mark((0, 0), 0, digest(b""), digest(b""))


class Part:
    """One content, from its first byte to its last; the base of a file as it lies there and of a compressed one."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.opened = os.fstat(fd)
        self.ident = ident_of(self.opened)
        self.offset = 0
        self.breaks = False
        """A line does not go on into it from the part before: another container's, or bytes between them are lost."""
        self.is_broken = False
        """It could not be read to its end."""
        self.short = False
        """The last read reached the end, as it was then."""
        self.spent = False
        """It reached the end when there was a successor already."""
        self.aliases: set[Ident] = set()
        """Copies of it."""
        self.quiet_since = 0.0
        self._head = b""
        self._tail = b""

    @property
    def mark(self) -> Mark:
        """Where it was read up to."""
        return Mark(self.ident, self.offset, digest(self._head), digest(self._tail))

    def read(self) -> bytes | None:
        """Return the next bytes, b"" at the end; None if what was read is not in the file any more. Raises OSError."""
        raise NotImplementedError

    def seek(self, mark: Mark) -> bool:
        """Go to a mark, if this is the content that it was made of; else nothing changes."""
        raise NotImplementedError

    def lead(self) -> bytes:
        """Return its first 4096 bytes, not counting NULs at the start."""
        raise NotImplementedError

    def is_intact(self) -> bool:
        """Whether what was read last still stands where it was read."""
        return True

    def left(self) -> int:
        """Bytes not read yet; compressed ones, if it is."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the file."""
        os.close(self.fd)

    def _take(self, data: bytes) -> None:
        self.offset += len(data)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        self._tail = data[-TAIL:] if len(data) >= TAIL else (self._tail + data)[-TAIL:]


class PlainPart(Part):
    """A file as it lies there, which may grow, and may be emptied and written anew."""

    _seen: tuple[int, int] | None = None
    last_size = 0

    def read(self) -> bytes | None:
        """See Part; NULs at the start (a hole before a writer that was not in append mode) are left out."""
        while True:
            status = os.fstat(self.fd)
            seen = status.st_size, status.st_mtime_ns
            if status.st_size == self.offset and seen == self._seen:
                self.short = True
                return b""
            known = len(self._tail)
            data = os.pread(self.fd, known + BLOCK, self.offset - known)
            if not data.startswith(self._tail) or status.st_size < self.offset:
                return None
            data = data[known:] if known else data
            self.short = len(data) < BLOCK
            if data.startswith(b"\0"):
                if not self._skip_hole():
                    self._take(data)
                    data = data.lstrip(b"\0")
                    if data:
                        return data
                continue
            self._take(data)
            self._seen, self.last_size = seen, status.st_size
            return data

    def seek(self, mark: Mark) -> bool:
        """See Part."""
        if os.fstat(self.fd).st_size < mark.offset:
            return False
        head, tail = self._around(mark.offset)
        if (digest(head), digest(tail)) != (mark.head, mark.tail):
            return False
        self._head, self._tail, self.offset = head, tail, mark.offset
        return True

    def start_at(self, offset: int) -> None:
        """Take what is before the offset for read, if the file is as long; else begin with its first byte."""
        if os.fstat(self.fd).st_size >= offset:
            self._head, self._tail = self._around(offset)
            self.offset = offset

    def renewed(self) -> PlainPart:
        """Return the same file to be read from its first byte, and independent of this one."""
        part = PlainPart(self.path, os.dup(self.fd))
        part.aliases = self.aliases
        return part

    def lead(self) -> bytes:
        """See Part."""
        offset = self._data_after(0)
        while data := os.pread(self.fd, HEAD, offset):
            offset += len(data) - len(data.lstrip(b"\0"))
            if data.strip(b"\0"):
                return os.pread(self.fd, HEAD, offset)
        return b""

    def is_intact(self) -> bool:
        """See Part."""
        return self._around(self.offset) == (self._head, self._tail)

    def left(self) -> int:
        """See Part."""
        return max(0, os.fstat(self.fd).st_size - self.offset)

    def give_back(self, size: int) -> None:
        """Take the last `size` bytes for unread."""
        self._head, self._tail = self._around(self.offset - size)
        self.offset -= size
        self._seen = None

    def _around(self, offset: int) -> tuple[bytes, bytes]:
        tail = min(TAIL, offset)
        return os.pread(self.fd, min(HEAD, offset), 0), os.pread(self.fd, tail, offset - tail)

    def _skip_hole(self) -> bool:
        """Go to where the file's next data lie, if there is a hole; gigabytes of NULs are not worth the reading."""
        target = self._data_after(self.offset)
        if target <= self.offset:
            return False
        self._head, self._tail = self._around(target)
        self.offset = target
        return True

    def _data_after(self, offset: int) -> int:
        try:
            return os.lseek(self.fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data up to the end
                return os.fstat(self.fd).st_size
            return offset  # the file system cannot tell


class PackedPart(Part):
    """A compressed file, which does not grow; offsets count decompressed bytes."""

    def __init__(self, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._ahead = b""  # decompressed, not delivered yet
        self._raw = self._again()
        self._lead: bytes | None = None

    def read(self) -> bytes | None:
        """See Part."""
        data, self._ahead = self._ahead or self._decode(), b""
        self._take(data)
        self.short = not data
        return data

    def seek(self, mark: Mark) -> bool:
        """See Part."""
        begun = self._begin_of(min(HEAD, mark.offset))
        if digest(begun) != mark.head:
            return False
        while self.offset < mark.offset and (data := self._ahead or self._decode()):
            wanted = mark.offset - self.offset
            self._ahead = data[wanted:]
            self._take(data[:wanted])
        if (self.offset, digest(self._tail)) == (mark.offset, mark.tail):
            return True
        self._rewind()
        return False

    def lead(self) -> bytes:
        """See Part; asked for first before it is read from."""
        if self._lead is not None:
            return self._lead
        size = HEAD
        while len(begun := self._begin_of(size)) == size and len(begun.lstrip(b"\0")) < HEAD:
            size += BLOCK
        self._lead = begun.lstrip(b"\0")[:HEAD]
        return self._lead

    def left(self) -> int:
        """See Part."""
        return max(0, self.opened.st_size - self._raw.position) + len(self._ahead)

    def close(self) -> None:
        """See Part."""
        self._raw.close()
        super().close()

    def _begin_of(self, size: int) -> bytes:
        while len(self._ahead) < size and (data := self._decode()):
            self._ahead += data
        return self._ahead[:size]

    def _decode(self) -> bytes:
        buffer = bytearray(BLOCK)
        try:
            return bytes(memoryview(buffer)[: self._raw.readinto(buffer)])
        except InputError:
            self.is_broken = True
            return b""

    def _rewind(self) -> None:
        self._raw.close()
        self._raw = self._again()
        self.offset, self._head, self._tail, self._ahead = 0, b"", b"", b""

    def _again(self) -> RawReader:
        """Open the file that we hold once more, from its start and whatever it is called by now."""
        return open_bytes(f"/proc/self/fd/{self.fd}")


def open_part(path: str) -> Part:
    """Open a file, compressed or not; raises OSError, and InputError for an archive that lmdiag cannot read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return _kind_of(path, os.pread(fd, MAGIC_SIZE, 0))(path, fd)
    except (OSError, InputError):
        os.close(fd)
        raise


def _kind_of(path: str, magic: bytes) -> type[PlainPart | PackedPart]:
    if unreadable := foreign(magic):
        raise InputError(f"{path}: lmdiag does not read {unreadable[0]}")
    return PackedPart if sniff(magic) else PlainPart
