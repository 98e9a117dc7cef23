"""The bytes of an input whatever its compression, which the first bytes tell and not the name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from lmdiag.errors import InputError
from lmdiag.read.adapters import Decoder
from lmdiag.read.decoders import MAGIC_SIZE, Codec, codec, foreign, sniff
from lmdiag.read.files import RawFile, RawReader, size
from lmdiag.read.recode import Utf8Reader

__all__ = ["RawReader", "open_bytes", "size"]

_CHUNK = 1 << 16


def open_bytes(path: str) -> RawReader:
    """Open a file (or standard input: "-") for reading as UTF-8, decompressed; see RawReader.

    gzip, bzip2, xz and zstd are decompressed, UTF-16 with a byte order mark is recoded, a UTF-8 mark is dropped.
    Raises InputError if it cannot be opened, or is an archive that lmdiag does not read.
    """
    file = RawFile(path)
    try:
        return Utf8Reader(_decompressed(file))
    except InputError:
        file.close()
        raise


def _decompressed(file: RawFile) -> RawReader:
    head = file.peek(MAGIC_SIZE)
    kind = sniff(head)
    if kind:
        return Archive(file, codec(kind, file.path))
    if unreadable := foreign(head):
        name, tool = unreadable
        raise InputError(f"{file.path}: lmdiag does not read {name}; try: {tool} {file.path} | lmdiag scan -")
    return file


def _identity(path: str) -> tuple[int, int] | None:
    """Tell which regular file has a name, or None if none has: a log may be renamed while it is read."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


class Archive(RawReader):
    """A compressed file of one or more members (gzip), streams (bzip2, xz) or frames (zstd)."""

    def __init__(self, file: RawFile, codec: Codec) -> None:
        self._file = file
        self._identity = _identity(file.path)
        # Where a fast decoder breaks off, an exact one reads again: a pipe has it from the start.
        self._codec = (codec.exact if self._identity is None else None) or codec
        self._given = 0  # decompressed bytes so far
        self._last_bytes = b""  # decompressed before a break, not yet given
        self._broken: InputError | None = None
        self._begin(b"")

    def _begin(self, first: bytes) -> None:
        """Start on a member whose first bytes were already read."""
        self._decoder: Decoder = self._codec.decoder()
        self._first = first
        self._member = self._chunk = self._file.position - len(first)
        self._member_given = self._given

    @property
    def position(self) -> int:
        """Compressed bytes."""
        return self._file.position

    def close(self) -> None:
        """See RawReader."""
        self._file.close()

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader; past a break it raises the same InputError each time."""
        data = b"" if self._broken else self._decode(len(buffer))
        if self._broken and self._codec.exact and self._can_be_read_again():
            self._begin_again(self._codec.exact)
            data = self._decode(len(buffer))
        if self._broken:
            data, self._last_bytes = self._last_bytes[: len(buffer)], self._last_bytes[len(buffer) :]
            if not data:
                raise self._broken
        buffer[: len(data)] = data
        self._given += len(data)
        return len(data)

    def _decode(self, size: int) -> bytes:
        """Decompressed bytes; b"" at the end, or with self._broken set."""
        data = b""
        while not data and not self._broken and (not self._decoder.eof or self._next_member()):
            chunk = self._next_chunk() if self._decoder.needs_input else b""
            if self._broken:
                break
            try:
                data = self._decoder.decompress(chunk, size)
            except self._codec.errors as error:
                self._last_bytes = self._salvage()
                self._break(f"breaks off ({error})")
        return data

    def _next_chunk(self) -> bytes:
        chunk, self._first = self._first, b""
        self._chunk = self._file.position - len(chunk)
        if not chunk:
            chunk = self._read()
            if not chunk:
                self._break("breaks off")
        return chunk

    def _next_member(self) -> bool:
        """Begin with what follows the member; zeros are padding (gzip manual, .xz format 2.2)."""
        rest = self._decoder.unused_data.lstrip(b"\0")
        while len(rest) < MAGIC_SIZE and (more := self._read()):
            rest = (rest + more).lstrip(b"\0")
        if not rest:
            return False
        if sniff(rest) != self._codec.name:
            self._break("is followed by other bytes")
            return False
        self._begin(rest)
        return True

    def _read(self) -> bytes:
        try:
            return self._file.read(_CHUNK)
        except InputError as error:
            self._broken = error
            return b""

    def _break(self, what: str) -> None:
        after = self._given + len(self._last_bytes)
        message = f"{self._file.path}: {self._codec.name} stream {what} after {after} decompressed bytes; what came"
        self._broken = self._broken or InputError(f"{message} before was read")

    def _can_be_read_again(self) -> bool:
        return self._identity is not None and _identity(self._file.path) == self._identity

    def _begin_again(self, codec: Codec) -> None:
        """Read the member that broke off again with another codec, up to what was given on."""
        given, first = self._given - self._member_given, self._member_given
        file, self._file = self._file, RawFile(self._file.path)
        file.close()
        while (ahead := self._member - self._file.position) and self._file.read(min(ahead, _CHUNK)):
            pass
        self._codec, self._broken = codec, None
        self._begin(b"")
        self._member_given = first
        while given and (data := self._decode(min(given, _CHUNK))):
            given -= len(data)

    def _salvage(self) -> bytes:
        """Recover what the decoder had decompressed in the call that failed, and dropped.

        Decoders can neither be copied nor asked, so the member is decompressed again, from the last bytes that were
        given on in the smallest steps. A pipe cannot be read twice: there, at most one block is lost.
        """
        out = bytearray()
        if not self._codec.exact and self._can_be_read_again():
            try:
                for data in self._again(self._given - self._member_given):
                    out += data
            except OSError:
                pass
            except self._codec.errors:
                pass  # the error that is salvaged from
        return bytes(out)

    def _again(self, known: int) -> Iterator[bytes]:
        """Decompress the member but for its `known` first bytes, up to the error that the decoder raises again."""
        decoder = self._codec.decoder()
        with open(self._file.path, "rb") as file:
            file.seek(self._member)
            while not decoder.eof and file.tell() < self._file.position:
                ahead = self._chunk - file.tell()
                data = file.read(min(ahead, _CHUNK) if ahead > 0 else 1)
                if not data:
                    return  # it has shrunk
                while data or not (decoder.eof or decoder.needs_input):
                    out = decoder.decompress(data, min(known, _CHUNK) or 1)
                    data = b""
                    if known:
                        known -= len(out)
                    else:
                        yield out
