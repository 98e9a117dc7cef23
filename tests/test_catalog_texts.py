from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.texts import (
    EMPTY,
    MAX_ALTERNATIVES,
    Text,
    dotted,
    edit_literals,
    either,
    has_literal,
    hole,
    is_hole,
    is_opaque,
    join_texts,
    name_of,
    product,
    unique,
)

CHOICE: list[Text] = [("a",), ("b",)]


def expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


@st.composite
def texts(draw: st.DrawFn) -> Text:
    parts = [draw(st.text("ab ", max_size=3))]
    for number in range(draw(st.integers(0, 3))):
        parts += [f"h{number}", draw(st.text("ab ", max_size=3))]
    return tuple(parts)


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        (("a ",), ("b",), ("a b",)),
        (("a ", "x", ""), (" b",), ("a ", "x", " b")),
        (("a",), ("b", "x", "c"), ("ab", "x", "c")),
        (("a", "x", ""), ("", "y", "c"), ("a", "x", "c")),
        (("a", "x", ""), (" ", "y", ""), ("a", "x", " ", "y", "")),
        (("", "x", ""), EMPTY, ("", "x", "")),
        (EMPTY, EMPTY, EMPTY),
    ],
)
def test_join_texts(left: Text, right: Text, joined: Text) -> None:
    assert join_texts(left, right) == joined


@given(texts(), texts())
def test_a_joined_text_keeps_all_literals_and_no_two_holes_meet_at_the_joint(left: Text, right: Text) -> None:
    joined = join_texts(left, right)
    assert len(joined) % 2 == 1
    assert "".join(joined[::2]) == "".join(left[::2]) + "".join(right[::2])
    holes = len(left) // 2 + len(right) // 2
    assert len(joined) // 2 in (holes, holes - 1)


def test_product_puts_every_alternative_behind_every_other() -> None:
    assert product([("a",), ("b",)], [("-",)], [("c",), ("d",)]) == [("a-c",), ("a-d",), ("b-c",), ("b-d",)]
    assert product() == [EMPTY]


def test_alternatives_are_bounded_and_without_repeats() -> None:
    assert len(product(*[CHOICE] * 10)) == MAX_ALTERNATIVES
    assert unique([("a",), ("b",), ("a",)]) == [("a",), ("b",)]
    assert len(unique((str(number),) for number in range(99))) == MAX_ALTERNATIVES


def test_the_hole_of_a_choice_stands_for_its_single_words() -> None:
    assert either([*hole("dtype"), ("auto",), ("a whole sentence",)]) == [*hole("dtype"), ("a whole sentence",)]
    assert either([("auto",), ("half",)]) == [("auto",), ("half",)]


def test_predicates() -> None:
    assert is_hole(("", "x", ""))
    assert not is_hole(("", "x", " "))
    assert not is_hole(("",))
    assert has_literal([("", "x", ""), ("", "x", "!")])
    assert not has_literal([("", "x", ""), EMPTY])
    assert is_opaque(("", "what", ": ", "error", ""))
    assert is_opaque(("TP ", "tp", ""))
    assert not is_opaque(("bad ", "x", ""))


def test_edit_literals() -> None:
    assert edit_literals(("a", "x", "b"), ["c", "d"]) == ("c", "x", "d")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x", "x"),
        ("self.config.max_len", "max_len"),
        ("len(prompt)", "prompt"),
        ("now()", "now"),
        ("str(type(self.x))", "x"),
        ("time.time()", "time"),
        ("sizes[0]", "sizes"),
        ("config['dtype']", "dtype"),
        ("config['not a name']", "config"),
        ("a + b", ""),
        ("None", ""),
    ],
)
def test_name_of(source: str, name: str) -> None:
    assert name_of(expression(source)) == name


@pytest.mark.parametrize(("source", "name"), [("a", "a"), ("a.b.c", "a.b.c"), ("f().b", ""), ("a[0].b", ""), ("1", "")])
def test_dotted(source: str, name: str) -> None:
    assert dotted(expression(source)) == name
    assert dotted(None) == name_of(None) == ""
