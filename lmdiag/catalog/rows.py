"""The catalogue's rows while it is built: one for each message, with its sites over the releases of all projects.

Adding the releases in any order, at once or later, gives the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from lmdiag.catalog.sites import Site
from lmdiag.catalog.texts import Text, is_opaque
from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE
from lmdiag.match.versions import release_order

_BLANKS = re.compile(r"\s+")
_MAX_NAME = 40


class Place(NamedTuple):
    """What does not change of a raise site from release to release."""

    project: str
    file: str
    qualname: str
    how: str
    validator: bool


class At(NamedTuple):
    """A raise site in one release."""

    type: str
    family: str
    lines: tuple[int, ...]


class Row:
    """One message: its key, the names of its holes, and where it is raised in which release."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.places: dict[Place, dict[str, At]] = {}
        self._names: dict[tuple[str, str], tuple[str, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the holes: as in the newest release, of vLLM if it has the message."""
        return self._names[max(self._names, key=lambda item: (item[0] == "vllm", release_order(item[1]), item))]

    def add(self, place: Place, version: str, at: At, names: tuple[str, ...]) -> None:
        """Add a site of a release."""
        releases = self.places.setdefault(place, {})
        known = releases.get(version)
        lines = tuple(sorted({*known.lines, *at.lines})) if known else at.lines
        releases[version] = At(*(min(known[:2], at[:2]) if known else at[:2]), lines)
        release = place.project, version
        self._names[release] = min(names, self._names.get(release, names))

    def drop(self, project: str, version: str) -> None:
        """Remove what a release has added."""
        self._names.pop((project, version), None)
        for place, releases in list(self.places.items()):
            if place.project == project:
                releases.pop(version, None)
            if not releases:
                del self.places[place]


class Rows:
    """All rows, and the releases that they are made from."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.versions: dict[str, set[str]] = {}

    def add_release(self, project: str, version: str, sites: Iterable[Site]) -> None:
        """Add the sites of a release; if it is there already, they replace it."""
        if version in self.versions.get(project, ()):
            self.drop_release(project, version)
        self.versions.setdefault(project, set()).add(version)
        for site in sites:
            for text in site.texts:
                self._add(project, version, site, text)

    def _add(self, project: str, version: str, site: Site, text: Text) -> None:
        place = Place(project, site.file, site.qualname, site.how, site.validator)
        if is_opaque(text):
            if site.how in ("assert", "again"):
                return  # an assertion without words says nothing that its frame does not, and `raise error` is no origin
            text, key = (), OPAQUE + f"{project}:{site.file}:{site.qualname}"
        else:
            key = key_of(text)
        names = tuple(name[:_MAX_NAME] for name in text[1::2])
        row = self.rows.setdefault(key, Row(key))
        row.add(place, version, At(site.type, site.family, (site.line,)), names)

    def drop_release(self, project: str, version: str) -> None:
        """Remove all that a release has put in."""
        self.versions.get(project, set()).discard(version)
        for key, row in list(self.rows.items()):
            row.drop(project, version)
            if not row.places:
                del self.rows[key]


def key_of(text: Text) -> str:
    """Return a message's literals with HOLE between them, white space folded; the first line's end is marked."""
    return HOLE.join(_fold(literal) for literal in text[::2]).strip(f" {LINE_BREAK}")


def _fold(literal: str) -> str:
    return _BLANKS.sub(lambda hit: LINE_BREAK if "\n" in hit.group() else " ", _clean(literal))


def _clean(literal: str) -> str:
    """Take out what the catalogue uses as its own marks; a message never holds them."""
    return re.sub(r"[\x00-\x08\x0e-\x1f\x7f]", "", literal).encode("utf-8", "replace").decode()
