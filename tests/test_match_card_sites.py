from __future__ import annotations

import pytest
from catalog_samples import MODEL, catalog_of, index_of, row_of, site
from hypothesis import given
from hypothesis import strategies as st
from report_samples import CARD

from lmdiag.catalog.sites import Site
from lmdiag.match.card_sites import card_template, rows_of_rule, sites_of_card, wordings
from lmdiag.match.templates import Template
from lmdiag.model import MatchRule, RaiseSite

TEXT = "The length {n} is larger than the limit {limit}"


def rule(message: str, *types: str) -> MatchRule:
    return MatchRule("card", message, types)


def templates(message: str, *sites: Site, types: tuple[str, ...] = ()) -> list[str]:
    """The messages of a catalogue that a rule is about."""
    return [row.template for row in rows_of_rule(rule(message, *types), index_of({"vllm 0.9.0": sites}))]


ABOUT = {
    "the same words": (TEXT, [TEXT], [TEXT]),
    "other holes": ("The length {n} is larger than {rest}", [TEXT, "The length is small"], [TEXT]),
    "several messages": ("bad {what}", ["bad thing here", "bad {x} there", "good thing"], ["bad thing here", "bad {x} there"]),
    "spelled out": ("Unsupported connector type: FooConnector", ["Unsupported connector type: {kind}"], ["Unsupported connector type: {kind}"]),
    "a wrapper of many messages": ("Engine core failed: The length 5 is larger than the limit of it", ["Engine core failed: {error}"], []),
    "several lines": ("first line then {x}", ["first line\n  then {y}"], ["first line then {y}"]),
    "other words": ("The width {n} is larger", [TEXT], []),
    "no words": ("bad {what}", ["{error}"], []),
}  # fmt: skip


@pytest.mark.parametrize(("message", "texts", "wanted"), ABOUT.values(), ids=ABOUT)
def test_the_messages_of_a_rule(message: str, texts: list[str], wanted: list[str]) -> None:
    sites = [site(text, line=number) for number, text in enumerate(texts, 1)]
    assert templates(message, *sites) == wanted


def test_a_rule_for_other_types_is_about_other_messages() -> None:
    typed = site(TEXT, type="TypeError")
    assert templates(TEXT, typed, types=("ValueError",)) == []
    assert templates(TEXT, typed, types=("ValueError", "TypeError")) == [TEXT]
    assert templates(TEXT, site(TEXT, type="", family="Exception"), types=("ValueError",)) == [TEXT]


SITES = index_of(
    {
        "vllm 0.9.0": [site(TEXT, line=5), site(TEXT, line=30), site("old words here", name="old")],
        "vllm 0.10.0": [site(TEXT, line=5), site(TEXT, line=30)],
        "vllm 0.11.0": [site(TEXT, line=7)],
        "lmcache 0.3.0": [site("old words here", file="lmcache/a.py", name="f", line=3)],
        "lmcache 0.3.1": [],
    }
)


def test_the_sites_of_a_card_are_one_a_function_the_newest_first() -> None:
    own = RaiseSite("torch", "torch/a.py", "f", (("2.0.0", 1),))
    card = CARD._replace(rules=(rule(TEXT), rule("old words {where}")), raised_at=(own,))
    assert sites_of_card(card, SITES) == (
        RaiseSite("vllm", MODEL, "check", (("0.9.0", 5), ("0.11.0", 7)), ""),
        RaiseSite("vllm", MODEL, "old", (("0.9.0", 10),), "0.9.0"),
        RaiseSite("lmcache", "lmcache/a.py", "f", (("0.3.0", 3),), "0.3.0"),
        own,
    )


def test_a_card_that_the_catalogue_does_not_know_has_its_own_sites() -> None:
    assert sites_of_card(CARD, SITES) == CARD.raised_at


CARD_TEMPLATES = {
    "names": (("a word of ", "max_len", " and ", "kind", ""), "a word of {max_len} and {kind}"),
    "no name": (("a word of ", "", ""), "a word of {value}"),
    "the same name twice": (("a word ", "x", ", ", "x", ", ", "", ", ", "value", "."), "a word {x}, {x_2}, {value}, {value_2}."),
    "names that a card cannot have": (("a word ", "MaxLen", " ", "_x_", " ", "2d", " ", "größe", ""), "a word {maxlen} {x} {d} {gr_e}"),
    "braces": (("a {word} ", "x", " {}"), "a {{word}} {x} {{}}"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), CARD_TEMPLATES.values(), ids=CARD_TEMPLATES)
def test_the_template_for_a_card(text: tuple[str, ...], wanted: str) -> None:
    (row,) = [catalog.row(0) for catalog in [catalog_of({"vllm 0.9.0": [site(text)]})]]
    assert card_template(row) == wanted


NAMES = st.lists(st.text("abX_12é", max_size=4).filter(lambda name: name == "" or name.isidentifier()), max_size=5)


@given(NAMES)
def test_any_row_gives_a_template_that_can_be_read(names: list[str]) -> None:
    text = ["a word"] + [part for name in names for part in (name, " of ")]
    row = catalog_of({"vllm 0.9.0": [site(tuple(text))]}).row(0)
    assert len(Template(card_template(row)).holes) == len(names)


def test_the_wordings_of_a_message_the_newest_first() -> None:
    words = [TEXT, "The length {n} is larger than the limit {limit}.", "The length {n} is larger than its limit {limit}."]
    catalog = catalog_of({f"vllm 0.{number}.0": [site(text), site(f"other thing {number}", name="g")] for number, text in enumerate(words)})
    for text in words:
        assert [row.template for row in wordings(catalog, row_of(catalog, text))] == words[::-1]


def test_two_messages_that_became_one_are_both_wordings_of_it() -> None:
    one, two, both = "The length of it is too large", "The lengths of it are too large", "The length of it is too large."
    catalog = catalog_of({"vllm 0.1.0": [site(one), site(two)], "vllm 0.2.0": [site(two)], "vllm 0.3.0": [site(both)]})
    assert wordings(catalog, row_of(catalog, two))[0].template == both


def test_projects_that_reword_in_opposite_directions_do_not_hang() -> None:
    words = [TEXT, TEXT + "."]
    history = {
        "vllm 0.1.0": [site(words[0])], "vllm 0.2.0": [site(words[1])],
        "lmcache 0.3.0": [site(words[1])], "lmcache 0.3.1": [site(words[0])],
    }  # fmt: skip
    catalog = catalog_of(history)
    assert {row.template for row in wordings(catalog, row_of(catalog, words[0]))} == set(words)
