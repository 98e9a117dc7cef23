from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest

from lmdiag.catalog.extract import extract
from lmdiag.catalog.releases import FORMAT, read_header, read_release, write_release
from lmdiag.catalog.sources import Release
from lmdiag.errors import InputError

SOURCES = {
    "vllm/a.py": "def f(x):\n    assert x\n    raise ValueError(f'bad {x} é') if x else TypeError('half \\ud800 a pair')",
    "vllm/b.py": "def f(:",
    "vllm/engine/arg_utils.py": "p.add_argument('--port')",
}
RELEASE = Release("vllm", "0.26.0", "vllm-0.26.0.tar.gz", "ab" * 32, SOURCES)


def rewritten(path: Path, *rows: object) -> Path:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def rows_of(path: Path) -> list[list[object] | dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def test_round_trip(tmp_path: Path) -> None:
    path = write_release(RELEASE, tmp_path)
    sites, figures = extract(SOURCES)
    header, read = read_release(path)
    assert path.name == "vllm-0.26.0.jsonl.gz"
    assert read == sites
    assert header == (*RELEASE[:4], figures, ("flag --port",))
    assert read_header(path) == header
    assert header.figures.unparsable == ("vllm/b.py",)


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = write_release(RELEASE, tmp_path).read_bytes()
    turned = RELEASE._replace(sources=dict(reversed(SOURCES.items())))
    assert write_release(turned, tmp_path).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["vllm-0.26.0.jsonl.gz"]


def test_a_release_without_sites(tmp_path: Path) -> None:
    path = write_release(RELEASE._replace(sources={"vllm/__init__.py": ""}), tmp_path)
    assert read_release(path)[1] == []


def test_every_truncated_file_is_refused(tmp_path: Path) -> None:
    path = write_release(RELEASE, tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="damaged"):
            read_release(path)


def test_every_damaged_file_is_refused_or_read(tmp_path: Path) -> None:
    path = write_release(RELEASE, tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            read_release(path)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = write_release(RELEASE, tmp_path)
    header, *sites = rows_of(path)
    assert isinstance(header, dict)
    rewritten(path, {**header, "format": FORMAT + 1}, *sites)
    for read in (read_header, read_release):
        with pytest.raises(InputError, match="of another format"):
            read(path)


@pytest.mark.parametrize("row", [3, "text", None, [], {}, [[]], {"format": FORMAT}, {"format": FORMAT, "figures": {}}])
def test_a_header_that_is_none_is_refused(tmp_path: Path, row: object) -> None:
    with pytest.raises(InputError):
        read_header(rewritten(tmp_path / "vllm-1.jsonl.gz", row))


@pytest.mark.parametrize("row", [3, "text", None, [], {}, [1], [1, []], ["a", "b", 1, "t", "f", "how", False, 3]])
def test_a_site_that_is_none_is_refused(tmp_path: Path, row: object) -> None:
    path = write_release(RELEASE, tmp_path)
    header, *_ = rows_of(path)
    with pytest.raises(InputError, match="damaged"):
        read_release(rewritten(path, header, row))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_header(tmp_path / "vllm-1.jsonl.gz")
