"""What changed in the errors of a project between two releases."""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.match.catalog import Catalog
from lmdiag.match.known_sites import CatalogRow, KnownSite


class Change(NamedTuple):
    """A message in two releases. Where a message is new or gone, one side is empty."""

    kind: str
    """One of KINDS."""
    row: CatalogRow
    """The message in the new release; for `gone` in the old one."""
    old: tuple[KnownSite, ...]
    new: tuple[KnownSite, ...]
    was: CatalogRow | None = None
    """The former wording, for `reworded`."""


KINDS = ("new", "gone", "reworded", "retyped", "moved")
"""reworded: another text took its place; retyped: another class; moved: another file or function, not just line."""


def changes(catalog: Catalog, project: str, old: int, new: int) -> list[Change]:
    """Return all changes from a release to another (numbers into the catalogue's releases), by kind and place."""
    found = list(filter(None, (_change(row, project, old, new) for row in map(catalog.row, range(len(catalog.texts))))))
    by_number = {change.row.number: change for change in found}
    successors = {
        number: newer for number in by_number if (newer := _successor(catalog, number, by_number)) is not None
    }
    result = []
    for change in found:
        if change.row.number in successors:
            now = by_number[successors[change.row.number]]
            result.append(Change("reworded", now.row, change.old, now.new, change.row))
        elif change.row.number not in successors.values():
            result.append(change)
    return sorted(
        result, key=lambda change: (KINDS.index(change.kind), (change.new or change.old)[0].file, change.row.number)
    )


def _successor(catalog: Catalog, number: int, found: dict[int, Change]) -> int | None:
    """Return the row that took a gone one's place, over rewordings between the releases too."""
    if found[number].kind != "gone":
        return None
    for _ in range(len(catalog.renamed)):
        if number not in catalog.renamed:
            return None
        number = catalog.renamed[number]
        if number in found:
            return number if found[number].kind == "new" else None
    return None


def _change(row: CatalogRow, project: str, old: int, new: int) -> Change | None:
    sites = [site for site in row.sites if site.project == project]
    before = tuple(site for site in sites if site.is_in(old))
    after = tuple(site for site in sites if site.is_in(new))
    if not before or not after:
        return Change("new" if after else "gone", row, before, after) if before or after else None
    if {site.type_in(old) for site in before} != {site.type_in(new) for site in after}:
        return Change("retyped", row, before, after)
    old_places, new_places = ({(site.file, site.qualname) for site in sites} for sites in (before, after))
    if old_places - new_places and new_places - old_places:  # one more place of a message is no change to an operator
        return Change("moved", row, before, after)
    return None
