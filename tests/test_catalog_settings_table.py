from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.extract import Figures
from lmdiag.catalog.releases import Header
from lmdiag.catalog.settings_table import add_settings
from lmdiag.match.settings import Settings, knows, read_settings

RELEASES = ("0.9.2", "0.10.0", "0.10.1.1", "0.11.0")


def header(version: str, *names: str, project: str = "vllm") -> Header:
    return Header(project, version, "", "", Figures(0, (), 0, 0, 0, 0), names)


def written(data: bytes, directory: Path) -> Settings:
    (directory / "settings.json").write_bytes(data)
    return read_settings(str(directory / "settings.json"))


@given(st.dictionaries(st.sampled_from(RELEASES), st.sets(st.sampled_from(["flag --a", "env B", "key c"]), min_size=1)))
def test_the_table_knows_what_each_release_knows(tmp_path_factory, known: dict[str, set[str]]) -> None:  # type: ignore[no-untyped-def]
    headers = [header(version, *sorted(names)) for version, names in known.items()]
    table = written(add_settings({}, headers), tmp_path_factory.mktemp("t"))
    for version, names in known.items():
        assert {name for name in ("flag --a", "env B", "key c") if knows(table["vllm"], name, version)} == names


def test_releases_may_come_in_any_order_and_in_several_builds(tmp_path: Path) -> None:
    headers = [header("0.9.2", "flag --a"), header("0.11.0", "flag --a"), header("0.10.0", "env B"), header("0.5.0", "key c", project="lmcache")]
    at_once = add_settings({}, headers)
    table: Settings = {}
    for one in reversed(headers):
        table = written(add_settings(table, [one]), tmp_path)
    assert add_settings(table, []) == at_once
    assert table["vllm"].runs["flag --a"] == (("0.9.2", "0.9.2"), ("0.11.0", "0.11.0"))


def test_a_release_that_is_read_again_is_replaced(tmp_path: Path) -> None:
    table = written(add_settings({}, [header("0.9.2", "flag --a")]), tmp_path)
    again = written(add_settings(table, [header("0.9.2", "flag --b")]), tmp_path)
    assert dict(again["vllm"].runs) == {"flag --b": (("0.9.2", "0.9.2"),)}
