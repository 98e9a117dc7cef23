from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.versions import release_name, release_order, version_key

KEYS = {
    "0.15.2rc1.dev93": (0, 15, 2),
    "v0.6.3.post1": (0, 6, 3, 1),
    "0.4.0.post12": (0, 4, 0, 12),
    "0.10": (0, 10),
    "0.15.2+g11a": (0, 15, 2),
    "main": (),
    "": (),
}


@pytest.mark.parametrize(("version", "key"), KEYS.items())
def test_the_release_numbers_of_a_version(version: str, key: tuple[int, ...]) -> None:
    assert version_key(version) == key


NAMES = {
    "0.27.1+cu129": "0.27.1",
    "v0.27.1": "0.27.1",
    "0.27.1-g3e11e108": "0.27.1",
    "0.6.3.post1+cu118": "0.6.3.post1",
    "0.15.2rc1.dev93+g11a4c9d30": "0.15.2rc1.dev93",
    "": "",
}


@pytest.mark.parametrize(("version", "name"), NAMES.items())
def test_the_release_that_a_build_is_of(version: str, name: str) -> None:
    assert release_name(version) == name


ORDERED = ["local", "0.4.0", "0.4.0.post1", "0.4.1", "0.9.0", "0.9.0.1", "0.10.0.dev3", "0.10.0rc1", "0.10.0", "0.10.0.post1", "0.10.2"]


@given(st.permutations(ORDERED))
def test_releases_have_one_order(versions: list[str]) -> None:
    assert sorted(versions, key=release_order) == ORDERED


@given(st.text(), st.text())
def test_no_two_versions_are_alike(one: str, two: str) -> None:
    assert (release_order(one) == release_order(two)) is (one == two)
