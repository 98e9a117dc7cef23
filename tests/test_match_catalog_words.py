from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.catalog_format import HOLE, LINE_BREAK
from lmdiag.match.catalog_words import WORD, words_of

WORDS = {
    "whole words of three characters, in lower case": ("The max_len of it Is 512x", {"the", "max_len", "512x"}, set()),
    "a word that touches a hole": (f"abc{HOLE} def {HOLE}ghi jkl", {"def", "jkl"}, set()),
    "around marks": (f"({HOLE}) --dtype='half', no/way", {"dtype", "half", "way"}, set()),
    "the rest by itself": (f"first line {HOLE}{LINE_BREAK}second{LINE_BREAK}third first", {"first", "line"}, {"second", "third", "first"}),
    "a hole": (HOLE, set(), set()),
    "nothing": ("", set(), set()),
    "a part of a word that touches a hole": (f"abcdef{HOLE}", set(), set()),
    "words of other scripts": ("é größe 模型", set(), set()),
}  # fmt: skip


@pytest.mark.parametrize(("key", "first", "rest"), WORDS.values(), ids=WORDS)
def test_the_words_of_a_row(key: str, first: set[str], rest: set[str]) -> None:
    assert tuple(map(set, words_of(key))) == (first, rest)


LITERALS = st.text("abAB1_ .:-é\u0130", max_size=12)


@given(st.lists(LITERALS, min_size=1, max_size=4), st.text("abAB1_ .é"))
def test_whatever_fills_the_holes_the_words_are_in_the_message(literals: list[str], value: str) -> None:
    first, rest = words_of(HOLE.join(literals))
    assert rest == frozenset()
    assert first <= {word.lower() for word in WORD.findall(value.join(literals))}
