from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_samples import MODEL, Releases, at, rows_of_releases, site
from report_samples import CARD

from lmdiag.catalog.encode import encode
from lmdiag.match.cards import load_cards
from lmdiag.match.library import Library, open_library
from lmdiag.match.pack import load_pack, shipped_directory

TEXT = "The length {n} is larger than the limit of it"
MESSAGE = "The length 5 is larger than the limit of it"
HISTORY: Releases = {
    "vllm 0.9.0": [site(TEXT, line=5), site("old words of this", name="g")],
    "vllm 0.10.0": [site(TEXT, line=7)],
}


def written(path: Path, history: Releases = HISTORY) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(rows_of_releases(history)))
    return str(path)


@pytest.fixture
def pack_directory(tmp_path: Path) -> str:
    (tmp_path / "cards").mkdir()
    return str(tmp_path / "cards")


def library(pack_directory: str, *catalogs: str) -> Library:
    return Library(load_pack(shipped=pack_directory), catalogs)


def test_a_message_is_looked_up(tmp_path: Path, pack_directory: str) -> None:
    found = library(pack_directory, written(tmp_path / "a.bin")).raise_site("ValueError", MESSAGE, at(5), {"vllm": "0.9.0"})
    assert found is not None
    assert (found.row.template, found.site.lines_in(0)) == (TEXT, (5,))


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def other(path: Path) -> None:
    path.write_bytes(b"\x7fELF" * 100)


def damaged_inside(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-5] + b"wrong")


@pytest.mark.parametrize("damage", [missing, empty, truncated, other, damaged_inside])
def test_a_bad_catalogue_is_a_problem_and_the_rest_works(tmp_path: Path, pack_directory: str, damage: Callable[[Path], None]) -> None:
    bad, good = tmp_path / "bad.bin", written(tmp_path / "good.bin")
    written(bad)
    damage(bad)
    both = library(pack_directory, str(bad), good)
    assert not list(both.problems)
    for _ in range(2):
        found = both.raise_site("ValueError", MESSAGE, None, {})
        assert found is not None
        assert found.catalog.path == good
    (problem,) = both.problems
    assert str(problem).startswith(f"{bad}: ")
    alone = library(pack_directory, str(bad))
    assert alone.raise_site("ValueError", MESSAGE, None, {}) is None
    assert alone.match("ValueError", MESSAGE, ()) is None
    assert len(alone.problems) == 1


@pytest.mark.parametrize("damage", [missing, empty, truncated, other, damaged_inside])
def test_a_card_has_its_own_sites_where_the_catalogue_is_bad(tmp_path: Path, pack_directory: str, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "bad.bin"
    written(path, {"vllm 0.9.0": [site(CARD.rules[0].message)]})
    assert library(pack_directory, str(path)).raise_sites_of(CARD)[0].file == MODEL
    damage(path)
    broken = library(pack_directory, str(path))
    assert broken.raise_sites_of(CARD) == CARD.raised_at
    assert len(broken.problems) == 1


def test_without_a_catalogue_nothing_is_wrong(pack_directory: str) -> None:
    none = library(pack_directory)
    assert none.raise_site("ValueError", MESSAGE, None, {}) is None
    assert none.raise_sites_of(CARD) == CARD.raised_at
    assert none.problems == ()


def test_what_copies_words_is_not_what_said_them(tmp_path: Path, pack_directory: str) -> None:
    one = library(pack_directory, written(tmp_path / "a.bin"))
    assert one.raise_site("ValueError", MESSAGE, at(5, "check", "transformers/a.py"), {}) is None
    found = one.raise_site("ValueError", MESSAGE, at(5, "check", "vllm/other.py"), {})
    assert found is not None


def test_a_package_that_only_a_sites_own_catalogue_knows(tmp_path: Path, pack_directory: str) -> None:
    shipped = written(tmp_path / "a.bin")
    own = written(tmp_path / "b.bin", {"plugin 1.0.0": [site(TEXT, file="plugin/a.py")]})
    found = library(pack_directory, shipped, own).raise_site("ValueError", MESSAGE, at(5, "check", "plugin/a.py"), {})
    assert found is not None
    assert (found.catalog.path, found.site.project) == (own, "plugin")


def test_of_equal_answers_the_last_catalogue_gives_it_of_others_the_better(tmp_path: Path, pack_directory: str) -> None:
    shipped, same = written(tmp_path / "a.bin"), written(tmp_path / "b.bin")
    worse = written(tmp_path / "c.bin", {"vllm 0.9.0": [site("The length {n} is {what}")]})
    for catalogs, wanted in (((shipped, same), same), ((same, shipped), shipped), ((shipped, worse), shipped), ((worse, shipped), shipped)):
        found = library(pack_directory, *catalogs).raise_site("ValueError", MESSAGE, None, {})
        assert found is not None
        assert found.catalog.path == wanted


def test_a_sites_own_build_wins_however_few_releases_its_catalogue_has(tmp_path: Path, pack_directory: str) -> None:
    own = written(tmp_path / "b.bin", {"vllm 0.9.0": [site(TEXT, line=99)]})
    both = library(pack_directory, written(tmp_path / "a.bin"), own)
    for versions in ({}, {"vllm": "0.9.0"}):
        found = both.raise_site("ValueError", MESSAGE, None, versions)
        assert found is not None
        assert found.catalog.path == own
    found = both.raise_site("ValueError", MESSAGE, at(5), {"vllm": "0.9.0"})
    assert found is not None
    assert found.catalog.path != own


def test_a_rules_directory_may_hold_a_catalogue(tmp_path: Path) -> None:
    own = written(tmp_path / "rules" / "catalog" / "catalog.bin", {"vllm 99.0.0": [site("entirely new words of {mine}")]})
    both = open_library([str(tmp_path / "rules")])
    assert [sites.catalog.path for sites in both.sites] == [str(Path(shipped_directory()) / "catalog" / "catalog.bin"), own]
    found = both.raise_site("ValueError", "entirely new words of 5", None, {"vllm": "99.0.0"})
    assert found is not None
    assert found.catalog.path == own
    assert both.problems == ()


def test_a_rules_directory_need_not_hold_one(tmp_path: Path) -> None:
    assert len(open_library([str(tmp_path)]).sites) == 1
    assert load_cards(str(tmp_path)) == ((), ())
