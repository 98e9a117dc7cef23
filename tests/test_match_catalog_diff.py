from __future__ import annotations

from catalog_samples import catalog_of, site

from lmdiag.catalog.sites import Site
from lmdiag.match.catalog_diff import KINDS, changes

WORDS = ["The length {n} is larger than the limit", "The length {n} is larger than the limits", "The length {n} is larger than its limits"]


def diff(*releases: list[Site], project: str = "vllm") -> list[tuple[str, str]]:
    """(kind, template) from the first release to the last."""
    catalog = catalog_of({f"vllm 0.{number}.0": sites for number, sites in enumerate(releases)})
    return [(change.kind, change.row.template) for change in changes(catalog, project, 0, len(releases) - 1)]


def test_each_kind_of_change() -> None:
    old = [site("same"), site("leaving now"), site("typed"), site("moved"), site(WORDS[0])]
    new = [site("same", line=99), site("coming"), site("typed", type="TypeError"), site("moved", file="vllm/b.py"), site(WORDS[1])]
    found = diff(old, new)
    assert sorted(found) == [("gone", "leaving now"), ("moved", "moved"), ("new", "coming"), ("retyped", "typed"), ("reworded", WORDS[1])]
    assert [KINDS.index(kind) for kind, _ in found] == sorted(KINDS.index(kind) for kind, _ in found)


def test_nothing_changes_from_a_release_to_itself() -> None:
    assert diff([site("a word"), site("{e}")]) == []


def test_a_rewording_has_both_sides() -> None:
    catalog = catalog_of({"vllm 0.1.0": [site(WORDS[0], line=5)], "vllm 0.2.0": [site(WORDS[1], line=8)]})
    (change,) = changes(catalog, "vllm", 0, 1)
    assert change.was is not None
    assert (change.was.template, change.row.template) == (WORDS[0], WORDS[1])
    assert [known.lines_in(0) for known in change.old] == [(5,)]
    assert [known.lines_in(1) for known in change.new] == [(8,)]


def test_rewordings_between_the_two_releases_are_followed() -> None:
    assert diff(*([site(text)] for text in WORDS)) == [("reworded", WORDS[2])]


def test_a_rewording_that_is_gone_again_is_gone() -> None:
    assert diff([site(WORDS[0])], [site(WORDS[1])], []) == [("gone", WORDS[0])]


def test_backwards_what_is_new_is_gone() -> None:
    catalog = catalog_of({"vllm 0.1.0": [site("one word")], "vllm 0.2.0": [site("another thing")]})
    assert [(change.kind, change.row.template) for change in changes(catalog, "vllm", 1, 0)] == [("new", "one word"), ("gone", "another thing")]


def test_a_type_that_leaves_its_family_is_retyped() -> None:
    old, new = site("abc", type="VLLMValidationError", family="ValueError"), site("abc", type="VLLMValidationError", family="VLLMError")
    assert diff([old], [new]) == [("retyped", "abc")]


def test_a_second_place_is_no_move_and_neither_is_a_second_line() -> None:
    assert diff([site("abc")], [site("abc"), site("abc", name="other")]) == []
    assert diff([site("abc"), site("abc", name="other")], [site("abc")]) == []
    assert diff([site("abc")], [site("abc", name="other")]) == [("moved", "abc")]
    assert diff([site("abc")], [site("abc"), site("abc", line=44)]) == []


def test_only_the_sites_of_the_project_count() -> None:
    catalog = catalog_of({"vllm 0.1.0": [], "vllm 0.2.0": [], "lmcache 0.3.0": [], "lmcache 0.3.1": [site("abc", file="lmcache/a.py")]})
    assert changes(catalog, "vllm", 0, 1) == []
    assert [change.kind for change in changes(catalog, "lmcache", 0, 1)] == ["new"]


def test_the_first_row_of_the_catalogue_can_be_the_new_words() -> None:
    assert diff([site(WORDS[0])], [site(WORDS[2])]) == [("reworded", WORDS[2])]
