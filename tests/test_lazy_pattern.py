from __future__ import annotations

import copy
import pickle
import re

import pytest

from lmdiag.lazy_pattern import lazy


def test_it_does_what_the_pattern_does() -> None:
    pattern = lazy(r"(?P<word>[a-z]+) (\d)", re.IGNORECASE)
    plain = re.compile(r"(?P<word>[a-z]+) (\d)", re.IGNORECASE)
    text = "x AB 1, cd 2"
    assert pattern.findall(text) == plain.findall(text)
    assert pattern.sub("-", text) == plain.sub("-", text)
    assert pattern.split(text) == plain.split(text)
    assert pattern.match("AB 1")
    assert not pattern.match(text)
    assert pattern.fullmatch("AB 1")
    assert not pattern.fullmatch(text)
    assert [hit.span() for hit in pattern.finditer(text)] == [hit.span() for hit in plain.finditer(text)]
    assert (pattern.pattern, pattern.flags, pattern.groupindex) == (plain.pattern, plain.flags, plain.groupindex)


def test_bytes_are_searched_too() -> None:
    hit = lazy(rb"\d+").search(b"a 12")
    assert hit is not None
    assert hit.group() == b"12"


def test_nothing_is_compiled_before_it_is_used() -> None:
    pattern = lazy("(")
    assert pattern.pattern == "("
    with pytest.raises(re.error):
        pattern.search("x")


def test_a_copy_works() -> None:
    for copied in (copy.copy(lazy("a+")), pickle.loads(pickle.dumps(lazy("a+")))):  # noqa: S301 - our own
        assert copied.sub("b", "caat") == "cbt"
