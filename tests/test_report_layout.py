from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.report.layout import Block, Span, cells, lay_out, prose
from lmdiag.report.plain import render_plain


def paragraph(*spans: Span) -> list[Block]:
    return [Block("paragraph", spans)]


def test_prose_wraps_at_blanks_and_is_indented() -> None:
    assert render_plain(paragraph(Span("one two three four")), 14) == "    one two\n    three four\n"


def test_prose_stays_narrow_on_a_wide_terminal() -> None:
    lines = render_plain(paragraph(Span("word " * 100)), 200).splitlines()
    assert 90 < max(map(len, lines)) <= 100


def test_code_in_prose_is_never_broken() -> None:
    text = render_plain(paragraph(*prose("Run `kubectl logs --previous POD`, then look.")), 30)
    assert "    `kubectl logs --previous POD`,\n" in text


@pytest.mark.parametrize("token", ["https://example.org/" + "x" * 60, "/var/log/" + "y" * 60, "--" + "flag-" * 20])
def test_what_is_copied_stays_whole(token: str) -> None:
    assert token in render_plain(paragraph(Span(f"see {token} for more", "log")), 40)


def test_another_long_word_is_cut_at_the_edge() -> None:
    text = render_plain(paragraph(Span("x" * 100, "log")), 40)
    assert max(map(len, text.splitlines())) == 40
    assert text.replace(" ", "").replace("\n", "") == "x" * 100


def test_code_keeps_its_lines() -> None:
    long = "--flag " * 30
    assert long.rstrip() in render_plain([Block("code", (Span(long), Span("  indented")))], 40)


def test_fields_in_a_row_share_a_column() -> None:
    blocks = [Block("field", (Span("1"),), "a"), Block("field", (Span("2"),), "longer")]
    assert render_plain(blocks, 40) == "  a       1\n  longer  2\n"


def test_a_line_of_the_log_keeps_its_indentation() -> None:
    assert render_plain([Block("log", (Span('  File "x.py"', "log"),))], 40) == '      File "x.py"\n'


def test_wide_letters_count_twice() -> None:
    assert cells("世界") == 4
    assert cells("e\u0301") == 1
    lines = render_plain(paragraph(Span("世" * 40, "log")), 40).splitlines()
    assert [cells(line) for line in lines] == [40, 40, 12]


@given(st.lists(st.text(max_size=30), max_size=8), st.sampled_from(["", "log", "dim"]), st.integers(40, 120))
def test_no_letter_is_lost_and_no_line_too_wide(texts: list[str], style: str, width: int) -> None:
    from lmdiag.report.control import one_line

    spans = tuple(Span(text, style) for text in texts)
    shown = render_plain([Block("paragraph", spans)], width)
    assert "".join(shown.split()) == "".join("".join(one_line(text) for text in texts).split())
    for line in shown.splitlines():
        assert cells(line) <= width or any(sign in line for sign in ("/", "--"))


def test_a_label_longer_than_its_column_stands_apart_from_its_value() -> None:
    blocks = [Block("field", (Span("False"),), "disable_hybrid_kv_cache_manager" * 2)]
    (line,) = lay_out(blocks, 200)
    assert "".join(span.text for span in line).split() == ["disable_hybrid_kv_cache_manager" * 2, "False"]
