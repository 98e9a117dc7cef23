from __future__ import annotations

import pytest
from extracting import messages, raised, sites_of

from lmdiag.catalog.texts import MAX_ALTERNATIVES


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        pytest.param("m = 'bad value'", ["bad value"], id="local"),
        pytest.param("m: str = f'bad {value}'", ["bad {value}"], id="annotated"),
        pytest.param("n = m = 'bad value'", ["bad value"], id="chained"),
        pytest.param("m = 'old'\nn = m = self.why", ["{m}"], id="chained-unknown"),
        pytest.param("m, n = 'bad value', 3", ["bad value"], id="tuple"),
        pytest.param("m = 'old'\nm, n = value", ["{m}"], id="unpacked"),
        pytest.param("m = 'old'\n(m, *n) = value", ["{m}"], id="starred"),
        pytest.param("m = 'bad'\nm += ' value'", ["bad value"], id="augmented"),
        pytest.param("m = self.why()\nm += ' and a value'", ["{m} and a value"], id="augmented-unknown"),
        pytest.param("m = value\nm += 1", ["{m}"], id="augmented-number"),
        pytest.param("m = 'bad %s'\nm %= value", ["bad {value}"], id="augmented-percent"),
        pytest.param("m = 'one two'\nif value:\n    m = 'three four'", ["one two", "three four"], id="if"),
        pytest.param("if value:\n    m = 'three four'\nelse:\n    m = 'five six'", ["three four", "five six"], id="if-else"),
        pytest.param("if value:\n    m = 'a'\nelif name:\n    m = 'b'\nelse:\n    m = 'c'", ["a", "b", "c"], id="elif"),
        pytest.param("m = 'one two'\nif value:\n    m += ' more'", ["one two", "one two more"], id="if-augmented"),
        pytest.param("m = 'one two'\nif value:\n    m = 'three four'\n    return", ["one two"], id="left-by-return"),
        pytest.param("if value:\n    m = 'three four'\nelse:\n    m = self.why()", ["{m}", "three four"], id="if-unknown"),
        pytest.param("m = None\nif value:\n    m = 'three four'", ["{m}", "three four"], id="if-none"),
        pytest.param("m = 'one two'\nfor x in value:\n    m += f' {x}'", ["one two", "one two {x}"], id="for"),
        pytest.param("m = 'one two'\nfor m in value:\n    pass", ["one two", "{m}"], id="for-target"),
        pytest.param("m = 'one two'\nfor x in value:\n    m = 'three four'\n    break", ["one two", "three four"], id="break"),
        pytest.param("m = 'one two'\nfor x in value:\n    if x:\n        m = 'three four'\n        continue\n    m = 'five six'", ["one two", "five six", "three four"], id="continue"),
        pytest.param("m = 'one two'\nfor x in value:\n    pass\nelse:\n    m = 'three four'", ["three four"], id="for-else"),
        pytest.param("m = 'one two'\nwhile value:\n    m = 'three four'", ["one two", "three four"], id="while"),
        pytest.param("while True:\n    m = 'three four'\n    if value:\n        break", ["three four"], id="while-true"),
        pytest.param("try:\n    m = 'one two'\nexcept OSError:\n    m = 'three four'", ["one two", "three four"], id="try"),
        pytest.param("try:\n    pass\nexcept OSError:\n    m = 'three four'\nelse:\n    m = 'five six'", ["five six", "three four"], id="try-else"),
        pytest.param("try:\n    m = 'one two'\nfinally:\n    m = 'three four'", ["three four"], id="finally"),
        pytest.param("try:\n    m = 'one two'\nexcept* OSError:\n    m = 'three four'", ["one two", "three four"], id="try-star"),
        pytest.param("try:\n    m = 'one two'\nexcept OSError:\n    return", ["one two"], id="handler-returns"),
        pytest.param("with value:\n    m = 'one two'", ["one two"], id="with"),
        pytest.param("m = 'one two'\nwith value as m:\n    pass", ["{m}"], id="with-as"),
        pytest.param("match value:\n    case 1:\n        m = 'one two'\n    case _:\n        m = 'three four'", ["one two", "three four"], id="match"),
        pytest.param("if (m := 'bad value'):\n    pass", ["bad value"], id="walrus"),
        pytest.param("m = 'old'\nwhile (m := self.why()):\n    pass", ["{m}"], id="walrus-unknown"),
        pytest.param("n = 'bad value'\nm = n", ["bad value"], id="alias"),
        pytest.param("del m", ["{m}"], id="never-set"),
    ],
)
def test_names(body: str, texts: list[str]) -> None:
    assert sorted(raised(f"{body}\nraise ValueError(m)")) == sorted(texts)


