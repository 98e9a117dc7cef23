"""Reports that must not grow beyond what a service takes: shortened from the end, at whole blocks, lines and words."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from lmdiag.report.control import shorten
from lmdiag.report.layout import Block, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BRIEF_LIMIT = 300
_BRIEF_LINES = 4
_WORTH_IT = 24
"""Characters: a shorter rest of a block says nothing."""
_BRIEF = frozenset({"title", "message", "field"})
_CUT = frozenset({"message", "paragraph", "log"})
"""Kinds that may lose their end. Half of an item or of lines to copy could be a wrong advice."""
_SOLID = frozenset({"raw", "code", "url"})


def fitted(
    blocks: Sequence[Block], note: Callable[[Sequence[Block]], Block], fits: Callable[[Sequence[Block]], bool]
) -> list[Block]:
    """Return as many of the first blocks as fit, and a note on the others; [] if not even the first one fits.

    `note` makes the last block of those that are left out (none, perhaps); `fits` says whether a service would take
    such a list. The blocks must be in the order of their importance.
    """
    whole = [*blocks, note(())]
    if fits(whole):
        return whole
    brief = [_brief(block) for block in blocks]
    for count in range(len(brief), 0, -1):
        kept = _without_bare_heading(brief[:count])
        if fits([*kept, note(brief[len(kept) :])]):
            return _with_part(brief, kept, note, fits)
    return []


def cut_block(block: Block, size: int) -> Block:
    """Cut a block's text to about `size` characters, at a word where there is one; an ellipsis marks the cut."""
    spans: list[Span] = []
    for span in block.spans:
        if len(span.text) <= size:
            spans.append(span)
            size -= len(span.text)
            continue
        text = "" if span.style in _SOLID else _cut_text(span.text, size)
        return block._replace(spans=(*spans, Span(f"{text} …" if text else "…", span.style if text else "")))
    return block


def _with_part(
    blocks: list[Block],
    kept: list[Block],
    note: Callable[[Sequence[Block]], Block],
    fits: Callable[[Sequence[Block]], bool],
) -> list[Block]:
    """Add to the blocks that are kept as much of the next one as fits."""
    left_out = blocks[len(kept) :]
    heading = [block for block in left_out[:1] if block.kind == "heading"]
    following = left_out[len(heading) : len(heading) + 1]
    if not following or following[0].kind not in _CUT:
        return [*kept, note(left_out)]
    last = note(left_out[len(heading) + 1 :])

    def attempt(size: int) -> list[Block]:
        return [*kept, *heading, cut_block(following[0], size), last]

    sizes = range(_WORTH_IT, sum(len(span.text) for span in following[0].spans))
    fitting = bisect_left(sizes, x=True, key=lambda size: not fits(attempt(size)))
    return attempt(sizes[fitting - 1]) if fitting else [*kept, note(left_out)]


def _brief(block: Block) -> Block:
    """Shorten what a log wrote into the head of a report, so that it leaves room for what is to be done."""
    if block.kind not in _BRIEF:
        return block
    lines = block.spans[:_BRIEF_LINES] if block.kind == "message" else block.spans
    return block._replace(spans=tuple(span._replace(text=shorten(span.text, _BRIEF_LIMIT)) for span in lines))


def _without_bare_heading(blocks: list[Block]) -> list[Block]:
    while blocks and blocks[-1].kind == "heading":
        blocks = blocks[:-1]
    return blocks


def _cut_text(text: str, size: int) -> str:
    head = text[:size]
    word = head.rpartition(" ")[0] if text[size : size + 1].strip() else head
    return (word if len(word) > size // 2 else head).rstrip()


def within(block: Block, render: Callable[[Block], str], fits: Callable[[str], bool]) -> str:
    """Render one block so that it fits by itself: cut, or only mentioned where a part of it could do harm."""
    if fits(whole := render(block)):
        return whole
    if block.kind in _CUT | {"field"}:
        sizes = range(1, sum(len(span.text) for span in block.spans))
        if fitting := bisect_left(sizes, x=True, key=lambda size: not fits(render(cut_block(block, size)))):
            return render(cut_block(block, sizes[fitting - 1]))
    return render(Block("text", (Span("… too long to be shown here"),)))


def line_within(
    line: Callable[[int], str], render: Callable[[str], str], fits: Callable[[str], bool], limit: int
) -> str:
    """Render the longest line that fits; `line` makes one of at most so many characters, `limit` is where to begin."""
    return next((text for size in range(limit, 0, -1) if fits(text := render(line(size)))), "")


def utf16(text: str) -> int:
    """Count UTF-16 code units: what a service counts that does not count characters, and never less than those."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
