from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.matcher import Matcher
from lmdiag.model import Frame, Match, MatchRule

LONG = "Model length {length} is larger than the limit of this platform"
ADAPTER = Frame("/opt/site-packages/vllm/vllm_v1_adapter.py", 458, "_init_lmcache_engine")


def rule(card: str, message: str, *types: str, raised_in: tuple[str, ...] = ()) -> MatchRule:
    return MatchRule(card, message, types, raised_in)


def card_of(match: Match | None) -> str | None:
    return match.card if match else None


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("ValueError", True),
        (None, True),
        ("pydantic_core._pydantic_core.ValidationError", True),
        ("vllm.exceptions.VLLMValidationError", True),
        ("RuntimeError", False),
        ("my.ValueErrors", False),
    ],
)
def test_the_type_is_compared_without_its_module(name: str | None, fits: bool) -> None:
    matcher = Matcher([rule("a", "this is a bad value", "ValueError")])
    assert card_of(matcher.match(name, "this is a bad value", ())) == ("a" if fits else None)


def test_a_rule_without_types_fits_any_and_one_with_another_is_not_widened() -> None:
    assert card_of(Matcher([rule("a", "this is bad")]).match("OSError", "this is bad", ())) == "a"
    assert Matcher([rule("a", "this is bad", "RuntimeError")]).match("ValidationError", "this is bad", ()) is None


def test_raised_in_needs_one_frame_and_few_words_are_not_enough() -> None:
    matcher = Matcher([rule("a", "this is bad", raised_in=("vllm_v1_adapter.py:_init_lmcache_engine",))])
    assert card_of(matcher.match(None, "this is bad", (ADAPTER, Frame("x.py", 1, "f")))) == "a"
    assert matcher.match(None, "this is bad", ()) is None  # few words may be anybody's
    assert matcher.match(None, "this is bad", (ADAPTER._replace(function="other"),)) is None
    assert matcher.match(None, "this is bad", (ADAPTER._replace(file="/opt/my_vllm_v1_adapter.py"),)) is None
    windows = ADAPTER._replace(file="C:\\vllm\\vllm_v1_adapter.py")
    assert card_of(matcher.match(None, "this is bad", (windows,))) == "a"


def test_a_message_of_many_words_needs_no_frames() -> None:
    words = "the layerwise MLA connector is not supported yet"
    matcher = Matcher([rule("a", words, raised_in=("vllm_v1_adapter.py:_init_lmcache_engine",))])
    assert card_of(matcher.match(None, words, ())) == "a"


def test_exact_goes_before_embedded_and_embedded_before_partial() -> None:
    embedded = rule("long", LONG)
    exact = rule("exact", "Oops: {what} platform")
    message = "Oops: Model length 5 is larger than the limit of this platform"
    assert Matcher([embedded, exact]).match(None, message, ()) == Match(
        "exact", (("what", "Model length 5 is larger than the limit of this"),), "exact"
    )
    assert Matcher([embedded]).match(None, message, ()) == Match("long", (("length", "5"),), "embedded")
    assert Matcher([embedded]).match(None, message, (), embedded=False) is None


def test_the_longest_literal_text_wins_then_fewer_holes_then_the_id() -> None:
    message = "cannot load model opt from disk"
    general, special = rule("a", "cannot load {what}"), rule("z", "cannot load model {model} from disk")
    assert card_of(Matcher([general, special]).match(None, message, ())) == "z"
    two, one = rule("a", "load {a} cd {b}"), rule("z", "load ab{x}ef")
    assert card_of(Matcher([two, one]).match(None, "load ab cd ef", ())) == "z"
    same = [rule("b", "cannot load model {x} from disk"), rule("a", "cannot load model {y} from disk")]
    assert card_of(Matcher(same).match(None, message, ())) == "a"


def test_a_prefix_inside_the_message_is_embedded_but_a_short_template_is_not_looked_for() -> None:
    prefix = "[address=127.0.0.1:37657, pid=31] "
    matcher = Matcher([rule("long", LONG), rule("short", "bad {dtype} given"), rule("words", "x" * 40 + " {a} yy")])
    assert matcher.match("ValueError", prefix + LONG.format(length=9), ()) == Match(
        "long", (("length", "9"),), "embedded"
    )
    assert matcher.match("ValueError", prefix + "bad fp8 given", ()) is None
    assert matcher.match("ValueError", prefix + "x" * 40 + " 1 yy", ()) is None


def test_a_message_in_quotes_is_found_though_its_outer_words_are_glued_to_them() -> None:
    wrapped = f"Worker failed with error '{LONG.format(length=9)}', please check the stack trace"
    assert Matcher([rule("a", LONG)]).match(None, wrapped, ()) == Match("a", (("length", "9"),), "embedded")


def test_a_cut_message_is_partial_only_where_it_says_so() -> None:
    matcher = Matcher([rule("a", LONG)])
    cut = "Model length 9 is larger than the lim"
    assert matcher.match(None, cut + "...", ()) == Match("a", (("length", "9"),), "partial")
    assert matcher.match(None, cut + "…", ()) == Match("a", (("length", "9"),), "partial")
    assert matcher.match(None, cut, ()) is None
    assert matcher.match(None, cut, (), truncated=True) == Match("a", (("length", "9"),), "partial")
    assert matcher.match(None, "Model length...", ()) is None


def test_white_space_in_the_message_does_not_matter() -> None:
    assert Matcher([rule("a", LONG)]).match(None, LONG.format(length=1).replace(" ", "\n   "), ()) == Match(
        "a", (("length", "1"),), "exact"
    )


@given(
    st.lists(
        st.sampled_from(["alpha", "{a}", "beta{b}", "({c})", "gam{{ma", "delta"]), min_size=1, max_size=6, unique=True
    )
)
def test_every_template_is_found_by_the_index(parts: list[str]) -> None:
    message = " ".join(["word", *parts])
    others = [rule(f"other-{number}", f"alpha delta {number} {{x}} end") for number in range(20)]
    found = Matcher([*others, rule("mine", message)]).match(None, message.format(a="q", b="r", c="s t"), ())
    assert found is not None
    assert (found.card, found.confidence) == ("mine", "exact")


@given(st.text(max_size=60), st.booleans())
def test_arbitrary_messages_never_raise(message: str, truncated: bool) -> None:
    matcher = Matcher([rule("a", LONG), rule("b", "{x}abc{y}"), rule("c", "some words, {{x}} and {y}", "ValueError")])
    found = matcher.match("ValueError", message, (ADAPTER,), truncated=truncated)
    assert found is None or found.card in "abc"


def test_an_exception_without_a_message_is_told_by_its_last_frame() -> None:
    matcher = Matcher([MatchRule("silent", "", ("AssertionError",), ("vllm/factory.py:create",))])
    frames = (Frame("/x/vllm/main.py", 1, "main"), Frame("/x/vllm/factory.py", 2, "create"))
    assert matcher.match("AssertionError", "", frames) == Match("silent", (), "exact")
    assert matcher.match("AssertionError", "", frames[:1]) is None
    assert matcher.match("AssertionError", "", (*frames, Frame("/x/a.py", 3, "deeper"))) is None
    assert matcher.match("AssertionError", "", ()) is None
    assert matcher.match("ValueError", "", frames) is None
    assert matcher.match("AssertionError", "words", frames) is None