def test_a_handler_sees_what_the_body_may_have_done() -> None:
    body = "step = 'reading it'\ntry:\n    step = 'loading it'\n    self.load()\nexcept OSError:\n    raise ValueError(f'failed: {step}')"
    assert raised(body) == ["failed: reading it", "failed: loading it"]


def test_a_message_of_a_loop_that_was_broken_off() -> None:
    body = """
        error = None
        for item in value:
            if item.bad:
                error = f"{item} is not allowed"
                break
        if error:
            raise ValueError(error)
    """
    assert "{item} is not allowed" in raised(body)


@pytest.mark.parametrize(
    "body",
    [
        "return\nraise ValueError('dead')",
        "raise OSError\nraise ValueError('dead')",
        "while True:\n    break\n    raise ValueError('dead')",
        "try:\n    return\nexcept OSError:\n    pass\nelse:\n    raise ValueError('dead')",
        "try:\n    return\nfinally:\n    raise ValueError('dead')",
        "if value:\n    return\nelse:\n    return\nraise ValueError('dead')",
        "for x in value:\n    pass\nelse:\n    raise ValueError('dead')",
        "while value:\n    pass\nelse:\n    raise ValueError('dead')",
        "match value:\n    case 1 if name:\n        raise ValueError('dead')",
        "async def g():\n    async with value:\n        async for x in value:\n            raise ValueError('dead')",
        "try:\n    pass\nexcept* OSError:\n    raise ValueError('dead')",
        "return\nclass C:\n    def g(self):\n        raise ValueError('dead')",
        "with value, name as x:\n    raise ValueError('dead')",
    ],
)
def test_every_raise_is_found_even_where_it_is_never_reached(body: str) -> None:
    assert raised(body) == ["dead"]


def test_long_elif_chains_are_walked() -> None:
    source = "def f(x):\n    if x == 0:\n        m = 'zero'\n" + "".join(
        f"    elif x == {number}:\n        raise ValueError('number {number}')\n" for number in range(400)
    )
    assert len(sites_of(source)) == 400


def test_many_ways_to_a_message_are_bounded() -> None:
    body = "m = 'start of it'\n" + "".join(f"if value == {number}:\n    m += ' part {number}'\n" for number in range(40))
    assert len(raised(f"{body}raise ValueError(m)")) == MAX_ALTERNATIVES


def test_a_nested_function_sees_the_names_around_it() -> None:
    source = "def f(value):\n    what = 'outer'\n    def g(x):\n        raise ValueError(f'{what} {x} {value}')"
    assert messages(source) == ["outer {x} {value}"]


def test_a_method_does_not_see_the_names_of_its_class() -> None:
    assert messages("class A:\n    what = 'x y'\n    def f(self):\n        raise ValueError(what)") == ["{what}"]


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("lines = [x for x in value]\nraise ValueError(' '.join(lines))", ["{lines}"]),
        ("lines = value\nlines.append('a whole line')\nraise ValueError(' '.join(lines))", ["{lines}"]),
        ("lines = []\nraise ValueError('none: ' + ' '.join(lines))", ["none: {lines}"]),
        ("lines = ['a']\nlines.insert(0, 'b')\nraise ValueError(' '.join(lines))", ["a b"]),
        ("lines = []\nlines.append('a ' * 900)\nraise ValueError('x ' + ' '.join(lines))", ["x {}"]),
    ],
)
def test_lists_that_say_little(body: str, texts: list[str]) -> None:
    assert raised(body) == texts


def test_lists_of_two_branches_are_one() -> None:
    body = "if value:\n    lines = ['the first line']\nelse:\n    lines = ['the other line']\nraise ValueError('; '.join(lines))"
    assert raised(body)[1:3] == ["the first line", "the other line"]


def test_a_text_that_doubles_and_doubles_ends() -> None:
    doubling = "m = 'word '\n" + "m = m + m\n" * 40 + "raise ValueError(m)"
    assert max(map(len, raised(doubling))) < 20_010
