from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag.errors import CardError
from lmdiag.match.cards import load_cards
from lmdiag.match.index import build_index
from lmdiag.match.pack import INDEX, load_pack, main, shipped_directory
from lmdiag.model import MatchRule

CARD = """
title = "{title}"
severity = "error"
scope = "runtime"
aliases = ["{alias}"]
[match]
type = "ValueError"
message = "{message}"
[card]
meaning = "What it means."
trigger = "What fires it."
situations = ["One way there."]
[[card.solutions]]
text = "Set it."
risk = "safe"
[[sample]]
log = "ValueError: {message}"
[[near_miss]]
log = "INFO nothing"
"""


def write(directory: Path, name: str, title: str = "A title", message: str = "some words") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.toml").write_text(CARD.format(title=title, message=message, alias=f"old-{name}"))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    write(tmp_path / "rules" / "z", "first-card", message="first words")
    write(tmp_path / "rules" / "a", "second-card", title="Zweite Karte – ü")
    return tmp_path / "rules"


@pytest.mark.parametrize("indexed", [True, False])
def test_a_pack_is_the_same_with_and_without_an_index(rules: Path, *, indexed: bool) -> None:
    assert not indexed or main([str(rules)]) == 0
    pack = load_pack(shipped=str(rules))
    assert (rules / INDEX).exists() is indexed
    assert pack.problems == ()
    assert pack.ids == ("first-card", "second-card")
    assert pack.headers["second-card"] == ("Zweite Karte – ü", "error", "runtime")
    assert pack.rules[0] == MatchRule("first-card", "first words", ("ValueError",))
    assert pack.card("second-card").solutions[0].text == "Set it."
    assert pack.card("old-second-card") is pack.card("second-card")


def test_with_an_index_no_file_of_a_card_is_read(rules: Path) -> None:
    main([str(rules)])
    whole = load_cards(str(rules))[0]
    (rules / "z" / "first-card.toml").write_text("broken")
    pack = load_pack(shipped=str(rules))
    assert pack.problems == ()
    assert {pack.card(card.id) for card in whole} == set(whole)


def test_a_card_that_the_index_no_longer_has_is_read_from_its_file(rules: Path) -> None:
    main([str(rules)])
    pack = load_pack(shipped=str(rules))
    (rules / INDEX).unlink()
    assert pack.card("first-card").solutions[0].text == "Set it."
    (rules / "a" / "second-card.toml").write_text("broken")
    (rules / INDEX).write_bytes(b"x" * 5000)
    with pytest.raises(CardError, match=r"second-card\.toml: is not TOML"):
        pack.card("second-card")


def test_a_site_card_replaces_the_shipped_one_of_its_id(rules: Path, tmp_path: Path) -> None:
    main([str(rules)])
    write(tmp_path / "site", "first-card", title="Ours", message="other words")
    write(tmp_path / "more", "third-card")
    pack = load_pack([str(tmp_path / "site"), str(tmp_path / "more")], shipped=str(rules))
    assert pack.ids == ("first-card", "second-card", "third-card")
    assert pack.headers["first-card"][0] == pack.card("first-card").title == "Ours"
    assert [rule.message for rule in pack.rules if rule.card == "first-card"] == ["other words"]


def test_bad_site_cards_and_directories_are_problems_but_not_fatal(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "bad-card.toml").write_text("title = 1")
    pack = load_pack([str(tmp_path / "site"), str(tmp_path / "none")], shipped=str(rules))
    assert pack.ids == ("first-card", "second-card")
    assert any(problem.path.endswith("bad-card.toml") and problem.key == "title" for problem in pack.problems)
    assert pack.problems[-1].path.endswith("none")


@pytest.mark.parametrize("content", ["", "[]", "[2, 1, 0]\n", "[3, 5, 2]\n{}", "\udc80"])
def test_an_unusable_index_is_said_and_the_cards_are_read(rules: Path, content: str) -> None:
    (rules / INDEX).write_bytes(content.encode("utf-8", "surrogateescape"))
    pack = load_pack(shipped=str(rules))
    assert pack.ids == ("first-card", "second-card")
    (problem,) = pack.problems
    assert "makes it again" in problem.message


def test_no_index_is_written_over_a_bad_card(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(rules, "third-card", title="")
    assert main([str(rules)]) == 1
    assert not (rules / INDEX).exists()
    assert "third-card.toml: title: is empty" in capsys.readouterr().err


def test_an_unknown_card_is_an_error(rules: Path) -> None:
    with pytest.raises(CardError, match="no card 'nothing'"):
        load_pack(shipped=str(rules)).card("nothing")


def test_the_shipped_cards_are_found() -> None:
    assert list(Path(shipped_directory()).glob("*/*.toml"))


def test_cards_are_disabled_by_a_file_or_by_name(rules: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "own-card")
    (site / "disabled").write_text("# not ours\nsecond-card  # noise\n\nfirst-crad\n")
    pack = load_pack([str(site)], disabled=["old-own-card"], shipped=str(rules))
    assert pack.ids == ("first-card",)
    assert [(problem.path, problem.message) for problem in pack.problems] == [
        (str(site / "disabled"), "to be disabled, but there is no card 'first-crad'; did you mean 'first-card'?")
    ]


def test_a_list_of_disabled_cards_that_cannot_be_read_loses_nothing(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "disabled").write_bytes(b"\xff")
    pack = load_pack([str(tmp_path)], shipped=str(rules))
    assert pack.ids == ("first-card", "second-card")
    assert "cannot be read" in pack.problems[0].message


def test_the_cards_of_a_site_have_their_paths(rules: Path, tmp_path: Path) -> None:
    main([str(rules)])
    write(tmp_path / "site", "second-card")
    assert load_pack([str(tmp_path / "site")], shipped=str(rules)).own == {
        "second-card": str(tmp_path / "site" / "second-card.toml")
    }


def test_an_index_that_names_no_card_is_not_believed(rules: Path) -> None:
    (rules / INDEX).write_text(build_index((), str(rules)).decode())
    pack = load_pack(shipped=str(rules))
    assert pack.ids == ("first-card", "second-card")
    assert "it names no card" in pack.problems[0].message
