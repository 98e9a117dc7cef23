from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.parse.clean import clean

PREFIXED = "(EngineCore_DP0 pid=7) ERROR 01-26 09:25:37 [core.py:935] text"
CASES = {
    "plain": (PREFIXED, [PREFIXED]),
    "empty": ("", [""]),
    "only blanks": ("    ", ["    "]),
    "colours of 0.26": ("\x1b[0;36m(EngineCore_DP0 pid=7)\x1b[0;0m \x1b[31mERROR\x1b[0m \x1b[90m01-26 09:25:37\x1b[0m \x1b[90m[core.py:935]\x1b[0m text", [PREFIXED]),
    "colours of LMCache": ("\x1b[32;20m[2026-02-24 23:14:43,998] LMCache INFO:\x1b[0m text \x1b[3m(file.py:172:lmcache.v1.x)\x1b[0m", ["[2026-02-24 23:14:43,998] LMCache INFO: text (file.py:172:lmcache.v1.x)"]),
    "caret text": ("^[[0;36m(EngineCore_DP0 pid=7)^[[0;0m ERROR 01-26 09:25:37 [core.py:935] text", [PREFIXED]),
    "replacement characters": ("\ufffd[1;36m(EngineCore_DP0 pid=7)\ufffd[0;0m ERROR 01-26 09:25:37 [core.py:935] text", [PREFIXED]),
    "a colour whose escape is lost": ("[1;36m(EngineCore_DP0 pid=7) ERROR 01-26 09:25:37 [core.py:935] text", [PREFIXED]),
    "a window title": ("\x1b]0;vllm serve\x07INFO: x", ["INFO: x"]),
    "a link": ("\x1b]8;;https://a.b\x1b\\INFO\x1b]8;;\x1b\\: x", ["INFO: x"]),
    "cursor movements": ("\x1b[2K\x1b[1A\x1b[?25hINFO: x", ["INFO: x"]),
    "control bytes": ("a\x00b\x07c\x08d\x7fe\x0bf", ["abcdef"]),
    "a tab stays": ("2025-01-22 14:32:19,671\tINFO worker.py:1540 -- x", ["2025-01-22 14:32:19,671\tINFO worker.py:1540 -- x"]),
    "carriage return at the end": (PREFIXED + "\r", [PREFIXED]),
    "two of them, under a pty": (PREFIXED + "\r\r", [PREFIXED]),
    "a progress bar glued to a record": ("\rLoading:  50%|█████     | 1/2\r" + PREFIXED, ["Loading:  50%|█████     | 1/2", PREFIXED]),
    "HTML escapes": ("  File &quot;/a/x.py&quot;, line 1, in &lt;module&gt;", ['  File "/a/x.py", line 1, in <module>']),
    "HTML apostrophes": ("ValueError: can&#39;t &amp; won&#x27;t", ["ValueError: can't & won't"]),
    "HTML inside JSON": ('{"log":"say &quot;x&quot;\\n"}', ['{"log":"say &quot;x&quot;\\n"}']),
    "an ampersand in a URL": ("GET /x?a=1&b=2&lt=3", ["GET /x?a=1&b=2&lt=3"]),
    "escaped newlines stay escaped": (r"prompt: 'a\nTraceback (most recent call last):\n'", [r"prompt: 'a\nTraceback (most recent call last):\n'"]),
    "other scripts": ("模型 не найдена 🚀", ["模型 не найдена 🚀"]),
    "an index is no colour": ("x[3] y[1;2] [12] z", ["x[3] y[1;2] [12] z"]),
    "a list of metres is no colour": ("sizes[1;36m]", ["sizes[1;36m]"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pieces"), CASES.values(), ids=CASES)
def test_what_is_readable_is_left(text: str, pieces: list[str]) -> None:
    assert clean(text) == pieces


@given(st.text())
@settings(deadline=None)
def test_any_text_comes_out_without_control_bytes(text: str) -> None:
    pieces = clean(text)
    assert not any(ord(char) < 32 and char not in "\t\n" for piece in pieces for char in piece)
    assert sum(map(len, pieces)) <= len(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="&[")))
@settings(deadline=None)
def test_text_without_control_bytes_is_left_as_it_is(text: str) -> None:
    assert clean(text) == [text]


@given(
    st.lists(
        st.text(st.characters(categories=["L", "N", "Zs", "Po"], exclude_characters="&")).filter(str.strip), min_size=1
    )
)
@settings(deadline=None)
def test_each_rewriting_of_a_line_is_a_piece(rewritings: list[str]) -> None:
    assert clean("\r".join(rewritings)) == rewritings


@given(
    st.text(st.characters(categories=["L", "N"])),
    st.sampled_from(("\x1b[31m", "\x1b[0;36m", "\x1b[0m", "\x1b[1;38;5;9m")),
)
@settings(deadline=None)
def test_a_colour_takes_no_text_with_it(text: str, colour: str) -> None:
    assert clean(colour + text + colour) == [text]
