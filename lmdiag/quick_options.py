"""Reads the arguments of a plain `lmdiag scan` without argparse, which takes as long as half an interpreter's start.

Whatever is out of the ordinary (help, a mistake, an abbreviation, a rare flag) is left to `lmdiag.cli_parser`, which knows all.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from lmdiag.model import SEVERITIES

FORMATS = ("text", "markdown", "jsonl")
COLORS = ("auto", "always", "never")
_CHOICES = {"--format": FORMATS, "--fail-on": SEVERITIES, "--color": COLORS}
_TEXTS = ("--since", "--until", "--last")
_LISTS = ("--rules", "--disable")
_SWITCHES = {
    "--rotated": "rotated",
    "--exit-zero": "exit_zero",
    "--no-progress": "no_progress",
    "--verbose": "verbose",
    "-v": "verbose",
}


def quick_options(arguments: Sequence[str]) -> SimpleNamespace | None:
    """Return what argparse would, or None where it has to be asked."""
    if not arguments or arguments[0] != "scan":
        return None
    options = _defaults()
    rest = iter(arguments[1:])
    ended = False  # the paths; others further on would be a mistake
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            if ended:
                return None
            options["paths"].append(argument)
            continue
        ended = bool(options["paths"])
        if argument in _SWITCHES:
            options[_SWITCHES[argument]] = True
            continue
        name, equals, value = argument.partition("=")
        if not equals:
            value = next(rest, "-")
        if not _take(options, name, value, given=bool(equals)):
            return None
    return SimpleNamespace(**options) if options["paths"] else None


def _take(options: dict[str, Any], name: str, value: str, *, given: bool) -> bool:
    """Set a flag that has a value; return whether both are plain."""
    if value.startswith("-") and not given:
        return False
    key = name[2:].replace("-", "_")
    if name in _LISTS:
        options[key].append(value)
    elif name in _TEXTS or value in _CHOICES.get(name, ()):
        options[key] = value
    else:
        return False
    return True


def _defaults() -> dict[str, Any]:
    return {
        "command": "scan",
        "paths": [],
        "rotated": False,
        "since": "",
        "until": "",
        "last": "",
        "fail_on": "warning",
        "exit_zero": False,
        "forward": False,
        "config": None,
        "no_progress": False,
        "jobs": 0,
        "verbose": False,
        "format": "text",
        "rules": [],
        "disable": [],
        "color": "auto",
        "width": None,
    }
