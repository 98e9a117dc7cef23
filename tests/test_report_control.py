from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.report.control import clip, one_line, shorten, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1b]unterminated", "unterminated"),
        ("cut \x1b", "cut "),
        ("cut \x1b[31", "cut 31"),
        ("a\tb", "a    b"),
        ("10%\r20%", "10% 20%"),
        ("one\r\ntwo\nthree", "one\ntwo\nthree"),
        ("bell\x07 nul\x00 del\x7f", "bell nul del"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("bad \udcff byte", "bad \ufffd byte"),
    ],
)
def test_only_letters_reach_a_terminal(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_commands_a_terminal_is_left(text: str) -> None:
    shown = visible(text)
    assert not [char for char in shown if ord(char) < 32 and char != "\n"]
    assert not [char for char in shown if 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    assert visible(shown) == shown


def test_one_line_has_no_newline() -> None:
    assert one_line("a\r\nb\x0bc") == "a b c"


def test_shortened_text_says_how_much_is_missing() -> None:
    text = shorten("a" * 8000 + "z" * 2000, 1000)
    assert text.startswith("a" * 800 + " … [9,000 characters left out] … z")
    assert text.endswith("z" * 200)
    assert shorten("short", 5) == "short"


def test_clipped_text_keeps_the_limit() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"


@pytest.mark.parametrize("start", ["\x1b]", "\x1b[", "\x9d", "\x90a", "\x9b0", "\x1bP\x9d"])
def test_many_unterminated_sequences_cost_no_quadratic_time(start: str) -> None:
    """Half a million of them would otherwise take minutes, and the suite would not end."""
    assert set(visible(start * 500_000)) <= set("a0")
