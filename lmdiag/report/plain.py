"""Blocks as plain text: for a pipe, a file, a ticket, or a terminal without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.report.layout import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmdiag.report.layout import Block


def render_plain(blocks: Sequence[Block], width: int) -> str:
    """Render blocks as lines of at most `width` cells (code and URLs may be wider), each with its newline."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lay_out(blocks, width))
