from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_samples import CARD, HIDDEN, MATCHED, REQUEST, SUMMARY, UNMATCHED, URL, cards, with_message

from lmdiag.model import Advice
from lmdiag.report.markdown import escaped, fenced, inline_code, render_markdown

HOSTILE = (
    "```\n# heading\n<b>html</b> & @everyone #12 | [link](http://x.example) ![i](y) `a` ~~~ {code} *b* \x1b[31m\u202e"
)


def html(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).render(text))


def test_a_report_renders_as_headings_lists_and_code() -> None:
    text = render_markdown([REQUEST, UNMATCHED, MATCHED, HIDDEN], SUMMARY, cards)
    shown = html(text)
    assert shown.startswith(f"<h2>CRITICAL  start failed  {CARD.title}</h2>")
    assert "<h3>What to change</h3>\n<ol>\n<li>\n<p>Set <code>use_layerwise</code>" in shown
    assert '<pre><code class="language-text">- use_layerwise: true  # LMCache YAML\n+ use_layerwise: false  # LMCache YAML\n</code></pre>\n</li>' in shown
    assert f'<a href="{URL}">' in shown
    assert text.endswith("\n")


@pytest.mark.parametrize("message", [HOSTILE, "`" * 9 + "\n" + HOSTILE * 50])
def test_text_of_a_log_starts_nothing(message: str) -> None:
    hostile = with_message(message)
    text = render_markdown([hostile, hostile._replace(scope="request")], SUMMARY, cards)
    shown = html(text)
    outside = re.sub(r"<code.*?</code>", "", shown, flags=re.DOTALL)
    assert "<b>" not in shown
    assert "<img" not in shown
    assert "x.example" not in " ".join(re.findall(r'href="([^"]*)"', shown))
    assert not re.search(r"@\w|#\d", outside)
    assert "<h1>" not in shown
    assert not set("\x1b\u202e") & set(text)


def test_advice_with_captured_text_starts_nothing() -> None:
    advice = Advice("Use <i>x</i> @ops, see #9 | [a](http://y.example).", (), "safe")
    shown = html(render_markdown([MATCHED._replace(advice=(advice,))], SUMMARY, cards))
    assert "&lt;i&gt;x&lt;/i&gt; @\u200bops, see #\u200b9 | [a](http://y.example)." in shown


@given(st.text(min_size=1, max_size=40))
def test_inline_code_holds_any_text(text: str) -> None:
    from lmdiag.report.control import one_line

    want = one_line(text).strip()
    shown = html("x " + inline_code(text))
    code = re.search(r"<code>(.*?)</code>", shown, flags=re.DOTALL)
    assert (code is not None) == bool(want)
    if code:
        plain = code[1].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
        assert plain == want


@given(st.lists(st.text(alphabet="`~ a\n#", max_size=12), max_size=5))
def test_a_fence_is_never_closed_from_inside(lines: list[str]) -> None:
    shown = html("\n".join([*fenced(lines), "", "after"]))
    assert shown.endswith("</code></pre>\n<p>after</p>\n")
    assert shown.count("<pre>") == 1


@given(st.text(max_size=60))
def test_escaped_prose_is_one_paragraph_without_tags(text: str) -> None:
    shown = html("x" + escaped(text))
    assert re.findall(r"<[^>]*>", shown) == ["<p>", "</p>"]


@pytest.mark.parametrize("text", ["# a", "- a", "+ a", "1. a", "1) a", "> a", "=== ", "--- ", "| a | b |"])
def test_no_escaped_line_starts_a_block(text: str) -> None:
    assert re.findall(r"<(\w+)", html(escaped(text))) == ["p"]
