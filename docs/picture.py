"""Prints the README's picture: the report on a real log, as the SVG that rich exports."""

from __future__ import annotations

import io
import re
import sys

from rich.console import Console
from rich.text import Text

from lmdiag.config import ScanConfig
from lmdiag.scan import scan

WIDTH = 104
LINES = 46
"""The picture shows the head of the report; the rest is the example, the evidence and the references."""


def main() -> None:
    """Scan the log named on the command line and print the SVG."""
    out = io.StringIO()
    scan(ScanConfig(paths=(sys.argv[1],), color=True, width=WIDTH), out, sys.stderr)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text(f"$ lmdiag scan {sys.argv[1]}", style="bold"))
    for line in out.getvalue().splitlines()[:LINES]:
        console.print(Text.from_ansi(line), no_wrap=True)
    svg = console.export_svg(title="lmdiag", unique_id="lmdiag")
    print(re.sub(r"\s*@font-face \{.*?\n    \}", "", svg, flags=re.DOTALL))  # noqa: T201 - fonts from elsewhere are not loaded


if __name__ == "__main__":
    main()
