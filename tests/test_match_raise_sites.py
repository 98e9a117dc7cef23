from __future__ import annotations

import pytest
from catalog_samples import MODEL, at, find, index_of, rows_in, site
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmdiag.catalog.rows import key_of
from lmdiag.match.raise_sites import CANDIDATE, CERTAIN, PROBABLE, RaiseSites, agrees
from lmdiag.match.templates import fold

# -- the text ------------------------------------------------------------------------------------------------------------

LITERALS = st.text("abcXYZ012 .:('{}%\\[\n\t_é模", min_size=1, max_size=12).filter(str.strip)
VALUES = st.text(max_size=20).filter(str.strip)
Case = tuple[tuple[str, ...], list[str]]


@st.composite
def filled(draw: st.DrawFn) -> Case:
    """A text with a word in one of its literals, and values for its holes."""
    literals = draw(st.lists(LITERALS, min_size=1, max_size=5))
    index = draw(st.integers(0, len(literals) - 1))
    literals[index] += " word " + draw(LITERALS)
    if draw(st.booleans()):
        literals.insert(0, "")
    if draw(st.booleans()):
        literals.append("")
    parts = [part for literal in literals for part in (literal, "name")][:-1]
    return tuple(parts), [draw(VALUES) for _ in literals[1:]]


def rendered(text: tuple[str, ...], values: list[str]) -> str:
    parts = list(text)
    parts[1::2] = values
    return "".join(parts)


def numbers(index: RaiseSites, message: str, *, truncated: bool = False) -> list[int]:
    return [hit.number for hit in index.hits(message, truncated=truncated)]


@given(filled())
@example((("The word ", "name", ""), ["x\x00y\x01\x02\x1b[31m\x7f"]))
@example((("100% {word} of ", "name", " %s"), ["{}%s"]))
@example((("first word\n  second ", "name", "."), ["a\r\nb"]))
@example((("", "name", "glued word ", "name", "ed"), ["un", "x"]))
@settings(max_examples=300, deadline=None)
def test_a_message_finds_its_row_whatever_fills_the_holes(case: Case) -> None:
    text, values = case
    index = index_of({"vllm 0.1.0": [site(text, ("another word",))]})
    match = find(index, rendered(text, values))
    assert match.row.key == key_of(text)


@given(filled(), st.sampled_from(["\n", "\t  ", " \r\n   "]))
@settings(max_examples=100, deadline=None)
def test_white_space_is_folded(case: Case, blank: str) -> None:
    text, values = case
    index = index_of({"vllm 0.1.0": [site(text)]})
    message = blank.join(["", *fold(rendered(text, values)).split(" "), ""])
    assert numbers(index, message) == [0]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("no model {name} found on the hub", "no model  found on the hub"),
        ("cannot load {a} from {b} or {c}", "cannot load  from  or "),
        ("loading the adapter failed: {error}", "loading the adapter failed: "),
        ("model {name} was not found in {place}", "model was not found in hub"),
    ],
)
def test_an_empty_value_takes_a_blank_with_it(template: str, message: str) -> None:
    assert numbers(index_of({"vllm 0.1.0": [site(template)]}), message) == [0]


def test_a_blank_is_shared_only_where_nothing_else_fits() -> None:
    index = index_of({"vllm 0.1.0": [site("the key {name} is missing"), site("the key is missing")]})
    assert find(index, "the key is missing").row.template == "the key is missing"


LONG = "The requested number of tokens {asked} is larger than the limit {limit} of this model"
MULTI = "Unsupported kernel block size {size} for attention\n{detail}\nUse one of {sizes}"
INDEX = index_of(
    {
        "vllm 0.9.0": [
            site(LONG, line=5),
            site(MULTI, line=20, name="check_blocks"),
            site("Loading weights of the adapter failed: {error}", line=30, name="load"),
            site("bad {x}", line=40, name="weak"),
            site("Expected {a}, got {b} on {c}", line=50, name="weak"),
            site("{error}", line=60, name="wrap"),
        ],
    }
)
FILLED = "The requested number of tokens 4096 is larger than the limit 2048 of this model"


def found(message: str, *, truncated: bool = False) -> tuple[str, str]:
    match = find(INDEX, message, truncated=truncated)
    return match.row.template, match.confidence


@pytest.mark.parametrize(
    ("before", "after"),
    [("Worker failed with error '", "', please check the stack trace"), ("[address=1.2.3.4, pid=3] ", ""), ("Value error, ", " [type=value_error]")],
)
def test_a_message_is_found_inside_a_longer_one(before: str, after: str) -> None:
    assert found(f"{before}{FILLED}{after}") == (LONG, PROBABLE)


