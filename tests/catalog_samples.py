"""Small catalogues that several tests share, made of raise sites as the extractor gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import Formatter

from lmdiag.catalog.encode import encode
from lmdiag.catalog.rows import Rows
from lmdiag.catalog.sites import Site
from lmdiag.catalog.texts import Text
from lmdiag.match.catalog import Catalog
from lmdiag.match.known_sites import CatalogRow
from lmdiag.match.packages import Located
from lmdiag.match.raise_sites import RaiseSites, SiteMatch

MODEL = "vllm/config/model.py"
Releases = Mapping[str, Sequence[Site]]
"""`vllm 0.26.0` -> its sites."""


def text_of(template: str) -> Text:
    """A text of the extractor: `{name}` is a hole, literal braces are doubled."""
    parts = [""]
    for literal, name, _, _ in Formatter().parse(template):
        parts[-1] += literal
        if name is not None:
            parts += [name, ""]
    return tuple(parts)


def site(
    *texts: str | Text,
    line: int = 10,
    file: str = MODEL,
    name: str = "ModelConfig.check",
    type: str = "ValueError",
    family: str | None = None,
    how: str = "raise",
    validator: bool = False,
) -> Site:
    """A raise site, of a ValueError unless told otherwise."""
    found = tuple(text_of(text) if isinstance(text, str) else text for text in texts)
    return Site(file, name, line, type, type if family is None else family, how, validator, found)


def rows_of_releases(releases: Releases, rows: Rows | None = None) -> Rows:
    """Rows with these releases added, in their order."""
    rows = rows or Rows()
    for release, sites in releases.items():
        project, _, version = release.partition(" ")
        rows.add_release(project, version, sites)
    return rows


def catalog_of(releases: Releases) -> Catalog:
    """The catalogue of these releases."""
    return Catalog(encode(rows_of_releases(releases)), "catalog.bin")


def index_of(releases: Releases) -> RaiseSites:
    """The same, to look messages up."""
    return RaiseSites(catalog_of(releases))


def rows_in(catalog: Catalog) -> list[CatalogRow]:
    """All rows of a catalogue."""
    return [catalog.row(number) for number in range(len(catalog.texts))]


def row_of(catalog: Catalog, template: str) -> CatalogRow:
    """The row of a message, as it is shown."""
    (row,) = [row for row in rows_in(catalog) if row.template == template]
    return row


def find(
    index: RaiseSites, message: str, frame: Located | None = None, *, type: str = "ValueError", truncated: bool = False, **versions: str
) -> SiteMatch:
    """What is found for a message; something must be."""
    match = index.find(type, message, frame, versions, truncated=truncated)
    assert match is not None, message
    return match


def at(line: int = 10, function: str = "check", path: str = MODEL) -> Located:
    """A frame of vLLM, or of LMCache after its path."""
    return Located(path.partition("/")[0], path, function, line)


def read_all(catalog: Catalog, files: Iterable[str] = (MODEL,)) -> None:
    """Unpack every part."""
    assert catalog.filed_under("word") is not None
    assert catalog.renamed is not None
    for row in rows_in(catalog):
        assert row.sites
    for file in files:
        list(catalog.rows_of_file(file))
