from __future__ import annotations

import pytest
from catalog_samples import MODEL, rows_of_releases, site
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.rows import At, Place, Rows, key_of
from lmdiag.catalog.texts import Text
from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE

PLACE = Place("vllm", MODEL, "ModelConfig.check", "raise", validator=False)


def names(*releases: tuple[str, str]) -> tuple[str, ...]:
    """The names of the holes of one message, from (release, template)."""
    (row,) = rows_of_releases({release: [site(template)] for release, template in releases}).rows.values()
    return row.names


KEYS: dict[str, tuple[Text, str]] = {
    "literals around holes": (("a (", "n", ") b"), f"a ({HOLE}) b"),
    "no hole": (("all of it",), "all of it"),
    "white space is folded": (("a \t b  ", "n", ""), f"a b {HOLE}"),
    "a line break is marked": (("first\n  then", "n", "\r\nlast"), f"first{LINE_BREAK}then{HOLE}{LINE_BREAK}last"),
    "none at the ends": (("\n  first ", "n", " last \n\n"), f"first {HOLE} last"),
    "marks of the format are no text": (("a\x00b\x01c\x02d\x1b\x7f",), "abcd"),
    "half a character": (("a\ud800b",), "a?b"),
    "hole at both ends": (("", "a", " of ", "b", ""), f"{HOLE} of {HOLE}"),
}


@pytest.mark.parametrize(("text", "key"), KEYS.values(), ids=KEYS)
def test_the_key_of_a_message(text: Text, key: str) -> None:
    assert key_of(text) == key


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_a_key_has_as_many_holes_as_the_text_and_no_other_mark(literals: list[str]) -> None:
    text = [part for literal in literals for part in (literal, "hole")][:-1]
    key = key_of(tuple(text))
    assert key.count(HOLE) == len(literals) - 1
    assert not set(key) & {"\n", "\r", "\t", OPAQUE}
    assert key == key_of(tuple(key.replace(LINE_BREAK, "\n").replace(HOLE, f"{HOLE}hole{HOLE}").split(HOLE)))


def test_a_message_of_several_places_and_projects_is_one_row() -> None:
    rows = rows_of_releases(
        {
            "vllm 0.1.0": [site("no {role}  here"), site("no {kind} here", file="vllm/b.py")],
            "lmcache 0.3.0": [site("no {x}\there", file="lmcache/c.py", line=7)],
        }
    )
    (row,) = rows.rows.values()
    assert {place.file for place in row.places} == {MODEL, "vllm/b.py", "lmcache/c.py"}
    assert row.places[Place("lmcache", "lmcache/c.py", "ModelConfig.check", "raise", validator=False)] == {
        "0.3.0": At("ValueError", "ValueError", (7,))
    }


def test_alternatives_of_a_site_are_rows_of_their_own() -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("head one", "head two")]})
    assert set(rows.rows) == {"head one", "head two"}


def test_lines_of_a_function_are_gathered_in_order() -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("abc", line=30), site("abc", line=9), site("abc", line=30)]})
    assert rows.rows["abc"].places[PLACE]["0.1.0"].lines == (9, 30)


@pytest.mark.parametrize(("how", "kept"), [("raise", True), ("built", True), ("assert", False), ("again", False)])
def test_a_site_without_words_is_kept_by_its_place_where_its_frame_tells_something(how: str, *, kept: bool) -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("{error}", "", "{a}: {b}", how=how)]})
    assert set(rows.rows) == ({f"{OPAQUE}vllm:{MODEL}:ModelConfig.check"} if kept else set())
    assert rows.versions == {"vllm": {"0.1.0"}}


def test_a_message_that_begins_with_a_mark_of_the_format_is_not_opaque() -> None:
    (row,) = rows_of_releases({"vllm 0.1.0": [site((f"{OPAQUE}words of it ", "n", ""))]}).rows.values()
    assert (row.key, row.names) == (f"words of it {HOLE}", ("n",))


NAMES = {
    "the newest release": ((("vllm 0.9.0", "abc {old}"), ("vllm 0.10.0", "abc {new}")), "new"),
    "in any order": ((("vllm 0.10.0", "abc {new}"), ("vllm 0.9.0", "abc {old}")), "new"),
    "vLLM before LMCache": ((("vllm 0.1.0", "abc {mine}"), ("lmcache 0.5.0", "abc {other}")), "mine"),
    "a release before its builds": ((("vllm 0.9.0", "abc {b}"), ("vllm 0.9.0.dev5", "abc {a}")), "b"),
    "LMCache from a checkout": ((("lmcache local", "abc {name}"),), "name"),
}


@pytest.mark.parametrize(("releases", "name"), NAMES.values(), ids=NAMES)
def test_holes_are_named_after_the_newest_release(releases: tuple[tuple[str, str], ...], name: str) -> None:
    assert names(*releases) == (name,)


def test_long_names_are_cut() -> None:
    assert names(("vllm 0.1.0", f"abc {{{'n' * 90}}}")) == ("n" * 40,)


def test_what_a_release_brought_goes_with_it() -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("abc {old}")]})
    rows_of_releases({"vllm 0.2.0": [site("abc {new}", line=12), site("other"), site("abc {x}", name="f")]}, rows)
    rows.drop_release("vllm", "0.2.0")
    assert rows.versions == {"vllm": {"0.1.0"}}
    assert set(rows.rows) == {"abc " + HOLE}
    assert rows.rows["abc " + HOLE].names == ("old",)
    assert rows.rows["abc " + HOLE].places == {PLACE: {"0.1.0": At("ValueError", "ValueError", (10,))}}


def test_a_release_that_is_read_again_replaces_the_former() -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("abc {a}"), site("gone")]})
    rows_of_releases({"vllm 0.1.0": [site("abc {b}", line=20)]}, rows)
    (row,) = rows.rows.values()
    assert row.names == ("b",)
    assert row.places[PLACE]["0.1.0"].lines == (20,)


def test_dropping_what_is_not_there_changes_nothing() -> None:
    rows = rows_of_releases({"vllm 0.1.0": [site("abc")]})
    rows.drop_release("vllm", "0.2.0")
    rows.drop_release("lmcache", "0.1.0")
    assert set(rows.rows) == {"abc"}
    assert Rows().rows == {}