def test_a_few_words_inside_of_a_longer_message_are_not_looked_for() -> None:
    assert INDEX.find("ValueError", "this is a bad thing to say", None, {}) is None


def test_the_whole_message_is_certain() -> None:
    assert found(FILLED) == (LONG, CERTAIN)


@pytest.mark.parametrize("cut", range(25, len(FILLED)))
def test_a_message_that_is_cut_off(cut: int) -> None:
    assert find(INDEX, FILLED[:cut], truncated=True).row.template == LONG
    assert find(INDEX, FILLED[:cut] + "...").row.template == LONG


def test_only_what_is_known_to_be_cut_is_taken_for_a_beginning() -> None:
    assert numbers(INDEX, FILLED[:50]) == []
    assert numbers(INDEX, FILLED[:12], truncated=True) == []


def test_of_a_beginning_and_a_part_the_one_that_shares_more() -> None:
    short = "The sizes of all the inputs must match."
    index = index_of({"vllm 0.9.0": [site(short, f"{short} This can be caused by option {{name}} of the server.")]})
    cut = f"{short} This can be caused by option --x of"
    assert find(index, cut, truncated=True).row.template.startswith(f"{short} This")
    assert find(index, cut).row.template == short
    assert find(index, f"Worker said: {short} And more of it", truncated=True).row.template == short


SHOWN = MULTI.replace("\n", " ")


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported kernel block size 16 for attention\nbecause\nUse one of [1]",
        "Unsupported kernel block size 16 for attention",
        "Unsupported kernel block size 16 for attention\nanother explanation of another version",
        "\n  Unsupported kernel block size 16 for attention because Use one of [1]",
    ],
    ids=["whole", "first line", "first line and others", "one line"],
)
def test_of_several_lines_the_first_is_enough(message: str) -> None:
    assert found(message) == (SHOWN, CERTAIN)


def test_a_message_of_one_line_with_more_lines_behind_it() -> None:
    assert found(f"{FILLED}\n  [type=value_error, input_value=1]") == (LONG, CERTAIN)


def test_a_first_line_that_is_a_hole_tells_nothing() -> None:
    index = index_of({"vllm 0.1.0": [site("{text}\n...(truncated message)"), site(LONG)]})
    assert find(index, f"failed: {FILLED} as said\nsee the truncated message above").row.template == LONG


@pytest.mark.parametrize("message", ["Loading weights of the adapter failed: ", "Loading weights of the adapter failed:", "Loading weights of the adapter failed: \n"])
def test_a_last_value_may_be_empty(message: str) -> None:
    assert found(message) == ("Loading weights of the adapter failed: {error}", CERTAIN)


@pytest.mark.parametrize("value", ["x" * 10_000, "many words " * 1000, "The requested number of tokens " * 400])
def test_a_value_may_be_very_long(value: str) -> None:
    assert found(FILLED.replace("4096", value)) == (LONG, CERTAIN)
    assert found(FILLED.replace("2048", value)) == (LONG, CERTAIN)
    assert found(f"Loading weights of the adapter failed: {value}")[1] == CERTAIN


@given(st.text(max_size=200), st.booleans())
def test_no_message_fails(message: str, truncated: bool) -> None:
    INDEX.find("ValueError", message, at(), {"vllm": "0.9.0"}, truncated=truncated)
    INDEX.find_all(None, message, {})


@pytest.mark.parametrize("message", ["", "  \n", "entirely other words that no release says"])
def test_what_is_not_known_is_not_found(message: str) -> None:
    assert INDEX.find("ValueError", message, None, {}) is None


def test_words_that_are_part_of_longer_ones_in_the_message() -> None:
    index = index_of({"vllm 0.1.0": [site("{kind}Connector is {state}supported{end}")]})
    assert numbers(index, "LMCacheConnector is unsupportedly") == [0]


def test_first_and_last_literal_do_not_share_characters() -> None:
    index = index_of({"vllm 0.1.0": [site("abc words{x}words def")]})
    assert numbers(index, "abc words def") == []
    assert numbers(index, "abc wordswords def") == [0]


@given(st.integers(2, 40))
@settings(deadline=2000)
def test_repetitive_text_is_scanned_not_backtracked(holes: int) -> None:
    index = index_of({"vllm 0.1.0": [site("word " + "a".join(f"{{h{number}}}" for number in range(holes)) + " b")]})
    assert numbers(index, "word " + "a" * 20_000, truncated=True) == []


