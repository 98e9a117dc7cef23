from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from shapes import raised
from test_match_cards import GOOD

from lmdiag import library_commands
from lmdiag.card_checks import check
from lmdiag.errors import LmdiagError, UsageError
from lmdiag.match.library import open_library
from lmdiag.scan import warn

PLAIN: bool | None = False
"""No colour."""

MESSAGE = "serde abc of 3 is not naive"
# The card of test_match_cards, but raised anywhere.
CARD = GOOD.replace('raised_in = ["adapter.py:_init"]\n', "")


@pytest.fixture
def rules(tmp_path: Path) -> list[str]:
    (tmp_path / "site-serde.toml").write_text(CARD, encoding="utf-8")
    return [str(tmp_path)]


def printed(command: Callable[[io.StringIO], int]) -> tuple[int, str]:
    out = io.StringIO()
    return command(out), out.getvalue()


def explain(message: str, rules: list[str], style: str = "text") -> tuple[int, str]:
    return printed(lambda out: library_commands.explain(message, open_library(rules), style, PLAIN, 100, out, io.StringIO()))


ASKED = {
    "an exception's line": f"ValueError: {MESSAGE}",
    "a bare message": MESSAGE,
    "a message with blanks around it": f"  {MESSAGE}\n",
    "a traceback": raised("", "ValueError", MESSAGE),
    "a traceback with CRLF": raised("", "ValueError", MESSAGE, "\r\n"),
    "a record": f"ERROR 05-06 01:55:26 [core.py:383] ValueError: {MESSAGE}",
    "a traceback in records": raised("(EngineCore pid=7) ERROR 05-06 01:55:26 [core.py:383] ", "ValueError", MESSAGE),
}


