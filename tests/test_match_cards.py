from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag.match.cards import Problem, load_card, load_cards
from lmdiag.model import MatchRule, RaiseSite, Sample, Solution

GOOD = """
title = "LMCache: only the naive serde"
severity = "critical"
scope = "startup"
tags = ["lmcache"]
aliases = ["old-name"]
[[match]]
type = "ValueError"
message = "serde {serde} of {total} is not naive"
raised_in = ["adapter.py:_init"]
[[raised_at]]
project = "vllm"
file = "vllm/adapter.py"
function = "_init"
lines = { "0.11.1" = 458, "0.13.0" = 465 }
last = "0.20.0"
[card]
meaning = "What it means."
trigger = "What fires it."
situations = ["One way there."]
references = ["https://example.org/1"]
[[card.solutions]]
text = "Set it."
change = { "lmcache.remote_serde" = "naive", "--seed" = "{total * 0.5}", "--json" = '{"a": {"b": 1}}' }
risk = "safe"
unless = "vllm_version >= 0.11.1 or argument.enforce_eager == True or platform"
[card.example]
before = "a"
after = "b"
[card.verify]
text = "Look."
[[sample]]
log = "ValueError: serde a of 3 is not naive"
fields = { serde = "a", total = "3" }
[[near_miss]]
log = "ValueError: serde is naive"
"""


def write(directory: Path, name: str, text: str = GOOD) -> str:
    path = directory / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems_of(directory: Path, text: str) -> dict[str, str]:
    card, problems = load_card(write(directory, "some-card", text))
    assert (card is None) == bool(problems)
    return {problem.key: problem.message for problem in problems}


def test_a_good_card_is_loaded_whole(tmp_path: Path) -> None:
    path = write(tmp_path, "serde-card")
    card, problems = load_card(path)
    assert problems == ()
    assert card is not None
    assert (card.id, card.path, card.severity, card.aliases) == ("serde-card", path, "critical", ("old-name",))
    assert card.rules == (
        MatchRule("serde-card", "serde {serde} of {total} is not naive", ("ValueError",), ("adapter.py:_init",)),
    )
    assert card.raised_at == (
        RaiseSite("vllm", "vllm/adapter.py", "_init", (("0.11.1", 458), ("0.13.0", 465)), "0.20.0"),
    )
    assert card.solutions == (
        Solution(
            "Set it.",
            (("lmcache.remote_serde", "naive"), ("--seed", "{total * 0.5}"), ("--json", '{"a": {"b": 1}}')),
            "safe",
            "vllm_version >= 0.11.1 or argument.enforce_eager == True or platform",
        ),
    )
    assert (card.example_before, card.example_after, card.verify) == ("a", "b", "Look.")
    assert card.samples == (Sample("ValueError: serde a of 3 is not naive", (("serde", "a"), ("total", "3"))),)
    assert card.near_misses == (Sample("ValueError: serde is naive"),)


