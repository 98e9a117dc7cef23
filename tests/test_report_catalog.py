from __future__ import annotations

import json
from typing import Any

import pytest
from catalog_samples import catalog_of, row_of, site
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.sites import Site
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_diff import Change, changes
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.report.catalog import (
    change_lines,
    change_object,
    history,
    match_lines,
    match_object,
    row_lines,
    row_object,
    set_lines,
    site_object,
)

TEXT = "The length {n} is larger than the limit of it"
OTHER = "The length {n} is larger than the limits of it"


def catalog(*releases: list[Site]) -> Catalog:
    """The releases 0.1.0, 0.2.0, … with these sites."""
    return catalog_of({f"vllm 0.{number}.0": sites for number, sites in enumerate(releases, 1)})


def shown(found: Catalog, template: str = TEXT) -> str:
    return "\n".join(row_lines(found, row_of(found, template)))


HERE: list[Site] = [site(TEXT)]
SPANS = {
    "only in one": ([[], HERE, []], "only in 0.2.0"),
    "only in the newest": ([[], [], HERE], "new in 0.3.0, the newest known"),
    "in the newest too": ([[], HERE, HERE], "in 0.2.0 to 0.3.0, the newest known"),
    "gone": ([HERE, HERE, []], "in 0.1.0 to 0.2.0, gone since"),
    "with a gap": ([HERE, [], HERE, []], "in 0.1.0 to 0.3.0, with gaps, gone since"),
}


@pytest.mark.parametrize(("releases", "words"), SPANS.values(), ids=SPANS)
def test_the_releases_of_a_place(releases: list[list[Site]], words: str) -> None:
    assert f"      {words}" in shown(catalog(*releases)).splitlines()


def test_the_lines_over_the_releases() -> None:
    found = catalog([site(TEXT, line=5)], [site(TEXT, line=5)], [], [site(TEXT, line=7), site(TEXT, line=9)])
    assert history(row_of(found, TEXT).sites[0]) == {"0.1.0": [5], "0.3.0": [], "0.4.0": [7, 9]}
    assert "    line 5 from 0.1.0, none from 0.3.0, 7 and 9 from 0.4.0" in shown(found).splitlines()


def test_the_types_over_the_releases() -> None:
    new = site(TEXT, type="VLLMValidationError", family="VLLMError")
    found = catalog([site(TEXT)], [new])
    assert "    type ValueError from 0.1.0, VLLMValidationError (a kind of VLLMError) from 0.2.0" in shown(found).splitlines()
    data: Any = row_object(found, row_of(found, TEXT))
    assert data["sites"][0]["types"] == {"0.1.0": "ValueError", "0.2.0": "VLLMValidationError"}


HOWS = {"raise": "raised in", "assert": "asserted in", "built": "built here, raised elsewhere in", "again": "raised again in"}


@pytest.mark.parametrize(("how", "words"), HOWS.items())
def test_how_it_is_raised(how: str, words: str) -> None:
    assert f"{words} vllm 0.1.0" in shown(catalog([site(TEXT, how=how)]))


def test_a_validator_is_told() -> None:
    assert "raised in vllm 0.1.0, in a validator: pydantic hides this frame" in shown(catalog([site(TEXT, validator=True)]))


def test_a_type_that_is_not_known_is_said_in_words_and_null_in_data() -> None:
    found = catalog([site(TEXT, type="")])
    assert "(type known at run time)" in shown(found)
    assert site_object(row_of(found, TEXT).sites[0])["type"] is None
    (change,) = all_changes(catalog([], [site(TEXT, type="")]))
    assert f"(type known at run time): {TEXT}" in next(change_lines(change, 0, 1))


def test_a_message_without_words_says_so() -> None:
    found = catalog([site("{e}")])
    (row,) = [found.row(0)]
    assert "(no words of its own" in next(row_lines(found, row))
    assert row_object(found, row)["message"] == ""


def test_many_places_are_cut_off_and_counted() -> None:
    text = shown(catalog([site(TEXT, file=f"vllm/{number:02}.py") for number in range(25)]))
    assert text.count(" in check") == 20
    assert "  5 more sites: lmdiag catalog show " in text


def test_a_rewording_is_told_from_both_sides() -> None:
    found = catalog([site(TEXT)], [site(OTHER)])
    old, new = row_of(found, TEXT), row_of(found, OTHER)
    assert f"  reworded in 0.2.0: {new.id}  {OTHER} (vllm)" in shown(found).splitlines()
    assert f"  reworded from {old.id}" in shown(found, OTHER).splitlines()
    data: Any = row_object(found, new)
    assert (data["aliases"], data["reworded"]) == ([old.id], None)


def test_a_match_in_a_release_that_lacks_it() -> None:
    found = catalog([site(TEXT)], [site(OTHER)])
    (match,) = RaiseSites(found).find_all("ValueError", TEXT.format(n=5), {"vllm": "0.2.0"})
    text = "\n".join(match_lines(match))
    assert "not raised in vllm 0.2.0; this is the last release that does:\n  raised in vllm 0.1.0" in text
    data: Any = match_object(match)
    assert (data["in_version"], data["site"]["version"], data["reworded"]["message"]) == (False, "0.1.0", OTHER)


def all_changes(found: Catalog) -> list[Change]:
    return changes(found, "vllm", 0, len(found.versions["vllm"]) - 1)


def told(*releases: list[Site]) -> list[str]:
    found = catalog(*releases)
    (change,) = all_changes(found)
    json.dumps(change_object(change, "vllm", 0, 1))
    return list(change_lines(change, 0, len(found.versions["vllm"]) - 1))[1:]


A, B = site(TEXT, file="vllm/a.py"), site(TEXT, file="vllm/b.py")


def test_a_move_names_both_places() -> None:
    assert told([A], [B]) == ["  was at vllm/a.py:10 in check", "  is at vllm/b.py:10 in check"]


def test_another_type_and_another_family_are_named() -> None:
    assert told([A], [A, B._replace(type="TypeError", family="TypeError")])[0] == "  was ValueError; is ValueError or TypeError"
    old, new = site(TEXT, type="E", family="ValueError"), site(TEXT, type="E", family="VLLMError")
    assert told([old], [new])[0] == "  was E (a kind of ValueError); is E (a kind of VLLMError)"


def test_what_is_new_and_gone_has_its_place() -> None:
    assert told([], [A, B]) == ["  vllm/a.py:10 in check and 1 more"]
    assert told([A], []) == ["  vllm/a.py:10 in check"]


def test_a_pipe_gets_a_message_on_one_line() -> None:
    assert set_lines(["  " + "word " * 60, ""], None) == f"  {'word ' * 59}word\n\n"


def test_a_terminal_gets_lines_that_hang_below() -> None:
    assert set_lines(["  aaaa bbbb cccc", "", "x"], 12) == "  aaaa bbbb\n    cccc\n\nx\n"


def test_a_path_stays_whole() -> None:
    path = "vllm/distributed/kv-transfer/adapter.py:508"
    assert set_lines([f"    {path} in check"], 20) == f"    {path}\n      in check\n"


@given(st.text(), st.one_of(st.none(), st.integers(20, 200)))
def test_what_is_set_commands_no_terminal_and_loses_no_word(text: str, width: int | None) -> None:
    got = set_lines([f"x {text} y"], width)
    assert not [char for char in got if (ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0]
    assert not set("\u202e\u2066\u200f") & set(got)
    assert got.split()[0] == "x"
    if text.isprintable():  # an escape sequence takes what follows it along
        assert got.split()[-1] == "y"
