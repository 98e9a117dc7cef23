"""Patterns that the shell left alone: `*`, `?`, `[…]`, and `**` for any depth of directories."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

MAGIC = re.compile(r"[*?[]")


def find(pattern: str) -> Iterator[str]:
    """Find the paths that fit, as the shell would: names that begin with a dot only if the pattern says so.

    The glob module is not used, because its `**` follows loops of symbolic links.
    """
    root = "/" if pattern.startswith("/") else ""
    yield from _find(root, [segment for segment in pattern.split("/") if segment])


def _find(base: str, segments: list[str]) -> Iterator[str]:
    if not segments:
        yield base
        return
    first, rest = segments[0], segments[1:]
    if first == "**":
        yield from _find_below(base, rest)
    elif MAGIC.search(first):
        for name in _matching(base, first):
            yield from _find(os.path.join(base, name), rest)
    elif os.path.lexists(path := os.path.join(base, first)):
        yield from _find(path, rest)


def _find_below(base: str, rest: list[str]) -> Iterator[str]:
    for directory in _directories(base):
        if rest:
            yield from _find(directory, rest)
        else:
            yield from (os.path.join(directory, name) for name in _matching(directory, "*"))


def _matching(directory: str, pattern: str) -> list[str]:
    import fnmatch

    names = [name for name in _names(directory) if name.startswith(".") <= pattern.startswith(".")]
    return sorted(fnmatch.filter(names, pattern))


def _directories(top: str) -> Iterator[str]:
    """Walk the directory and all below it, each once, however the symbolic links run."""
    seen = set()
    pending = [top]
    while pending:
        directory = pending.pop()
        try:
            status = os.stat(directory or ".")
        except OSError:
            continue
        if (status.st_dev, status.st_ino) not in seen and os.path.isdir(directory or "."):
            seen.add((status.st_dev, status.st_ino))
            yield directory
            pending += (os.path.join(directory, name) for name in reversed(_matching(directory, "*")))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []
