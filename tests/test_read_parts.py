"""Reading the contents that a log is made of, and finding a place in them again."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.read.parts import HEAD, Mark, Part, open_part

TEXT = b"".join(b"INFO line %d of the log\n" % number for number in range(40_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def opened() -> Iterator[Callable[[Path, bytes], Part]]:
    """Opens parts, and closes them."""
    parts: list[Part] = []

    def open_one(path: Path, data: bytes) -> Part:
        path.write_bytes(data)
        parts.append(open_part(str(path)))
        return parts[-1]

    yield open_one
    for part in parts:
        part.close()


def rest(part: Part) -> bytes:
    out = b""
    while data := part.read():
        out += data
    return out


def mark_at(tmp_path: Path, offset: int, text: bytes = TEXT) -> Mark:
    """A mark of the text, as a restart keeps it."""
    path = tmp_path / "original.log"
    path.write_bytes(text[:offset])
    part = open_part(str(path))
    rest(part)
    mark = Mark.from_json(json.loads(json.dumps(part.mark.as_json())))
    part.close()
    return mark


@pytest.mark.parametrize("offset", [1, 63, 64, HEAD - 1, HEAD, HEAD + 1, 300_000, len(TEXT)])
@pytest.mark.parametrize("kind", PACK)
def test_a_mark_is_found_again_in_a_copy(
    tmp_path: Path, opened: Callable[[Path, bytes], Part], kind: str, offset: int
) -> None:
    mark = mark_at(tmp_path, offset)
    part = opened(tmp_path / "copy.log", PACK[kind](TEXT))
    assert part.seek(mark)
    assert part.mark._replace(ident=mark.ident) == mark
    assert rest(part) == TEXT[offset:]


@pytest.mark.parametrize("changed", [0, HEAD - 1, 9_950, 9_999])
@pytest.mark.parametrize("kind", PACK)
def test_another_content_does_not_fit_and_is_read_whole(
    tmp_path: Path, opened: Callable[[Path, bytes], Part], kind: str, changed: int
) -> None:
    mark = mark_at(tmp_path, 10_000)
    other = TEXT[:changed] + b"#" + TEXT[changed + 1 :]
    part = opened(tmp_path / "other.log", PACK[kind](other))
    assert not part.seek(mark)
    assert rest(part) == other


@pytest.mark.parametrize("kind", PACK)
def test_a_shorter_content_does_not_fit(tmp_path: Path, opened: Callable[[Path, bytes], Part], kind: str) -> None:
    mark = mark_at(tmp_path, 10_000)
    assert not opened(tmp_path / "short.log", PACK[kind](TEXT[:9_999])).seek(mark)


@pytest.mark.parametrize("kind", PACK)
def test_the_lead_does_not_count_nuls(tmp_path: Path, opened: Callable[[Path, bytes], Part], kind: str) -> None:
    part = opened(tmp_path / "hole.log", PACK[kind](b"\0" * 700_000 + TEXT))
    assert part.lead() == TEXT[:HEAD]


@given(st.lists(st.binary(min_size=1, max_size=90).map(lambda data: data.replace(b"\0", b"0")), min_size=1, max_size=8))
def test_a_part_follows_its_file_and_sees_when_it_is_written_anew(chunks: list[bytes]) -> None:
    path = Path(tempfile.mkdtemp()) / "x.log"
    path.write_bytes(b"")
    part = open_part(str(path))
    for chunk in chunks:
        with path.open("ab") as file:
            file.write(chunk)
        assert rest(part) == chunk
        assert part.is_intact()
    os.truncate(path, 0)
    assert part.read() is None
    assert not part.is_intact()
    part.close()
    path.unlink()
    path.parent.rmdir()
