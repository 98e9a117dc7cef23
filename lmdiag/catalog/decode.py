"""Reads a finished catalogue back into rows, so that a new release is merged without the old ones being read again."""

from __future__ import annotations

from lmdiag.catalog.rows import At, Place, Row, Rows
from lmdiag.match.catalog import Catalog
from lmdiag.match.known_sites import KnownSite


def rows_of(catalog: Catalog) -> Rows:
    """Return the rows that the catalogue was made from."""
    rows = Rows()
    rows.versions = {project: set(versions) for project, versions in catalog.versions.items()}
    for number, key in enumerate(catalog.texts):
        found = catalog.row(number)
        row = rows.rows[key] = Row(key)
        for site in found.sites:
            _add(row, site, tuple("" if name == "_" else name for name in found.names))
    return rows


def _add(row: Row, site: KnownSite, names: tuple[str, ...]) -> None:
    place = Place(site.project, site.file, site.qualname, site.how, site.validator)
    for release in range(site.first, site.last + 1):
        if lines := site.lines_in(release):
            row.add(place, site.releases[release], At(*site.type_in(release), lines), names)
