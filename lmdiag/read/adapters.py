"""Decompressors that need a hand to be a `Decoder`: zlib's, ISA-L's and zstandard's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

_SIMPLE_GZIP = re.compile(rb"\x1f\x8b\x08(?:\0.{6}|\x08.{6}[^\0]*\0)", re.DOTALL)
"""A whole header with no optional field but a file's name (RFC 1952), as all usual tools write it."""

_FLAGS = 3  # where they stand in a gzip header
_NAME = 0x08  # FNAME, one of the flags
_LONG_HEADER = 1 << 12

_ZSTD_PIECE = 1024
"""zstandard's decompressobj has no output limit, and a block of 4 bytes can hold 128 KiB (RFC 8878, RLE blocks):
small inputs bound what a hostile file can make it allocate."""


class Decoder(Protocol):
    """One compressed stream, with the interface of bz2.BZ2Decompressor."""

    @property
    def eof(self) -> bool:
        """The end of the stream was reached."""

    @property
    def needs_input(self) -> bool:
        """Nothing more comes out before more is put in."""

    @property
    def unused_data(self) -> bytes:
        """What was put in beyond the end of the stream."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Put data in, take at most max_length bytes out."""


class Zlib:
    """zlib's object as a Decoder."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._full = False

    @property
    def eof(self) -> bool:
        """See Decoder."""
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        """See Decoder."""
        # After a full output zlib may hold more of it even when all input is used up.
        return not self._full and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """See Decoder."""
        return bytes(self._inner.unused_data)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """See Decoder."""
        out: bytes = self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))
        self._full = len(out) == max_length
        return out


class Igzip:
    """ISA-L's decoder of what stands behind a gzip header; it checks the checksum and the length.

    It is not asked about the header: isal 1.9 errs where one has a checksum, or comes in pieces. What has not the
    simple header is left to `other`. At a break it may hold back two bytes that zlib gives.
    """

    def __init__(self, inner: Callable[[], Decoder], other: Callable[[], Decoder]) -> None:
        self._inner = inner
        self._other = other
        self._head = b""
        self._chosen: Decoder | None = None

    @property
    def eof(self) -> bool:
        """See Decoder."""
        return self._chosen is not None and self._chosen.eof

    @property
    def needs_input(self) -> bool:
        """See Decoder."""
        return self._chosen is None or self._chosen.needs_input

    @property
    def unused_data(self) -> bytes:
        """See Decoder."""
        return self._chosen.unused_data if self._chosen else b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """See Decoder."""
        if self._chosen is None:
            data, self._head = self._head + data, b""
            header = _SIMPLE_GZIP.match(data)
            if header:
                self._chosen, data = self._inner(), data[header.end() :]
            elif data[_FLAGS : _FLAGS + 1] in (b"", b"\0", bytes([_NAME])) and len(data) < _LONG_HEADER:
                self._head = data
                return b""
            else:
                self._chosen = self._other()
        return self._chosen.decompress(data, max_length)


class Zstandard:
    """zstandard's object as a Decoder."""

    def __init__(self, inner: Any, error: type[Exception]) -> None:
        self._inner = inner
        self._error = error
        self._raised: Exception | None = None
        self._in = memoryview(b"")
        self._out = memoryview(b"")

    @property
    def eof(self) -> bool:
        """See Decoder."""
        return bool(self._inner.eof) and not self._out

    @property
    def needs_input(self) -> bool:
        """See Decoder."""
        return not self._out and not self._in and self._raised is None

    @property
    def unused_data(self) -> bytes:
        """See Decoder."""
        return bytes(self._inner.unused_data) + bytes(self._in)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """See Decoder."""
        if data:
            self._in = memoryview(bytes(self._in) + data)
        pieces, size = [self._out], len(self._out)
        while self._in and not self._inner.eof and not self._raised and (max_length < 0 or size < max_length):
            piece, self._in = self._in[:_ZSTD_PIECE], self._in[_ZSTD_PIECE:]
            try:
                pieces.append(self._inner.decompress(piece))
            except self._error as error:
                self._raised = error  # only when what came before has been taken
            else:
                size += len(pieces[-1])
        if self._raised and not size:
            raise self._raised
        out = memoryview(b"".join(pieces))
        end = size if max_length < 0 else max_length
        self._out = out[end:]
        return bytes(out[:end])
