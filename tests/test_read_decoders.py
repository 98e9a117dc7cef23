"""The fast decoder of gzip gives what Python's own gives, of any bytes."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.read.decoders import Codec, codec, zlib_gzip


def member(body: bytes, level: int, *, name: bool) -> bytes:
    """One gzip member, with a file's name in its header or without."""
    if not name:
        return gzip.compress(body, level)
    out = io.BytesIO()
    with gzip.GzipFile("server.log", "wb", level, out, 1) as file:
        file.write(body)
    return out.getvalue()


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
        except kind.error:
            return "broken", out, b""
        assert len(step) <= most
        out += step
    return "whole", out, decoder.unused_data + data[at:]


bodies = st.one_of(st.binary(max_size=2000), st.lists(st.sampled_from([b"INFO x\n", b"ERROR\n"]), max_size=400).map(b"".join))
steps = st.sampled_from([1, 7, 100, 5000])


@given(body=bodies, level=st.integers(0, 9), name=st.booleans(), behind=st.sampled_from([b"", b"\0\0", b"x", gzip.compress(b"y")]), chunk=steps, most=steps)
@settings(max_examples=200, deadline=None)
def test_whole_members(body: bytes, level: int, behind: bytes, chunk: int, most: int, *, name: bool) -> None:
    """In any steps, with anything behind."""
    data = member(body, level, name=name) + behind
    fast, own = codec("gzip", "a.gz"), zlib_gzip()
    assert decode(fast, data, chunk, most) == decode(own, data, chunk, most) == ("whole", body, behind)


@given(body=bodies, level=st.integers(0, 9), place=st.floats(0, 1, exclude_max=True), bit=st.one_of(st.none(), st.integers(0, 7)), chunk=steps, most=steps)
@settings(max_examples=300, deadline=None)
def test_damaged_members(body: bytes, level: int, place: float, bit: int | None, chunk: int, most: int) -> None:
    """What is cut off, or has a wrong bit, is never taken for other text. The fast one forgives bits of the header."""
    data = bytearray(gzip.compress(body, level))
    index = int(place * len(data))
    if bit is None:
        del data[index:]
    else:
        data[index] ^= 1 << bit
    fast, own = codec("gzip", "a.gz"), zlib_gzip()
    ended, out, _ = decode(fast, bytes(data), chunk, most)
    assert ended == "whole" or decode(own, bytes(data), chunk, most)[0] == "broken"
    assert ended == "broken" or out == body


def test_without_the_fast_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel of it, Python's own does the work."""
    monkeypatch.setitem(__import__("sys").modules, "isal", None)
    assert codec("gzip", "a.gz").error is zlib_gzip().error
