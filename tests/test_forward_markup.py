from __future__ import annotations

import pytest

from lmdiag.forward.markup import TICK, marked
from lmdiag.forward.sinks.discord import MARKUP as DISCORD
from lmdiag.forward.sinks.slack import MARKUP as SLACK
from lmdiag.report.layout import Block, Span


@pytest.mark.parametrize(
    ("block", "slack", "discord"),
    [
        (Block("heading", (Span("What to change"),)), "*What to change*", "**What to change**"),
        (Block("field", (Span("a*b"),), "my_label"), "*my_label*: a∗b", r"**my\_label**: a\*b"),
        (Block("field", (Span("b"),), "a\n*"), "*a ∗*: b", r"**a \***: b"),
        (Block("field", (Span("more"),), ""), "more", "more"),
        (Block("item", (Span("one"),), "-"), "• one", "- one"),
        (Block("item", (Span("one"),), "1."), "1. one", "1. one"),
        (Block("log", (Span("a < b"), Span("```c"))), f"```\na &lt; b\n{TICK * 3}c\n```", f"```\na < b\n{TICK * 3}c\n```"),
        (Block("paragraph", (Span("a`b", "log"),)), f"`a{TICK}b`", f"`a{TICK}b`"),
        (Block("paragraph", (Span("https://x.example/y", "url"),)), "<https://x.example/y>", "<https://x.example/y>"),
        (Block("paragraph", (Span("https://x.example/|y", "url"),)), "`https://x.example/|y`", "`https://x.example/|y`"),
        (Block("paragraph", (Span("javascript:x", "url"),)), "`javascript:x`", "`javascript:x`"),
        (Block("paragraph", (Span("the "), Span("x", "code"), Span("s, "), Span("  ", "raw"), Span("y", "raw"))), "the `x`\u200bs, `y`", "the `x`\u200bs, `y`"),
        (Block("paragraph", (Span("x", "code"), Span("y", "code"))), "`x`\u200b`y`", "`x`\u200b`y`"),
    ],
)  # fmt: skip
def test_blocks_in_each_markup(block: Block, slack: str, discord: str) -> None:
    assert marked([block], SLACK) == slack
    assert marked([block], DISCORD) == discord


def test_headings_stand_apart() -> None:
    blocks = [Block("text", (Span("a"),)), Block("heading", (Span("b"),)), Block("text", (Span("c"),))]
    assert marked(blocks, SLACK) == "a\n\n*b*\nc"
