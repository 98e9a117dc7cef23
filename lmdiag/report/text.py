"""Reports for a person: plain text, or the same lines in colour where a terminal wants them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from lmdiag.report.document import report_blocks
from lmdiag.report.layout import lay_out
from lmdiag.report.plain import render_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lmdiag.model import Card, Incident, Summary
    from lmdiag.report.layout import Block

TICKET_WIDTH = 100
"""The width where there is no terminal to ask."""

_NARROWEST = 40
_STYLES = {
    "critical": "bold white on red",
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "heading": "bold",
    "strong": "bold",
    "message": "bold",
    "label": "dim",
    "dim": "dim",
    "code": "cyan",
    "url": "blue",
}


def print_report(
    incidents: Iterable[Incident],
    summary: Summary,
    cards: Callable[[str], Card],
    *,
    file: TextIO,
    color: bool | None,
    width: int | None,
    verbose: bool,
) -> None:
    """Write the report to `file`. `color` and `width` (cells) None: as the file is a terminal and the environment say.

    Raises what `file.write` raises (BrokenPipeError on a closed pipe) and what `cards` raises.
    """
    print_blocks(report_blocks(incidents, summary, cards, verbose=verbose), file=file, color=color, width=width)


def print_blocks(blocks: Sequence[Block], *, file: TextIO, color: bool | None, width: int | None) -> None:
    """Write blocks to `file`, in colour or plain; plain does not import rich, which costs five interpreter starts."""
    columns = max(_NARROWEST, width if width is not None else width_of(file))
    if color if color is not None else wants_color(file):
        _print_rich(blocks, file, columns)
    else:
        file.write(_encodable(render_plain(blocks, columns), file))


def wants_color(file: TextIO) -> bool:
    """Whether `file` is a terminal that shows colours and nobody asked for none (no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print_rich(blocks: Sequence[Block], file: TextIO, width: int) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=file,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for line in lay_out(blocks, width):
        text = Text(no_wrap=True)
        for span in line:
            text.append(_encodable(span.text, file), _STYLES.get(span.style, ""))
        text.rstrip()
        console.print(text, soft_wrap=True)


def width_of(file: TextIO) -> int:
    """Ask for the terminal's columns; `COLUMNS` overrides them (POSIX, "Environment Variables")."""
    if not file.isatty():
        return TICKET_WIDTH
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(file.fileno()).columns or TICKET_WIDTH
    except OSError:
        return TICKET_WIDTH


def _encodable(text: str, file: TextIO) -> str:
    """Replace characters that the file's encoding lacks: a report must not fail at "…" under LANG=C."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    return text if text.isascii() else text.encode(encoding, "replace").decode(encoding)