def test_one_match_table_and_a_list_of_types_are_allowed(tmp_path: Path) -> None:
    text = GOOD.replace("[[match]]", "[match]").replace('type = "ValueError"', 'type = ["ValueError", "OSError"]')
    card, problems = load_card(write(tmp_path, "a", text))
    assert problems == ()
    assert card is not None
    assert card.rules[0].types == ("ValueError", "OSError")


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ('scope = "startup"', 'skope = "startup"', "skope", "unknown key; did you mean 'scope'?"),
        ('scope = "startup"', "", "scope", "is missing; it must be a string"),
        ('type = "V', 'tipe = "V', "match[0].tipe", "unknown key; did you mean 'type'?"),
        ('risk = "safe"', 'riks = "safe"', "card.solutions[0].riks", "did you mean 'risk'?"),
        ('after = "b"', 'aftre = "b"', "card.example.aftre", "did you mean 'after'?"),
        ('meaning = "What it means."', "meaning = 3", "card.meaning", "must be a string, not a whole number"),
        ('tags = ["lmcache"]', 'tags = "lmcache"', "tags", "must be a list of strings, not a string"),
        ('tags = ["lmcache"]', "tags = [true]", "tags[0]", "must be a string, not true or false"),
        ('type = "ValueError"', "type = 5", "match[0].type", "must be a string or a list of strings, not a whole number"),
        ('type = "ValueError"', 'type = "a.ValueError"', "match[0].type", "without its module"),
        ('"0.11.1" = 458', '"0.11.1" = "458"', "raised_at[0].lines.0.11.1", "must be a whole number, not a string"),
        ('"0.11.1" = 458', '"v-1" = 458', "raised_at[0].lines.v-1", "is not a version"),
        ('"{total * 0.5}"', "5", "card.solutions[0].change.--seed", "must be a string in quotes, not a whole number"),
        ('"lmcache.remote_serde"', '"remote serde"', "card.solutions[0].change.remote serde", "is not a flag"),
        ("critical", "critcal", "severity", "did you mean 'critical'?"),
        ('risk = "safe"', 'risk = "Safe"', "card.solutions[0].risk", "did you mean 'safe'?"),
        ("{serde} of", "{serde of", "match[0].message", "bad template: column 7: '{' has no partner"),
        ("{total * 0.5}", "{totl * 0.5}", "card.solutions[0].change.--seed", "no message has a hole 'totl'; did you mean 'total'?"),
        ("{total * 0.5}", "{total ** 2}", "card.solutions[0].change.--seed", "cannot be computed"),
        ('total = "3" }', 'tots = "3" }', "sample[0].fields.tots", "no message has a hole 'tots'; did you mean 'total'?"),
        ("vllm_version >=", "vlm_version >=", "card.solutions[0].unless", "unknown fact 'vlm_version'; did you mean 'vllm_version'?"),
        ("vllm_version >=", "vllm_version =>", "card.solutions[0].unless", "unknown operator '=>'"),
        (">= 0.11.1", ">= new", "card.solutions[0].unless", "'new' is not a version"),
        ("vllm_version >= 0.11.1", "outcome == dead", "card.solutions[0].unless", "'dead' is not an outcome"),
        ("vllm_version >= 0.11.1", "", "card.solutions[0].unless", "'' is not a condition"),
        ("https://example", "http://example", "card.references[0]", "is not an https address"),
        ("only the naive serde", "x" * 80, "title", "has 89 characters; 80 are allowed"),
        ("What it means.", " TODO: write", "card.meaning", "still says TODO"),
        ("What it means.", "  ", "card.meaning", "is empty"),
        ('["One way there."]', "[]", "card.situations", "is empty; give at least one"),
        ("adapter.py:_init", "adapter._init", "match[0].raised_in[0]", "is not a place"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_its_key(tmp_path: Path, old: str, new: str, key: str, message: str) -> None:
    assert GOOD.count(old) >= 1
    assert message in problems_of(tmp_path, GOOD.replace(old, new))[key]


@pytest.mark.parametrize("section", ["sample", "near_miss"])
def test_a_card_needs_samples_and_near_misses(tmp_path: Path, section: str) -> None:
    without = "[[".join(part for part in GOOD.split("[[") if not part.startswith(section))
    assert problems_of(tmp_path, without) == {section: "is missing; it must be a list of tables ([[…]])"}
    assert "is empty" in problems_of(tmp_path, f"{section} = []\n{without}")[section]


def test_five_solutions_are_too_many(tmp_path: Path) -> None:
    extra = '[[card.solutions]]\ntext = "a"\nrisk = "safe"\n'
    assert problems_of(tmp_path, GOOD.replace("[card.example]", extra * 4 + "[card.example]")) == {
        "card.solutions": "has 5 entries; 4 are allowed"
    }


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    text = GOOD.replace("critical", "bad").replace("https:", "http:").replace("{serde}", "{}")
    assert set(problems_of(tmp_path, text)) == {"severity", "card.references[0]", "match[0].message"}
    assert len(problems_of(tmp_path, "")) == 7


def test_a_syntax_error_has_line_and_column(tmp_path: Path) -> None:
    (problem,) = load_card(write(tmp_path, "a", 'title = "x"\nscope = = 3\n'))[1]
    assert problem.path.endswith("a.toml")
    assert "line 2, column 9" in problem.message


def test_unreadable_files_are_problems_too(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'title = "\xe9"')
    assert load_card(str(latin))[1] == (Problem(str(latin), "", "is not UTF-8: byte 9 is 0xe9"),)
    assert "nested too deeply" in load_card(write(tmp_path, "deep", "a = " + "[" * 100_000))[1][0].message
    assert "No such file" in load_card(str(tmp_path / "none.toml"))[1][0].message
    assert "No such file" in load_cards(str(tmp_path / "none"))[1][0].message


def test_the_file_name_must_be_kebab_case(tmp_path: Path) -> None:
    (problem,) = load_card(write(tmp_path, "Serde_Card"))[1]
    assert (problem.key, "'Serde_Card' is not kebab-case" in problem.message) == ("", True)


def test_a_directory_gives_its_good_cards_and_the_problems_of_the_others(tmp_path: Path) -> None:
    write(tmp_path / "b", "good-card")
    write(tmp_path / "a", "bad-card", "title = 1")
    write(tmp_path / "c", "good-card")
    write(tmp_path / "..data", "hidden-card")
    related = GOOD.replace("references", 'related = ["good-crd", "bad-card", "other-pack", "related-card"]\nreferences')
    write(tmp_path / "d", "related-card", related.replace("old-name", "good-card"))
    cards, problems = load_cards(str(tmp_path), known=["other-pack"])
    assert [card.id for card in cards] == ["good-card", "related-card"]
    assert cards[0].path.endswith("b/good-card.toml")
    texts = [str(problem).removeprefix(str(tmp_path)) for problem in problems if "bad-card.toml" not in problem.path]
    assert texts == [
        f"/c/good-card.toml: the id 'good-card' is taken by {tmp_path}/b/good-card.toml; rename one of the files",
        "/d/related-card.toml: card.related[0]: there is no card 'good-crd'; did you mean 'good-card'?",
        "/d/related-card.toml: card.related[3]: names the card itself",
        "/d/related-card.toml: aliases[0]: 'good-card' is the id of a card",
    ]
