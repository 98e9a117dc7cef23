"""What a command was asked to do: one immutable value, made by the CLI, read by everything behind it."""

from __future__ import annotations

from typing import NamedTuple


class ScanConfig(NamedTuple):
    """The arguments of `lmdiag scan`."""

    paths: tuple[str, ...]
    format: str = "text"
    """text, markdown or jsonl."""
    rules: tuple[str, ...] = ()
    """A site's own card directories; later ones win."""
    disabled: tuple[str, ...] = ()
    """Ids of cards that are not to be used."""
    rotated: bool = False
    """Read the rotated siblings of a named file too, oldest first."""
    fail_on: str = "warning"
    """The least severity for which the exit code is 1."""
    exit_zero: bool = False
    color: bool | None = None
    """None: as the terminal and NO_COLOR say."""
    width: int | None = None
    """Columns; None: the terminal's."""
    progress: bool = True
    verbose: bool = False
