"""The fast decoder of gzip gives what Python's own gives, of any bytes."""

from __future__ import annotations

import gzip
import struct
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.read.decoders import Codec, codec

CRC, EXTRA, NAME, COMMENT = 2, 4, 8, 16  # RFC 1952, the flags of a header


def member(body: bytes, level: int, flags: int, size: int = 3) -> bytes:
    """One gzip member with these fields in its header, each of so many bytes."""
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\x03"
    if flags & EXTRA:
        head += struct.pack("<H", size) + b"e" * size
    head += b"n" * size + b"\0" if flags & NAME else b""
    head += b"c" * size + b"\0" if flags & COMMENT else b""
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF) if flags & CRC else b""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return head + packer.compress(body) + packer.flush() + struct.pack("<II", zlib.crc32(body), len(body))


def decode(kind: Codec, data: bytes, chunk: int, most: int) -> tuple[str, bytes, bytes]:
    """Decode a member in steps: how it ended (whole, or broken), what came out, what follows it."""
    decoder, out, at = kind.decoder(), b"", 0
    while not decoder.eof:
        part = b""
        if decoder.needs_input:
            part, at = data[at : at + chunk], at + chunk
            if not part:
                return "broken", out, b""
        try:
            step = decoder.decompress(part, most)
        except kind.errors:
            return "broken", out, b""
        assert len(step) <= most
        out += step
    return "whole", out, decoder.unused_data + data[at:]


bodies = st.one_of(st.binary(max_size=2000), st.lists(st.sampled_from([b"INFO x\n", b"ERROR\n"]), max_size=400).map(b"".join))
steps = st.sampled_from([1, 7, 100, 5000])


@given(
    body=bodies,
    level=st.integers(0, 9),
    flags=st.sampled_from([0, NAME, EXTRA, COMMENT, CRC, NAME | COMMENT, EXTRA | NAME | COMMENT | CRC]),
    field=st.integers(0, 6000),
    behind=st.sampled_from([b"", b"\0\0", b"x", gzip.compress(b"y")]),
    chunk=steps,
    most=steps,
)
@settings(max_examples=300, deadline=None)
def test_whole_members(body: bytes, level: int, flags: int, field: int, behind: bytes, chunk: int, most: int) -> None:
    """Whatever their headers hold, in any steps, with anything behind."""
    fast = codec("gzip", "a.gz")
    assert fast.exact is not None
    data = member(body, level, flags, field) + behind
    assert decode(fast, data, chunk, most) == decode(fast.exact, data, chunk, most) == ("whole", body, behind)


@given(body=bodies, level=st.integers(0, 9), place=st.floats(0, 1, exclude_max=True), bit=st.one_of(st.none(), st.integers(0, 7)), chunk=steps, most=steps)
@settings(max_examples=300, deadline=None)
def test_damaged_members(body: bytes, level: int, place: float, bit: int | None, chunk: int, most: int) -> None:
    """What is cut off, or has a wrong bit, is never taken for other text."""
    data = bytearray(gzip.compress(body, level))
    index = int(place * len(data))
    if bit is None:
        del data[index:]
    else:
        data[index] ^= 1 << bit
    fast = codec("gzip", "a.gz")
    assert fast.exact is not None
    ended, out, _ = decode(fast, bytes(data), chunk, most)
    assert ended == "whole" or decode(fast.exact, bytes(data), chunk, most)[0] == "broken"
    assert ended == "broken" or out == body


def test_without_the_fast_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel of it, Python's own does the work."""
    monkeypatch.setitem(sys.modules, "isal", None)
    own = codec("gzip", "a.gz")
    assert own.exact is None
    assert decode(own, gzip.compress(b"x"), 100, 100) == ("whole", b"x", b"")
