"""Finds rewordings: a message that a release no longer has, and the one that took its place there."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from lmdiag.catalog.rows import Row, Rows
from lmdiag.match.catalog_format import HOLE, OPAQUE
from lmdiag.match.raise_sites import fits

LEAST_ALIKE = 0.7
"""Share of equal characters, after difflib: two messages of the same function that are less alike are two errors."""

_LEAST_LITERAL = 20


def rewordings(rows: Rows, versions: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return (key of the old row, key of the new one), sorted; an old row has one successor at most."""
    found: dict[str, str] = {}
    for project, ordered in versions.items():
        spans = {key: span for key, row in rows.rows.items() if (span := _span(row, project, ordered))}
        gone, new = defaultdict(list), defaultdict(list)
        for key, (first, last) in spans.items():
            if not key.startswith(OPAQUE):
                gone[last + 1].append(key)
                new[first].append(key)
        for index in range(1, len(ordered)):
            for old, successor in _pairs(gone[index], new[index], rows, project):
                found.setdefault(old, successor)
    return sorted(found.items())


def _span(row: Row, project: str, ordered: Sequence[str]) -> tuple[int, int] | None:
    known = {version for place, found in row.places.items() if place.project == project for version in found}
    indexes = [index for index, version in enumerate(ordered) if version in known]
    return (indexes[0], indexes[-1]) if indexes else None


def _pairs(gone: list[str], new: list[str], rows: Rows, project: str) -> Iterator[tuple[str, str]]:
    """Pair the most alike first, each once; only within the same file name or function name."""
    spots = {key: _spots(rows.rows[key], project) for key in (*gone, *new)}
    alike = sorted(
        (-ratio, old, successor)
        for old in gone
        for successor in new
        if spots[old] & spots[successor] and (ratio := _ratio(old, successor)) > LEAST_ALIKE
    )
    taken: set[str] = set()
    for _, old, successor in alike:
        if not {old, successor} & taken:
            taken |= {old, successor}
            yield old, successor


def _spots(row: Row, project: str) -> frozenset[str]:
    places = [place for place in row.places if place.project == project]
    names = {place.qualname.rpartition(".")[2] for place in places} - {
        "__init__",
        "__post_init__",
        "<module>",
        "forward",
    }
    return frozenset({os.path.basename(place.file) for place in places} - {"__init__.py"} | names)


def _ratio(old: str, new: str) -> float:
    literals = new.split(HOLE)
    if fits(literals, old.replace(HOLE, "x")) and len("".join(literals)) > _LEAST_LITERAL:
        return 1.0  # what was spelled out is put together now
    matcher = SequenceMatcher(None, old.replace(HOLE, "\uffff"), new.replace(HOLE, "\uffff"), autojunk=False)
    quick = min(matcher.real_quick_ratio(), matcher.quick_ratio())
    return matcher.ratio() if quick > LEAST_ALIKE else 0.0