# -- how sure it is --------------------------------------------------------------------------------------------------------


def test_a_few_words_are_a_candidate_without_an_agreeing_frame() -> None:
    assert found("bad thing") == ("bad {x}", CANDIDATE)
    assert find(INDEX, "bad thing", at(40, "other")).confidence == CANDIDATE
    assert find(INDEX, "bad thing", at(1, "weak")).confidence == CERTAIN
    assert found("Expected 1, got 2 on 3") == ("Expected {a}, got {b} on {c}", CANDIDATE)


def test_a_frame_that_disagrees_does_not_veto_a_long_text() -> None:
    for frame in (at(7, "validate", "vllm/entrypoints/llm.py"), at(999), None):
        match = find(INDEX, FILLED, frame, vllm="0.9.0")
        assert (match.row.template, match.confidence) == (LONG, CERTAIN)


def test_a_message_inside_of_another_is_probable_even_where_the_frame_agrees() -> None:
    assert find(INDEX, f"x {FILLED} y", at(5), vllm="0.9.0").confidence == PROBABLE


def test_a_site_without_words_is_found_by_its_frame() -> None:
    match = find(INDEX, "some words of another library", at(60, "wrap"), vllm="0.9.0")
    assert (match.row.template, match.site.function, match.confidence) == ("", "wrap", CERTAIN)
    assert find(INDEX, "some words of another library", at(60, "wrap")).confidence == CANDIDATE
    assert find(INDEX, "some words", at(61, "wrap"), vllm="0.9.0").confidence == CANDIDATE
    assert find(INDEX, "", at(60, "wrap"), vllm="0.9.0").site.function == "wrap"


def test_a_frame_in_its_function_tells_more_than_a_few_words_of_another() -> None:
    assert find(INDEX, "bad thing", at(60, "wrap"), vllm="0.9.0").site.function == "wrap"


@pytest.mark.parametrize(
    ("kind", "frame"),
    [("ValueError", at(60, "other")), ("ValueError", at(60, "wrap", "vllm/b.py")), ("ValueError", None), ("OSError", at(60, "wrap"))],
    ids=["function", "file", "no frame", "type"],
)
def test_but_not_by_half_of_it(kind: str, frame: object) -> None:
    assert INDEX.find(kind, "some words of another library", frame, {"vllm": "0.9.0"}) is None  # type: ignore[arg-type]


def test_of_sites_without_words_in_a_function_the_one_on_the_line() -> None:
    index = index_of({"vllm 0.9.0": [site("{e}", line=3, name="A.wrap"), site("{e}", line=8, name="B.wrap")]})
    for line, name in ((3, "A.wrap"), (8, "B.wrap")):
        assert find(index, "x", at(line, "wrap"), vllm="0.9.0").site.qualname == name


def test_a_dotted_type_is_known_by_its_name() -> None:
    index = index_of({"vllm 0.9.0": [site("{e}", type="VLLMValidationError")]})
    assert find(index, "x", at(), type="vllm.exceptions.VLLMValidationError").site.type_in(0)[0] == "VLLMValidationError"


# -- which of several ------------------------------------------------------------------------------------------------------


def test_the_longer_literal_wins() -> None:
    index = index_of({"vllm 0.9.0": [site("value {x}"), site("value {x} is bad"), site("value {x} is {y}")]})
    assert find(index, "value 1 is bad").row.template == "value {x} is bad"


def test_an_agreeing_frame_wins_over_a_longer_literal() -> None:
    index = index_of({"vllm 0.9.0": [site("value {x}", name="f"), site("value {x} is bad", name="g")]})
    assert find(index, "value 1 is bad", at(1, "f")).row.template == "value {x}"
    assert find(index, "value 1 is bad", at(1, "g")).row.template == "value {x} is bad"
    assert find(index, "value 1 is bad", at(1, "h", "vllm/other.py")).row.template == "value {x} is bad"


def test_the_whole_message_wins_over_an_agreeing_frame() -> None:
    long = "Loading of {model} was refused because the format is unknown"
    index = index_of({"vllm 0.9.0": [site(long, name="f"), site("Worker said: {text}", name="g")]})
    match = find(index, "Worker said: Loading of x was refused because the format is unknown", at(10, "f"))
    assert match.row.template == "Worker said: {text}"


