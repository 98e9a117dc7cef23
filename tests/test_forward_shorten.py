from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lmdiag.forward.shorten import cut_block, fitted, line_within, utf16, within
from lmdiag.report.layout import Block, Span

KINDS = ("heading", "paragraph", "item", "code", "log", "message", "field")
BLOCKS = st.lists(
    st.builds(lambda kind, texts: Block(kind, tuple(map(Span, texts))), st.sampled_from(KINDS), st.lists(st.text("ab c", max_size=120), min_size=1, max_size=5)),
    max_size=12,
)  # fmt: skip


def size(blocks: Sequence[Block]) -> int:
    return sum(len(span.text) + 1 for block in blocks for span in block.spans)


def note(left_out: Sequence[Block]) -> Block:
    return Block("paragraph", (Span(f"{len(left_out)} left out"),))


def said(block: Block) -> str:
    return " ".join(span.text for span in block.spans)


@given(blocks=BLOCKS, limit=st.integers(min_value=0, max_value=1500))
def test_what_comes_fits_and_is_the_beginning(blocks: list[Block], limit: int) -> None:
    got = fitted(blocks, note, lambda blocks: size(blocks) <= limit)
    if not got:
        return
    assert size(got) <= limit
    assert [block.kind for block in got[:-1]] == [block.kind for block in blocks[: len(got) - 1]]
    assert not got[:-1] or got[-2].kind != "heading" or got[:-1] == blocks


@given(blocks=BLOCKS)
def test_nothing_is_touched_that_fits(blocks: list[Block]) -> None:
    assert fitted(blocks, note, lambda _: True) == [*blocks, note(())]


def test_items_and_code_are_whole_or_away() -> None:
    for kind in ("item", "code"):
        blocks = [Block("paragraph", (Span("first"),)), Block(kind, (Span("word " * 50),))]
        assert fitted(blocks, note, lambda blocks: size(blocks) <= 100) == [blocks[0], note(blocks[1:])]


def test_a_paragraph_is_cut_at_a_word() -> None:
    blocks = [Block("paragraph", (Span("first"),)), Block("paragraph", (Span("second words that go on and on " * 9),))]
    got = fitted(blocks, note, lambda blocks: size(blocks) <= 100)
    assert said(got[1]).endswith(" …")
    assert said(got[1]).removesuffix(" …").split()[-1] in said(blocks[1]).split()


def test_a_cut_never_ends_within_a_name() -> None:
    block = Block("paragraph", (Span("see "), Span("/a/long/path", "raw")))
    assert cut_block(block, 10).spans == (Span("see "), Span("…"))


def test_no_block_outgrows_its_place() -> None:
    for kind, expected in (("item", "… too long to be shown here"), ("code", "… too long to be shown here")):
        assert within(Block(kind, (Span("x" * 90),)), said, lambda text: len(text) <= 50) == expected
    text = within(Block("field", (Span("some words " * 20),)), said, lambda text: len(text) <= 50)
    assert 40 < len(text) <= 50
    assert text.endswith("…")


def test_the_longest_line_that_fits() -> None:
    got = line_within(lambda size: "*" * size, lambda text: text.replace("*", r"\*"), lambda text: len(text) <= 11, 20)
    assert got == r"\*" * 5


@given(st.text())
def test_utf16_counts_what_other_languages_count(text: str) -> None:
    assert utf16(text) == len(text) + sum(char > "\uffff" for char in text)


def test_a_lone_surrogate_counts_as_one() -> None:
    assert utf16("\ud800a") == 2
