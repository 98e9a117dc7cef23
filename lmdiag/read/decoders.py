"""The compressions that lmdiag reads, told by their first bytes; each decoder is imported when a file needs it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from lmdiag.errors import InputError
from lmdiag.read.adapters import Decoder, Igzip, Zlib, Zstandard

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


class Codec(NamedTuple):
    """A compression at work."""

    name: str
    decoder: Callable[[], Decoder]
    errors: tuple[type[Exception], ...]
    """What its decoder raises on broken data."""
    exact: Codec | None = None
    """A slower one for streams on which this one breaks off; None: this one is as good as any."""


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
    import zlib

    def exact() -> Decoder:
        return Zlib(zlib.decompressobj(31))

    slow = Codec("gzip", exact, (zlib.error,))
    try:
        from isal import igzip_lib  # a third of zlib's time
    except ImportError:  # no wheel for this processor
        return slow
    broken: Any = igzip_lib.error  # its types take the class for one of its objects

    def fast() -> Decoder:
        return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP_NO_HDR_VER)

    return Codec("gzip", lambda: Igzip(fast, exact), (broken, zlib.error), slow)


def _bzip2() -> Codec:
    import bz2

    return Codec("bzip2", bz2.BZ2Decompressor, (OSError,))


def _xz() -> Codec:
    import lzma

    return Codec("xz", lzma.LZMADecompressor, (lzma.LZMAError,))


def _zstd() -> Codec:
    try:
        import zstandard
    except ImportError:
        from importlib import import_module

        zstd: Any = import_module("compression.zstd")  # Python 3.14 and later
        return Codec("zstd", zstd.ZstdDecompressor, (zstd.ZstdError,))

    def decoder() -> Decoder:
        return Zstandard(zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)

    return Codec("zstd", decoder, (zstandard.ZstdError,))


_CODECS = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd}
