"""The bytes of an input whatever its compression."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.errors import InputError
from lmdiag.read.archives import RawReader, open_bytes, size

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
kinds = pytest.mark.parametrize("kind", PACK)
TEXT = b"".join(b"ERROR 01-01 00:00:%02d [core.py:%d] line\n" % (i % 60, i * i % 9973) for i in range(20_000))


def read(raw: RawReader, block: int = 4096) -> tuple[bytes, InputError | None]:
    """All bytes, and the error at their end."""
    out, buffer = bytearray(), bytearray(block)
    with raw:
        try:
            while count := raw.readinto(buffer):
                out += buffer[:count]
        except InputError as error:
            return bytes(out), error
    return bytes(out), None


def put(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


@kinds
@settings(deadline=None)
@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4), block=st.integers(1, 70))
def test_members_one_after_another_equal_the_plain_text(kind: str, parts: list[bytes], block: int) -> None:
    parts[0] = b"=" + parts[0]  # no byte order mark
    with tempfile.TemporaryDirectory() as directory:
        path = put(Path(directory) / "any.name", b"".join(map(PACK[kind], parts)))
        assert read(open_bytes(path), block) == (b"".join(parts), None)


@kinds
def test_large_files_and_padding(kind: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a", PACK[kind](TEXT) + b"\0" * 512 + PACK[kind](TEXT))
    raw = open_bytes(path)
    assert read(raw) == (TEXT * 2, None)
    assert raw.position == size(path) == os.path.getsize(path)


@kinds
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_cut_archive_gives_what_came_before(kind: str, share: float, tmp_path: Path) -> None:
    packed = PACK[kind](TEXT)
    data, error = read(open_bytes(put(tmp_path / "a.log", packed[: int(len(packed) * share)])))
    assert TEXT.startswith(data)
    assert error is not None
    assert f"a.log: {kind} stream breaks off after {len(data)} decompressed bytes; what came before" in str(error)


@pytest.mark.parametrize("block", [3, 1 << 18])
@pytest.mark.parametrize("text", [TEXT[:60_000], b"x" * 50_000])
def test_a_cut_gzip_gives_all_that_zlib_can_decompress(text: bytes, block: int, tmp_path: Path) -> None:
    packed = gzip.compress(text)[:-12]
    data, error = read(open_bytes(put(tmp_path / "a", packed)), block)
    assert data == zlib.decompressobj(31).decompress(packed)
    assert error


@kinds
def test_a_damaged_archive_gives_what_came_before(kind: str, tmp_path: Path) -> None:
    """Only the last member is damaged (in its checksum, for most), so that nearly all of its text can be had."""
    packed = bytearray(PACK[kind](TEXT) + PACK[kind](TEXT))
    packed[-14 if kind == "xz" else -2] ^= 0xFF
    path = put(tmp_path / "a", bytes(packed))
    small, large = read(open_bytes(path), 1000), read(open_bytes(path), 1 << 18)
    assert small[0] == large[0]
    assert large[0] == TEXT * 2
    assert f"{kind} stream breaks off" in str(large[1])
    assert f" after {len(TEXT) * 2} decompressed bytes" in str(large[1])


@kinds
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_what_damage_leaves_depends_on_no_block_size(kind: str, data: st.DataObject) -> None:
    packed = bytearray(PACK[kind](TEXT[:30_000]))
    packed[data.draw(st.integers(12, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as directory:
        path = put(Path(directory) / "a", bytes(packed))
        (first, one), (second, other) = (read(open_bytes(path), block) for block in (777, 1 << 17))
    assert first == second
    assert str(one) == str(other)


@kinds
def test_garbage_after_an_archive(kind: str, tmp_path: Path) -> None:
    data, error = read(open_bytes(put(tmp_path / "a", PACK[kind](TEXT) + b"garbage")))
    assert data == TEXT
    assert f"{kind} stream is followed by other bytes after {len(TEXT)} decompressed bytes" in str(error)


def test_a_zstd_file_that_begins_with_a_skippable_frame(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    assert read(open_bytes(put(tmp_path / "a", skippable + PACK["zstd"](TEXT)))) == (TEXT, None)


def test_zstd_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(InputError, match=r"pip install 'lmdiag\[zstd\]'"):
        open_bytes(put(tmp_path / "a.zst", PACK["zstd"](TEXT)))


def test_a_foreign_archive_names_the_tool(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not read zip; try: unzip -p .*a\.log \| lmdiag scan -"):
        open_bytes(put(tmp_path / "a.log", b"PK\x03\x04rest of it"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
@settings(deadline=None)
@given(text=st.text(max_size=200), block=st.integers(1, 70))
def test_byte_order_marks(encoding: str, text: str, block: int) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""  # the other two write their own
    data = (mark + text).encode(encoding)
    with tempfile.TemporaryDirectory() as directory:
        for packed in (data, gzip.compress(data)):
            assert read(open_bytes(put(Path(directory) / "a", packed)), block) == (text.encode(), None)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_broken_utf16_is_never_lost_in_silence(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        out, error = read(open_bytes(put(Path(directory) / "a", b"\xff\xfe" + data)))
    try:
        assert out.decode() == data.decode("utf-16-le")
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            out.decode()
    assert error is None


@pytest.mark.parametrize("data", [b"", b"a", b"\xef\xbb", b"\xff", b"BZh9", b"\x1f\x8b"])
def test_files_shorter_than_any_mark(data: bytes, tmp_path: Path) -> None:
    assert read(open_bytes(put(tmp_path / "a", data))) == (data, None)


class Stdin:
    """Standard input on a pipe or a buffer."""

    def __init__(self, buffer: io.BufferedIOBase) -> None:
        self.buffer = buffer


@pytest.mark.parametrize("pack", [bytes, *PACK.values()])
def test_standard_input_is_told_by_its_first_bytes_too(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.BytesIO(pack(TEXT))
    monkeypatch.setattr(sys, "stdin", Stdin(stdin))
    assert read(open_bytes("-")) == (TEXT, None)
    assert not stdin.closed
    assert size("-") is None


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        open_bytes("-")
    assert size("-") is None


@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_gives_what_it_holds_without_waiting_for_more(
    blocking: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, blocking)
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as writer:
        source = Stdin(stdin)
        source.fileno = stdin.fileno  # type: ignore[attr-defined]
        monkeypatch.setattr(sys, "stdin", source)
        late = threading.Timer(0.05, lambda: writer.write(b"ERROR first line\n"))
        late.start()
        raw, buffer = open_bytes("-"), bytearray(1 << 18)
        got = bytearray()
        while not got.endswith(b"\n"):
            got += buffer[: raw.readinto(buffer)]
        assert got == b"ERROR first line\n"
        late.join()


def test_a_fifo_and_a_file_of_proc(tmp_path: Path) -> None:
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: Path(fifo).write_bytes(PACK["gzip"](TEXT)))
    writer.start()
    assert read(open_bytes(fifo)) == (TEXT, None)
    writer.join()
    assert size(fifo) is None
    assert read(open_bytes("/proc/self/cmdline"))[0] == Path("/proc/self/cmdline").read_bytes()
    assert size("/proc/self/cmdline") is None


def test_what_cannot_be_opened_or_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone: No such file or directory; check the path"):
        open_bytes(str(tmp_path / "gone"))
    with pytest.raises(InputError, match="Is a directory"):
        open_bytes(str(tmp_path))
    with pytest.raises(InputError, match="Input/output error"):
        open_bytes("/proc/self/mem")
