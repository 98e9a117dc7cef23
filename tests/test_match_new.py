from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from catalog_samples import MODEL, index_of, site
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.errors import UsageError
from lmdiag.match.cards import load_card
from lmdiag.match.new import skeleton
from lmdiag.match.templates import Template

MESSAGE = (
    "ValueError: User-specified max_model_len (4096) is greater than the derived max_model_len "
    "(max_position_embeddings=2048 or model_max_length=None in model's config.json)."
)
TODO = {
    "title", "card.meaning", "card.trigger", "card.situations[0]", "card.solutions[0].text",
    "card.example.before", "card.example.after", "card.verify.text", "near_miss[0].log",
}  # fmt: skip


def test_what_varies_becomes_holes_and_the_sample_holds_the_message() -> None:
    card = tomllib.loads(skeleton(MESSAGE))
    assert card["match"] == [
        {
            "type": "ValueError",
            "message": "User-specified max_model_len ({max_model_len}) is greater than the derived max_model_len "
            "(max_position_embeddings={max_position_embeddings} or model_max_length=None in model's config.json).",
        }
    ]
    assert card["sample"] == [
        {"log": f"{MESSAGE}\n", "fields": {"max_model_len": "4096", "max_position_embeddings": "2048"}}
    ]


@pytest.mark.parametrize(
    ("message", "template"),
    [
        ("head size 24 and 48, not 96.", "head size {number} and {number_2}, not {number_3}."),
        ("got 'fp4' or \"int3\" for dtype", "got '{value}' or \"{text}\" for dtype"),
        ("no config.json in /srv/models/opt-1.3b here", "no config.json in {path} here"),
        ("one of ['a', 'b'] wanted", "one of [{list}] wanted"),
        ("see https://x.org/a?b=1 first", "see {url} first"),
        ("needs 16.25GiB, has {'a': 3}", "needs {number}GiB, has {{'{value}': {number_2}}}"),
        ("fp16 on cuda-12 with v2", "fp16 on cuda-12 with v2"),
    ],
)
def test_each_kind_of_value_has_its_hole(message: str, template: str) -> None:
    assert tomllib.loads(skeleton(message))["match"][0]["message"] == template


@pytest.mark.parametrize("message", [MESSAGE, "bare words\n  on lines, 'x' is {odd}", "it's ''' quoted \x1b[31m 5"])
def test_only_what_says_todo_is_left_to_do(tmp_path: Path, message: str) -> None:
    text = skeleton(message)
    name = text.split("<area>/", 1)[1].split(".toml", 1)[0]
    path = tmp_path / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    card, problems = load_card(str(path))
    assert card is None
    assert {problem.key: problem.message for problem in problems} == dict.fromkeys(TODO, "still says TODO")
    path.write_text(text.replace("TODO", "Done"), encoding="utf-8")
    assert load_card(str(path))[1] == ()


def test_the_suggested_name_is_made_of_the_first_words() -> None:
    assert "rules/<area>/the-models-max-seq-len.toml" in skeleton("The model's max seq len (131072) is larger")


@given(st.text(max_size=80))
def test_any_message_with_a_word_gives_valid_toml_whose_template_matches_it(message: str) -> None:
    card = tomllib.loads(skeleton("word " + message))
    template = Template(card["match"][0]["message"])
    assert template.match("word " + message) == tuple(card["sample"][0]["fields"].items())


@pytest.mark.parametrize("message", ["", "  \n", "12 34", "ValueError: 5"])
def test_a_message_without_a_word_is_refused(message: str) -> None:
    with pytest.raises(UsageError, match="no literal word"):
        skeleton(message)


# -- with the catalogue ------------------------------------------------------------------------------------------------------

LENGTH, LATER = "The length {n} is larger than {maxLen}", "The length {n} is larger than the {n}"
INDEX = index_of(
    {
        "vllm 0.9.0": [site(LENGTH, line=5), site("an {{odd}} word: {x}", line=7, name="odd")],
        "vllm 0.10.0": [site(LATER, line=8, type="VLLMValidationError", family="ValueError", validator=True)],
        "lmcache 0.3.0": [site("first line of it\n  and {rest}", line=3, file="lmcache/a.py", name="other")],
    }
)


def test_a_known_message_has_all_its_wordings_and_types() -> None:
    text = skeleton("ValueError: The length 5 is larger than the 9", INDEX)
    card = tomllib.loads(text)
    types = ["VLLMValidationError", "ValidationError", "ValueError"]
    assert card["match"] == [
        {"type": types, "message": "The length {n} is larger than the {n_2}"},
        {"type": types, "message": "The length {n} is larger than {maxlen}"},
    ]
    assert card["sample"][0]["fields"] == {"n": "5", "n_2": "9"}


def test_the_author_is_told_what_to_read() -> None:
    text = skeleton("The length 5 is larger than the 9", INDEX)
    assert "vllm 0.10.0 and later: check" in text
    assert "vllm 0.9.0: check" in text
    assert f"blob/v0.9.0/{MODEL}#L5" in text
    assert "raised_at" not in tomllib.loads(text)
    assert "[[raised_at]]" not in text


def test_the_type_of_a_bare_message_is_the_catalogues() -> None:
    card = tomllib.loads(skeleton("an {odd} word: 5", INDEX))
    assert card["match"] == [{"type": "ValueError", "message": "an {{odd}} word: {x}"}]
    assert card["sample"][0]["log"] == "ValueError: an {odd} word: 5\n"


def test_several_lines_are_one_template() -> None:
    card = tomllib.loads(skeleton("first line of it\n  and so on", INDEX))
    assert card["match"][0]["message"] == "first line of it and {rest}"


@pytest.mark.parametrize(
    "message",
    ["an entirely unknown message", "Worker failed: The length 5 is larger than the 9, sorry", "The length 5 is larg"],
    ids=["unknown", "inside of another", "cut off"],
)
def test_what_is_not_known_for_certain_is_made_from_the_message_alone(message: str) -> None:
    assert skeleton(message, INDEX) == skeleton(message)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_known_message_gives_valid_toml_whose_template_matches_it(one: str, two: str) -> None:
    message = f"The length {one} is larger than the {two}"
    card = tomllib.loads(skeleton(message, INDEX))
    fields = [fields for item in card["match"] if (fields := Template(item["message"]).match(message)) is not None]
    assert fields[0] == tuple(card["sample"][0]["fields"].items())


def test_what_is_left_to_do_is_the_same_with_a_catalogue(tmp_path: Path) -> None:
    text = skeleton("ValueError: The length 5 is larger than the 9", INDEX)
    path = tmp_path / "the-length-is-larger-than.toml"
    path.write_text(text, encoding="utf-8")
    assert {problem.key for problem in load_card(str(path))[1]} == TODO
    path.write_text(text.replace("TODO", "Done"), encoding="utf-8")
    assert load_card(str(path))[1] == ()
