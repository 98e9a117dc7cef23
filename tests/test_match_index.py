from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest
from test_match_pack import write

from lmdiag.match.cards import load_cards
from lmdiag.match.index import Index, build_index
from lmdiag.match.matcher import Matcher
from lmdiag.match.pack import shipped_directory
from lmdiag.match.rulebook import Rulebook


@pytest.fixture
def rules(tmp_path: Path) -> str:
    write(tmp_path / "z", "first-card", message="first words of it")
    write(tmp_path / "a", "first", title="Zweite Karte – ü", message="{n} is not a size of it")
    write(tmp_path / "a", "first-card-b")
    return str(tmp_path)


def built(directory: str) -> bytes:
    return build_index(load_cards(directory)[0], directory)


def opened(data: bytes, directory: str) -> Index:
    file = BytesIO(data)
    file.name = "no-such-file"
    return Index(file, directory)


def checked(data: bytes) -> int:
    """How many bytes of an index the checksum is of, with it."""
    head = data.index(b"\n") + 1
    return head + int(json.loads(data[:head])[2])


def test_it_is_deterministic(rules: str) -> None:
    cards, _ = load_cards(rules)
    assert build_index(cards, rules) == build_index(reversed(cards), rules)


def test_it_has_a_line_for_each_rule_and_card(rules: str) -> None:
    words = Rulebook(list(opened(built(rules), rules).rules)).filing.words
    assert built(rules).count(b"\n") == 2 + len(words) + 1 + 3 + 3 + 3


def test_cards_are_found_by_their_whole_ids(rules: str) -> None:
    index = opened(built(rules), rules)
    assert [index.entry(name) == entry for name, entry in index.entries.items()] == [True] * 3
    assert list(index.entries) == ["first", "first-card", "first-card-b"]
    assert [index.entry(name) for name in ("", "firs", "first-", "first-card-", "zz")] == [None] * 5
    found = index.entry("first")
    assert found is not None
    assert found.header == ("Zweite Karte – ü", "error", "runtime")
    assert found.path == f"{rules}/a/first.toml"


@pytest.mark.parametrize("shipped", [True, False])
def test_rules_are_filed_as_those_in_memory_are(rules: str, *, shipped: bool) -> None:
    directory = shipped_directory() if shipped else rules
    index = opened(built(directory), directory)
    plain = Rulebook(list(index.rules))
    book = Rulebook(index.rules, index.filing)
    for word in (*plain.filing.words, "", "!", "zzz", "a", "\udc80", "ü"):
        assert book.some(index.filing.under(word)) == plain.some(plain.filing.under(word))
    assert {text: book.some(numbers) for text, numbers in index.filing.beginnings.items()} == {
        text: plain.some(numbers) for text, numbers in plain.filing.beginnings.items()
    }
    assert book.some(index.filing.silent) == plain.some(plain.filing.silent)
    assert book.some(index.filing.patterns) == plain.some(plain.filing.patterns)


def test_a_changed_byte_is_noticed(rules: str) -> None:
    whole = built(rules)
    for number in range(checked(whole)):
        data = bytearray(whole)
        data[number] ^= 1
        with pytest.raises((ValueError, KeyError, TypeError)):
            opened(bytes(data), rules)


def test_a_cut_is_noticed(rules: str) -> None:
    data = built(rules)
    for size in range(checked(data)):
        with pytest.raises((ValueError, KeyError, TypeError)):
            opened(data[:size], rules)


def test_the_shipped_cards_match_by_the_index_as_without_it() -> None:
    directory = shipped_directory()
    cards, _ = load_cards(directory)
    index = opened(build_index(cards, directory), directory)
    whole, lines = (
        Matcher(rule for card in cards for rule in card.rules),
        Matcher((), Rulebook(index.rules, index.filing)),
    )
    for rule in index.rules:
        for message in (rule.message, f"before {rule.message} behind", f"{rule.message[:60]}..."):
            assert lines.match(None, message, ()) == whole.match(None, message, ())
    assert [clue for card in sorted(cards, key=lambda card: card.id) for clue in card.clues] == index.clues


def test_rules_of_hidden_cards_are_not_used(rules: str) -> None:
    index = opened(built(rules), rules)
    assert Matcher((), Rulebook(index.rules, index.filing)).match(None, "first words of it", ()) is not None
    hidden = Rulebook(index.rules, index.filing, frozenset({"first-card"}))
    assert Matcher((), hidden).match(None, "first words of it", ()) is None
    assert "first-card" not in {rule.card for rule in hidden.shown(hidden.rules)}
