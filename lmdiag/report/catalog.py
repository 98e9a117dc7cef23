"""The catalogue for a person and for a program: messages, their sites over the releases, and changes between two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmdiag.match.history import link, rewording
from lmdiag.report.control import clip, one_line

if TYPE_CHECKING:
    from lmdiag.match.catalog import Catalog, CatalogRow, KnownSite
    from lmdiag.match.catalog_diff import Change
    from lmdiag.match.raise_sites import SiteMatch

_NO_WORDS = "(no words of its own: str(error), a variable, or nothing)"


def site_object(site: KnownSite, release: int | None = None) -> dict[str, object]:
    """Return a site as JSON: in one release, or with the first line of each run over all of them."""
    at = site.last if release is None or not site.is_in(release) else release
    kind, family = site.type_in(at)
    lines = site.lines_in(at)
    return {
        "project": site.project,
        "version": site.releases[at],
        "file": site.file,
        "function": site.function,
        "qualname": site.qualname,
        "lines": list(lines),
        "type": kind or None,
        "family": family,
        "how": site.how,
        "validator": site.validator,
        "since": site.releases[site.first],
        "until": None if site.last == len(site.releases) - 1 else site.releases[site.last],
        "url": link(site.project, site.releases[at], site.file, lines[0]),
    }


def row_object(catalog: Catalog, row: CatalogRow) -> dict[str, object]:
    """Return a message with all its sites as JSON; each site has its lines by version."""
    sites = [{**site_object(site), "history": history(site)} for site in row.sites]
    found = (rewording(catalog, row, project) for project in dict.fromkeys(site.project for site in row.sites))
    reworded = next(filter(None, found), None)
    former = [catalog.row(old).id for old, new in catalog.renamed.items() if new == row.number]
    return {
        "kind": "message",
        "id": row.id,
        "message": row.template,
        "sites": sites,
        "reworded": reworded._asdict() if reworded else None,
        "aliases": former,
    }


def history(site: KnownSite) -> dict[str, list[int]]:
    """Return the lines of a site by version, for each version in which they differ from the one before."""
    found: dict[str, list[int]] = {}
    before: tuple[int, ...] = ()
    for release in range(site.first, site.last + 1):
        lines = site.lines_in(release)
        if lines != before:
            found[site.releases[release]] = list(lines)
        before = lines
    return found


def match_object(match: SiteMatch) -> dict[str, object]:
    """Return what was found for a message as JSON."""
    found = {"kind": "match", "id": match.row.id, "confidence": match.confidence, "message": match.row.template}
    return {**found, "site": site_object(match.site, match.release), "sites": len(match.row.sites)}


def match_lines(match: SiteMatch) -> Iterator[str]:
    """Say what was found for a message."""
    yield f"{match.row.id}  {match.confidence}  {_message(match.row)}"
    yield from (f"  {line}" for line in _site_lines(match.site, match.release))
    others = len(match.row.sites) - 1
    if others:
        noun = "one more site" if others == 1 else f"{others} more sites"
        yield f"  {noun}: lmdiag catalog show {match.row.id}"


def row_lines(catalog: Catalog, row: CatalogRow) -> Iterator[str]:
    """Show a message whole."""
    data = row_object(catalog, row)
    yield f"{row.id}  {_message(row)}"
    if data["aliases"]:
        yield f"  formerly {', '.join(catalog.row(old).id for old, new in catalog.renamed.items() if new == row.number)}"
    for project in dict.fromkeys(site.project for site in row.sites):
        if new := rewording(catalog, row, project):
            yield f"  reworded in {project} {new.version}: {new.id}  {one_line(new.message)}"
    for site in row.sites:
        yield from (f"  {line}" for line in _site_lines(site, None))
        for version, lines in history(site).items():
            yield f"      from {version:12} line {', '.join(map(str, lines))}"


def _site_lines(site: KnownSite, release: int | None) -> Iterator[str]:
    data = site_object(site, release)
    lines = site.lines_in(site.last if release is None or not site.is_in(release) else release)
    how = {"raise": "raised", "assert": "asserted", "built": "built here, raised elsewhere", "again": "raised again"}
    hidden = ", in a validator: pydantic hides this frame" if site.validator else ""
    yield f"{data['type'] or 'type known at run time only'} {how[site.how]} in {site.project} {data['version']}{hidden}"
    yield f"    {site.file}:{lines[0]} in {site.function}"
    yield f"    in {data['since']} to {data['until'] or site.releases[-1]}" + (", gone since" if data["until"] else "")
    if data["url"]:
        yield f"    {data['url']}"


def change_object(change: Change, project: str, old: int, new: int) -> dict[str, object]:
    """Return a change between two releases as JSON."""
    return {
        "kind": "change",
        "change": change.kind,
        "project": project,
        "id": change.row.id,
        "message": change.row.template,
        "was": {"id": change.was.id, "message": change.was.template} if change.was else None,
        "old": [site_object(site, old) for site in change.old],
        "new": [site_object(site, new) for site in change.new],
    }


def change_lines(change: Change, old: int, new: int) -> Iterator[str]:
    """Say a change in a few lines: the message first, then the places."""
    at, release = (change.new, new) if change.new else (change.old, old)
    yield f"{change.row.id}  {at[0].type_in(release)[0] or 'Exception'}: {_message(change.row)}"
    if change.was:
        yield f"  was {change.was.id}: {_message(change.was)}"
    if change.kind == "retyped":
        yield f"  was {change.old[0].type_in(old)[0]} ({change.old[0].type_in(old)[1]})"
    if change.kind == "moved":
        yield f"  was {_place(change.old[0], old)}"
    yield f"  {_place(at[0], release)}" + (f" and {len(at) - 1} more" if len(at) > 1 else "")


def _place(site: KnownSite, release: int) -> str:
    return f"{site.file}:{site.lines_in(release)[0]} in {site.function}"


def _message(row: CatalogRow) -> str:
    return clip(one_line(row.template), 400) or _NO_WORDS