def test_the_line_wins_over_the_function_and_that_over_the_file() -> None:
    twins = [
        site("same words", line=5, name="A.check"),
        site("same words", line=9, name="B.check"),
        site("same words", line=5, name="other"),
        site("same words", line=5, name="check", file="vllm/b.py"),
    ]
    index = index_of({"vllm 0.9.0": twins})
    for line, name in ((5, "A.check"), (9, "B.check")):
        assert find(index, "same words", at(line), vllm="0.9.0").site.qualname == name
    assert find(index, "same words", at(7, "other"), vllm="0.9.0").site.qualname == "other"
    assert find(index, "same words", at(7, "nowhere"), vllm="0.9.0").site.file == MODEL
    assert find(index, "same words", at(5, "check", "vllm/b.py"), vllm="0.9.0").site.file == "vllm/b.py"


def test_one_line_is_only_told_from_another_in_a_known_release() -> None:
    index = index_of({"vllm 0.9.0": [site("value {x}", line=5)], "vllm 0.10.0": [site("value {x} is {y}", line=5)]})
    assert find(index, "value 1 is 2", at(5), vllm="0.9.0").row.template == "value {x}"
    assert find(index, "value 1 is 2", at(5), vllm="0.10.0").row.template == "value {x} is {y}"
    assert find(index, "value 1 is 2", at(5), vllm="0.9.1.dev3").row.template == "value {x} is {y}"


@pytest.mark.parametrize("line", [10, 9])
def test_an_assertion_is_shown_on_its_line_or_the_one_before(line: int) -> None:
    index = index_of({"vllm 0.9.0": [site("same words", how="assert"), site("same words", how="assert", name="X.check", line=30)]})
    assert find(index, "same words", at(line), vllm="0.9.0").site.qualname == "ModelConfig.check"


def test_the_version_settles_what_text_and_frame_leave_open() -> None:
    index = index_of({"vllm 0.9.0": [site("same words", file="vllm/old.py")], "vllm 0.10.0": [site("same words", file="vllm/new.py")]})
    assert find(index, "same words", vllm="0.9.0").site.file == "vllm/old.py"
    assert find(index, "same words", vllm="0.10.0").site.file == "vllm/new.py"
    assert find(index, "same words").site.file == "vllm/new.py"


def test_the_type_comes_last() -> None:
    sites = [site("same words", name="f", type="ValueError"), site("same words", name="g", type="TypeError")]
    index = index_of({"vllm 0.9.0": sites, "vllm 0.10.0": [site("same words", name="h", type="KeyError")]})
    assert find(index, "same words", type="TypeError", vllm="0.9.0").site.function == "g"
    assert find(index, "same words", type="x.ValueError", vllm="0.9.0").site.function == "f"
    assert find(index, "same words", type="ValueError", vllm="0.10.0").site.function == "h"
    assert find(index, "same words", at(10, "f"), type="TypeError", vllm="0.9.0").site.function == "f"
    assert find(index, "same words", type="AnotherError").row.template == "same words"


def test_vllm_wins_over_lmcache_where_nothing_else_tells() -> None:
    index = index_of({"vllm 0.9.0": [site("same words")], "lmcache 0.3.0": [site("same words", file="lmcache/a.py")]})
    assert find(index, "same words").site.project == "vllm"
    assert find(index, "same words", at(10, "check", "lmcache/a.py")).site.project == "lmcache"
    assert find(index, "same words", lmcache="0.3.0").site.project == "lmcache"


def test_a_match_says_whether_a_frame_agrees() -> None:
    match = find(INDEX, FILLED)
    assert agrees(match, at(999))
    assert not agrees(match, at(5, "other"))
    assert not agrees(match, at(5, "check", "vllm/b.py"))


def test_all_rows_that_fit_the_best_first() -> None:
    index = index_of({"vllm 0.9.0": [site("value {x}"), site("value {x} is bad"), site("value {x} is {y}", type="OSError"), site("other")]})
    matches = index.find_all("a.b.OSError", "value 1 is bad", {})
    assert [match.row.template for match in matches] == ["value {x} is bad", "value {x} is {y}", "value {x}"]
    assert [match.rank[5] for match in matches] == [False, True, False]
    assert len(rows_in(index.catalog)) == 4


def test_a_message_broken_off_early_is_told_by_its_line() -> None:
    index = index_of({"vllm 0.9.0": [site("Cannot find any of {keys} in the config", line=187)]})
    ran = {"vllm": "0.9.0"}
    match = index.find("ValueError", "Cannot find any of ['adap", at(187), ran)
    assert match is not None
    assert match.confidence == PROBABLE
    assert index.find("ValueError", "Cannot find any of ['adap", at(188), ran) is None
    assert index.find("ValueError", "something else", at(187), ran) is None
