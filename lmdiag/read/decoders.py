"""The compressions that lmdiag reads, told by their first bytes; each decoder is imported when a file needs it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from lmdiag.errors import InputError

MAGIC_SIZE = 10
"""So many first bytes tell all of them apart."""

# RFC 1952; the bzip2 block and end-of-stream marks; the .xz file format 1.2.0; RFC 8878 (zstd, skippable frames too).
_MAGIC = re.compile(
    rb"(?P<gzip>\x1f\x8b\x08)"
    rb"|(?P<bzip2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<xz>\xfd7zXZ\x00)"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"
)

_FOREIGN = (
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"\x1f\x9d", "compress (.Z)", "zcat"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x -so"),
)

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


class Codec(NamedTuple):
    """A compression at work."""

    name: str
    decoder: Callable[[], Decoder]
    error: type[Exception]
    """What its decoder raises on broken data."""


def sniff(head: bytes) -> str | None:
    """Name the compression (gzip, bzip2, xz, zstd) of a file that begins so, or None."""
    found = _MAGIC.match(head)
    return found.lastgroup if found else None


def foreign(head: bytes) -> tuple[str, str] | None:
    """Give (name, command that unpacks it to standard output) of an archive that lmdiag does not read."""
    return next(((name, tool) for magic, name, tool in _FOREIGN if head.startswith(magic)), None)


def codec(kind: str, path: str) -> Codec:
    """Load the codec of a kind that `sniff` named; InputError if its library is missing."""
    try:
        return _CODECS[kind]()
    except ImportError as error:
        remedy = "pip install 'lmdiag[zstd]'" if kind == "zstd" else f"this Python was built without {error.name}"
        raise InputError(f"{path}: cannot read {kind} without its library: {remedy}") from error


def _gzip() -> Codec:
    try:
        from isal import igzip_lib  # a third of zlib's time
    except ImportError:  # no wheel for this processor
        return zlib_gzip()
    broken: Any = igzip_lib.error  # its types take the class for one of its objects
    return Codec("gzip", partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP), broken)


def zlib_gzip() -> Codec:
    """Return gzip's codec of Python's own library."""
    import zlib

    return Codec("gzip", lambda: _Gzip(zlib.decompressobj(31)), zlib.error)


def _bzip2() -> Codec:
    import bz2

    return Codec("bzip2", bz2.BZ2Decompressor, OSError)


def _xz() -> Codec:
    import lzma

    return Codec("xz", lzma.LZMADecompressor, lzma.LZMAError)


def _zstd() -> Codec:
    try:
        import zstandard
    except ImportError:
        from importlib import import_module

        zstd: Any = import_module("compression.zstd")  # Python 3.14 and later
        return Codec("zstd", zstd.ZstdDecompressor, zstd.ZstdError)
    return Codec("zstd", lambda: _Zstandard(zstandard.ZstdDecompressor().decompressobj()), zstandard.ZstdError)


_CODECS = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd}


class _Gzip:
    """zlib's object as a Decoder."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._full = False

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        # After a full output zlib may hold more of it even when all input is used up.
        return not self._full and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out: bytes = self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))
        self._full = len(out) == max_length
        return out


class _Zstandard:
    """zstandard's object as a Decoder."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._in = memoryview(b"")
        self._out = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof) and not self._out

    @property
    def needs_input(self) -> bool:
        return not self._out and not self._in

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data) + bytes(self._in)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if data:
            self._in = memoryview(bytes(self._in) + data)
        while self._in and not self._out and not self._inner.eof:
            piece, self._in = self._in[:_ZSTD_PIECE], self._in[_ZSTD_PIECE:]
            self._out = memoryview(self._inner.decompress(piece))
        end = len(self._out) if max_length < 0 else max_length
        taken, self._out = self._out[:end], self._out[end:]
        return bytes(taken)
