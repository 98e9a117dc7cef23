from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmdiag.catalog.merge import merge
from lmdiag.catalog.releases import read_release, write_release
from lmdiag.catalog.sources import Release
from lmdiag.errors import CatalogError, InputError
from lmdiag.match.catalog import read_catalog

CHECK = "def check(n):\n    raise ValueError(f'length {n} is {WORD}')\n"


def quiet(_: str) -> None:
    """Nobody waits."""


def release_file(work: Path, name: str, word: str = "bad", **others: str) -> Path:
    """The file of a release that raises one message."""
    project, _, version = name.partition(" ")
    work.mkdir(exist_ok=True)
    sources = {f"{project}/a.py": CHECK.replace("{WORD}", word), **{f"{project}/{key}.py": text for key, text in others.items()}}
    return write_release(Release(project, version, f"{project}-{version}.tar.gz", "ab12", sources), work)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    names = ("vllm 0.9.0", "vllm 0.10.0", "lmcache 0.3.0")
    return [release_file(tmp_path / "work", name, word) for name, word in zip(names, ("bad", "worse", "bad"), strict=True)]


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_one_after_the_other_gives_the_same_files_as_all_at_once(tmp_path: Path, files: list[Path]) -> None:
    merge(files, tmp_path / "once", quiet)
    for path in reversed(files):
        merge([path], tmp_path / "steps", quiet)
    merge(files[:2], tmp_path / "steps", quiet)
    assert contents(tmp_path / "once") == contents(tmp_path / "steps")
    assert set(contents(tmp_path / "once")) == {"catalog.bin", "releases.json", "settings.json"}


def test_the_list_of_releases_tells_their_origin_and_figures(tmp_path: Path, files: list[Path]) -> None:
    merge(files, tmp_path / "new" / "catalog", quiet)
    text = (tmp_path / "new" / "catalog" / "releases.json").read_text()
    listed = json.loads(text)
    assert list(listed) == ["lmcache 0.3.0", "vllm 0.9.0", "vllm 0.10.0"]
    assert listed["vllm 0.9.0"]["origin"] == "vllm-0.9.0.tar.gz"
    assert listed["vllm 0.9.0"]["sha256"] == "ab12"
    assert (listed["vllm 0.9.0"]["value_errors"], listed["vllm 0.9.0"]["value_errors_in_source"]) == (1, 1)
    assert len(text.splitlines()) == 5
    catalog = read_catalog(str(tmp_path / "new" / "catalog" / "catalog.bin"))
    assert catalog.versions == {"vllm": ["0.9.0", "0.10.0"], "lmcache": ["0.3.0"]}
    assert sorted(catalog.texts) == ["length \0 is bad", "length \0 is worse"]


def test_a_release_that_was_read_anew_replaces_what_was_known_of_it(tmp_path: Path, files: list[Path]) -> None:
    merge(files[:1], tmp_path / "catalog", quiet)
    merge([release_file(tmp_path / "work", "vllm 0.9.0", "new")], tmp_path / "catalog", quiet)
    assert list(read_catalog(str(tmp_path / "catalog" / "catalog.bin")).texts) == ["length \0 is new"]


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def test_a_damaged_release_file_changes_nothing(tmp_path: Path, files: list[Path]) -> None:
    merge(files[:1], tmp_path / "catalog", quiet)
    before = contents(tmp_path / "catalog")
    damage(files[2])
    with pytest.raises(InputError, match=r"vllm-0.10.0|lmcache-0.3.0"):
        merge(files[1:], tmp_path / "catalog", quiet)
    assert contents(tmp_path / "catalog") == before


def test_a_damaged_catalogue_is_not_overwritten(tmp_path: Path, files: list[Path]) -> None:
    merge(files[:1], tmp_path / "catalog", quiet)
    damage(tmp_path / "catalog" / "catalog.bin")
    before = contents(tmp_path / "catalog")
    with pytest.raises(CatalogError, match="damaged"):
        merge(files[1:], tmp_path / "catalog", quiet)
    assert contents(tmp_path / "catalog") == before


@pytest.mark.parametrize("text", ["", "{", "5", "[1]", "\xff"])
def test_a_damaged_list_of_releases_is_not_overwritten(tmp_path: Path, files: list[Path], text: str) -> None:
    merge(files[:1], tmp_path / "catalog", quiet)
    (tmp_path / "catalog" / "releases.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"releases\.json"):
        merge(files[1:], tmp_path / "catalog", quiet)


def test_a_missing_list_is_begun_anew(tmp_path: Path, files: list[Path]) -> None:
    merge(files[:1], tmp_path / "catalog", quiet)
    (tmp_path / "catalog" / "releases.json").unlink()
    merge(files[1:2], tmp_path / "catalog", quiet)
    assert list(json.loads((tmp_path / "catalog" / "releases.json").read_text())) == ["vllm 0.10.0"]


def test_what_is_less_than_whole_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    merge([release_file(tmp_path, "vllm 0.9.0", broken="def f(:\n")], tmp_path / "catalog", said.append)
    assert len(said) == 1
    assert "vllm 0.9.0" in said[0]
    assert "vllm/broken.py" in said[0]


def test_a_lost_value_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = release_file(tmp_path, "vllm 0.9.0")
    header, sites = read_release(path)
    fewer = header._replace(figures=header.figures._replace(value_errors=0))
    monkeypatch.setattr("lmdiag.catalog.merge.read_release", lambda _: (fewer, sites))
    said: list[str] = []
    merge([path], tmp_path / "catalog", said.append)
    assert ["0 of 1" in text for text in said] == [True]
