"""The names of rotated logs: which log they belong to, and which is older."""

from __future__ import annotations

import os
import re

from lmdiag.lazy_pattern import lazy

_DATE = r"\d{4}-\d\d-\d\d(?:[-_.T]?[\d:._-]*\d)?|\d{8}(?:[-_T.]?\d{4,6})?|\d{10}"
_PACKED = lazy(r"\.(?:gz|bz2|xz|zst|zstd)$", re.IGNORECASE)
# logrotate (`.1`, dateext `-20260101`, dateformat `-%s`, `extension .log`), Python's TimedRotatingFileHandler
# (`.2026-01-01`), the kubelet (`.20260101-120000`), and copies by hand (`.old`, `.bak`).
_NUMBERED = lazy(r"(?P<log>.+)\.(?P<number>\d{1,4})")
_DATED = lazy(rf"(?P<log>.+?)[-.](?P<date>{_DATE})(?P<extension>\.(?:log|txt|out|err))?")
_KEPT = lazy(r"(?P<log>.+)\.(?:old|bak)")

Age = tuple[int, str, int]
"""Sorts the oldest first: dated, numbered, kept, packed, the log itself."""


def split_rotation(name: str) -> tuple[str, Age]:
    """Take a file's name apart: the name of the log it was rotated from (its own, if it was not), and its age."""
    plain = _PACKED.sub("", name)
    if found := _NUMBERED.fullmatch(plain):
        return found["log"], (1, "", -int(found["number"]))
    if found := _DATED.fullmatch(plain):
        return found["log"] + (found["extension"] or ""), (0, re.sub(r"\D", "", found["date"]), 0)
    if found := _KEPT.fullmatch(plain):
        return found["log"], (2, "", 0)
    return plain, (3, "", 0) if plain != name else (4, "", 0)


def oldest_first(path: str) -> tuple[str, str, Age, str]:
    """Sort key of a path: by directory and log, then the older part of a log before the newer."""
    directory, name = os.path.split(path)
    log, age = split_rotation(name)
    return directory, log, age, name


def rotated_siblings(path: str) -> tuple[str, ...]:
    """List the rotated parts of a log that lie beside it, oldest first, without the log itself.

    A directory that cannot be listed has none.
    """
    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory or ".")
    except OSError:
        return ()
    paths = (os.path.join(directory, other) for other in names if other != name and split_rotation(other)[0] == name)
    return tuple(sorted(filter(os.path.isfile, paths), key=oldest_first))
