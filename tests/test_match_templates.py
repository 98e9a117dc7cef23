from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.templates import Part, Template, TemplateError, fold, parse_template

LITERALS = st.text("abcXYZ .:('{}\n", min_size=1, max_size=12).filter(str.strip)
VALUES = st.text("abcXYZ019 .:('{}\n_é", min_size=1, max_size=12).filter(str.strip)
ANYTHING = st.text(max_size=80)


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@st.composite
def filled(draw: st.DrawFn) -> tuple[str, str]:
    """A template with a literal word in it, and a message that it describes."""
    template, message = "word ", "word "
    for number in range(draw(st.integers(0, 4))):
        literal, value = draw(LITERALS), draw(VALUES)
        template += f"{{hole_{number}}}{escaped(literal)}"
        message += value + literal
    if draw(st.booleans()):
        return template + "{last}", message + draw(VALUES)
    return template, message


def render(template: str, fields: tuple[tuple[str, str], ...]) -> str:
    values = dict(fields)
    return "".join(values[part.text] if part.hole else part.text for part in parse_template(template))


@given(filled())
def test_a_filled_template_matches_and_its_fields_render_the_same_message(case: tuple[str, str]) -> None:
    template, message = case
    fields = Template(template).match(message)
    assert fields is not None
    assert render(template, fields) == fold(message)
    assert all(value for _, value in fields)


@given(filled(), st.text("xyz \n", max_size=9), st.text("xyz \n", max_size=9))
def test_a_filled_template_is_found_inside_a_longer_message(case: tuple[str, str], before: str, after: str) -> None:
    template, message = case
    fields = Template(template).search(f"{before} {message} {after}")
    assert fields is not None
    assert len(fields) == len(Template(template).holes)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(20, 80), st.sampled_from(["", "...", "…"]))
def test_every_beginning_of_20_literal_characters_matches_as_prefix(a: int, b: int, cut: int, dots: str) -> None:
    template = Template("The requested number of tokens {asked} is larger than {limit} tokens")
    message = f"The requested number of tokens {a} is larger than {b} tokens"
    fields = template.match_prefix(message[: min(cut, len(message) - 1)] + dots)
    assert fields is not None
    assert fields == (("asked", str(a)), ("limit", str(b)))[: len(fields)]


@given(ANYTHING, ANYTHING)
def test_arbitrary_text_never_raises_anything_but_template_errors(text: str, message: str) -> None:
    try:
        template = Template(text)
    except TemplateError:
        return
    template.search(message)
    template.match_prefix(message)
    fields = template.match(message)
    assert fields is None or render(text, fields) == fold(message)


@given(ANYTHING)
def test_any_text_of_words_escaped_matches_itself(text: str) -> None:
    assert Template("word " + escaped(text)).match("word " + text) == ()


def test_parts_are_folded_and_doubled_braces_are_literal() -> None:
    assert parse_template(" Unknown\n  role: {role} in {{{kind}}} ") == (
        Part("Unknown role: "),
        Part("role", hole=True),
        Part(" in {"),
        Part("kind", hole=True),
        Part("}"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("length {max", "column 8: '{' has no partner"),
        ("length max}", "column 11: '}' has no partner"),
        ("length {a}{b}", "'a' and 'b' stand side by side"),
        ("from {a} to {a}", "two holes are named 'a'"),
        ("length {maxLen}", "snake_case"),
        ("length {}", "snake_case"),
        ("length {a b}", "snake_case"),
        ("{a}: 1 {b}", "no literal word"),
        ("", "no literal word"),
    ],
)
def test_a_bad_template_is_refused_with_its_reason(text: str, problem: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert problem in str(caught.value)


def test_holes_take_as_little_as_they_can_and_the_last_one_the_rest() -> None:
    template = Template("Value {name}={value}")
    assert template.match("Value a=b=c") == (("name", "a"), ("value", "b=c"))
    assert Template("{a} is not {b} bytes").match("x is not y is not z bytes") == (("a", "x"), ("b", "y is not z"))


def test_a_hole_is_never_empty_and_the_whole_message_counts() -> None:
    template = Template("length {n} is too long")
    assert template.match("length  is too long") is None
    assert template.match("a length 3 is too long") is None
    assert template.match("length 3 is too long.") is None
    assert template.match("\n length 3\n   is too\tlong ") == (("n", "3"),)


def test_first_and_last_literal_do_not_share_characters() -> None:
    assert Template("abc{x}bcd").match("abcd") is None
    assert Template("abc{x}bcd").match("abcbcd") is None


def test_search_gives_the_shape_of_a_wrapped_message() -> None:
    template = Template("dtype {dtype} is not supported")
    assert template.search("[address=127.0.0.1:1, pid=3] dtype fp8 is not supported [type=x]") == (("dtype", "fp8"),)
    assert template.search("is not supported dtype fp8") is None


def test_match_prefix_returns_only_fields_that_are_whole() -> None:
    template = Template("The length {length} is larger than the maximum {limit} of the model")
    assert template.match_prefix("The length 4096 is larger than the max…") == (("length", "4096"),)
    assert template.match_prefix("The length 4096 is larger than the maximum 20...") == (("length", "4096"),)
    assert template.match_prefix("The length 4096 is lar...") is None
    assert template.match_prefix("The length 4096 is larger than another thing") is None
    assert template.match_prefix("The length 1 is larger than the maximum 2 of the model and so on") is None


@given(st.integers(1, 30))
def test_repetitive_text_is_scanned_not_backtracked(holes: int) -> None:
    template = Template("aa" + "".join(f"{{h{number}}}a" for number in range(holes)) + "{end}b")
    assert template.match("a" * 20_000) is None
    assert template.search("a" * 20_000) is None
    assert template.match_prefix("b" + "a" * 20_000) is None