@pytest.mark.parametrize("message", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("style", ["text", "markdown", "jsonl"])
def test_a_pasted_error_gets_its_card(message: str, style: str, rules: list[str]) -> None:
    code, text = explain(message, rules, style)
    assert code == 0
    assert "LMCache: only the naive serde" in text
    assert "Set it." in text


def test_the_fields_are_in_the_advice(rules: list[str]) -> None:
    (line,) = explain(MESSAGE, rules, "jsonl")[1].splitlines()
    found = json.loads(line)
    assert (found["card"], found["fields"], found["confidence"]) == (
        "site-serde",
        {"serde": "abc", "total": "3"},
        "exact",
    )
    assert found["advice"][0]["change"]["--seed"] == "1.5"


def test_an_id_gets_its_card(rules: list[str]) -> None:
    assert explain("site-serde", rules) == printed(
        lambda out: library_commands.show("site-serde", open_library(rules), "text", PLAIN, 100, out)
    )


def test_an_exception_without_a_card_is_recognised(rules: list[str]) -> None:
    code, text = explain(raised("", "ValueError", "quite unknown words"), rules)
    assert code == 0
    assert "quite unknown words" in text


def test_what_nothing_fits_is_said_with_the_way_on(rules: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert library_commands.explain("good morning", open_library(rules), "jsonl", PLAIN, 100, out, err) == 1
    assert "lmdiag cards new -" in err.getvalue()
    assert out.getvalue() == ""  # a program reads it


def test_a_pasted_error_shows_no_outcome(rules: list[str]) -> None:
    (line,) = explain(f"ValueError: {MESSAGE}", rules, "jsonl")[1].splitlines()
    assert json.loads(line)["outcome"] == "unknown"


@pytest.mark.parametrize("message", ["", " \n"])
def test_nothing_is_no_message(message: str, rules: list[str]) -> None:
    with pytest.raises(UsageError):
        explain(message, rules)


def test_a_pasted_text_has_its_incidents(rules: list[str]) -> None:
    library = open_library(rules)
    assert [item.card for item in library_commands.diagnose_text(MESSAGE, library)] == ["site-serde"]
    assert library_commands.diagnose_text("good morning", library) == []


@pytest.mark.parametrize("style", ["text", "markdown", "jsonl"])
def test_the_list_has_a_line_for_each_card(style: str, rules: list[str]) -> None:
    code, text = printed(lambda out: library_commands.list_cards(open_library(rules), style, out))
    lines = text.splitlines()
    assert code == 0
    assert len(lines) == len(open_library(rules).pack.ids)
    assert [
        line
        for line in lines
        if "site-serde" in line and "critical" in line and "LMCache: only the naive serde" in line
    ]


def test_the_list_as_data(rules: list[str]) -> None:
    rows = [
        json.loads(line)
        for line in printed(lambda out: library_commands.list_cards(open_library(rules), "jsonl", out))[1].splitlines()
    ]
    assert {
        "id": "site-serde",
        "title": "LMCache: only the naive serde",
        "severity": "critical",
        "scope": "startup",
        "own": f"{rules[0]}/site-serde.toml",
    } in rows
    assert {row["own"] for row in rows if row["id"] != "site-serde"} == {None}
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_a_card_is_shown_whole(style: str, rules: list[str]) -> None:
    code, text = printed(lambda out: library_commands.show("site-serde", open_library(rules), style, PLAIN, 100, out))
    assert code == 0
    for part in ("LMCache: only the naive serde", "What it means.", "What fires it.", "One way there.", "Set it.", "Look.", "https://example.org/1"):  # fmt: skip
        assert part in text


def test_a_card_as_data(rules: list[str]) -> None:
    code, text = printed(lambda out: library_commands.show("site-serde", open_library(rules), "jsonl", PLAIN, 100, out))
    assert code == 0
    assert json.loads(text)["id"] == "site-serde"


def test_an_unknown_id_suggests_the_near_one(rules: list[str]) -> None:
    with pytest.raises(UsageError, match="site-serde"):
        library_commands.show("site-serd", open_library(rules), "text", PLAIN, 100, io.StringIO())


def test_an_unknown_id_without_a_near_one_says_where_to_look() -> None:
    with pytest.raises(UsageError, match="lmdiag cards list"):
        library_commands.show("0", open_library(), "text", PLAIN, 100, io.StringIO())


def test_a_new_card_begins_as_a_skeleton_that_the_check_knows_to_be_unfinished(tmp_path: Path) -> None:
    code, text = printed(
        lambda out: library_commands.new("ValueError: heads (12) must be divisible by 5", open_library(), out)
    )
    assert code == 0
    assert 'type = "ValueError"' in text
    (tmp_path / "new-card.toml").write_text(text, encoding="utf-8")
    code, found = printed(lambda out: check(str(tmp_path), out))
    assert code == 1
    assert "still says TODO" in found


def test_a_message_without_words_makes_no_card() -> None:
    with pytest.raises(LmdiagError):
        library_commands.new("17", open_library(), io.StringIO())


LAYERWISE = "layerwise MLA connector is not supported yet"


def test_a_new_card_says_what_the_catalogue_knows() -> None:
    code, text = printed(lambda out: library_commands.new(f"ValueError: {LAYERWISE}", open_library(), out))
    assert code == 0
    assert f'message = "{LAYERWISE}"' in text
    assert "# Raised at, after the catalogue" in text
    assert "vllm 0.11.1 and later: _init_lmcache_engine\n" in text


def test_a_new_card_without_a_catalogue_is_made_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lmdiag.match.library.shipped_directory", lambda: str(tmp_path))
    out, err = io.StringIO(), io.StringIO()
    library = open_library()
    assert library_commands.new(f"ValueError: {LAYERWISE}", library, out) == 0
    warn(library, 0, err)
    assert LAYERWISE in out.getvalue()
    assert "# Raised at" not in out.getvalue()
    assert "no catalogue can be read there" in err.getvalue()


def test_a_card_is_shown_with_the_places_of_the_catalogue() -> None:
    show = library_commands.show
    _, text = printed(lambda out: show("lmcache-mla-layerwise", open_library(), "text", PLAIN, 100, out))
    assert "lmcache/integration/vllm/vllm_adapter.py in init_lmcache_engine" in " ".join(text.split())
    _, data = printed(lambda out: show("lmcache-mla-layerwise", open_library(), "jsonl", PLAIN, 100, out))
    places = json.loads(data)["raised_at"]
    assert (places[0]["project"], places[0]["lines"]["0.14.0"]) == ("vllm", 508)


def test_a_card_is_shown_without_a_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lmdiag.match.library.shipped_directory", lambda: str(tmp_path))
    code, text = printed(lambda out: library_commands.show("lmcache-mla-layerwise", open_library(), "text", PLAIN, 100, out))
    assert code == 0
    assert "What to change" in text


FOREIGN = "The checkpoint you are trying to load has model type `abc` but Transformers does not recognize this architecture. Update it."


@pytest.mark.parametrize("style", ["text", "markdown", "jsonl"])
def test_an_error_of_another_package_has_its_name_and_no_file(style: str) -> None:
    code, text = explain(f"ValueError: {FOREIGN}", [], style)
    assert code == 0
    if style == "jsonl":
        place = json.loads(text)["raised_at"]
        assert (place["project"], place["file"], place["told_by"]) == ("transformers", None, "words")
    else:
        assert " ".join(text.replace("*", "").replace(":", "").split()).count("Raised by transformers") == 1


def test_a_bare_message_that_only_the_catalogue_knows_is_explained() -> None:
    out, err = io.StringIO(), io.StringIO()
    code = library_commands.explain("Mooncake is not available", open_library(), "jsonl", None, None, out, err)
    incident = json.loads(out.getvalue())
    assert code == 0
    assert incident["root"]["type"] == "RuntimeError"
    assert incident["raised_at"]["project"] == "vllm"
