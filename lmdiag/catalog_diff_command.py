"""`lmdiag catalog diff`: what changed in the errors of a project, for an operator who is about to upgrade."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from lmdiag.catalog_commands import catalogs_of, print_lines, unknown_release
from lmdiag.errors import UsageError
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_diff import Change, changes
from lmdiag.match.known_sites import KnownSite
from lmdiag.report.catalog import change_lines, change_object
from lmdiag.report.jsonl import dumps
from lmdiag.report.sections import counted

_TITLES = {
    "reworded": "Reworded",
    "retyped": "Raised as another type",
    "new": "New errors",
    "gone": "Errors that are gone",
    "moved": "Moved to another file or function",
}
"""The kinds of changes: what breaks an alert or a search first, what nobody notices last."""


def diff(
    old: str,
    new: str,
    project: str,
    path: str,
    rules: Sequence[str],
    style: str,
    out: TextIO,
    err: TextIO,
    *,
    assertions: bool = False,
) -> int:
    """List what changed in a project's errors from a release to a later one, below `path` only if given.

    What is only asserted is counted and left out unless `assertions` asks for it. Returns 0 even if nothing changed.
    Raises UsageError if a release is not in the catalogue, or not the older one.
    """
    project, path = project.lower(), path.removeprefix("./")
    catalog, before, after = _compared(catalogs_of(rules, err), project, old, new)
    if path and not any(site.file.startswith(path) for site in _all_sites(catalog, project, before, after)):
        raise UsageError(f"neither release of {project} raises anything below {path}; a path begins like vllm/config/")
    below = [_below(path, change) for change in changes(catalog, project, before, after) if _is_below(path, change)]
    found = [change for change in below if assertions or not _is_asserted(change)]
    left_out = len(below) - len(found)
    if style == "jsonl":
        print_lines(_diff_object(catalog, project, path, (before, after), (len(found), left_out)), out)
    else:
        print_lines(_diff_lines(catalog, project, path, (before, after), found, left_out), out)
    for kind, title in _TITLES.items():
        mine = [change for change in found if change.kind == kind]
        if style == "jsonl":
            out.writelines(dumps(change_object(change, project, before, after)) + "\n" for change in mine)
        elif mine:
            print_lines(["", f"{title}: {len(mine)}"], out)
            print_lines((f"  {line}" for change in mine for line in change_lines(change, before, after)), out)
    return 0


def _diff_object(
    catalog: Catalog, project: str, path: str, releases: tuple[int, int], counts: tuple[int, int]
) -> dict[str, object]:
    old, new = (catalog.versions[project][release] for release in releases)
    named = {"kind": "diff", "project": project, "old": old, "new": new, "path": path}
    return {**named, "changes": counts[0], "assertions_left_out": counts[1]}


def _diff_lines(
    catalog: Catalog, project: str, path: str, releases: tuple[int, int], found: Sequence[Change], left_out: int
) -> Iterable[str]:
    """Say what is compared, how much there is, and what is not listed."""
    old, new = (catalog.versions[project][release] for release in releases)
    counts = [f"{sum(change.kind == kind for change in found):,} {kind}" for kind in _TITLES]
    yield f"{project} {old} to {new}{f', below {path}' if path else ''}: {', '.join(counts)}"
    if left_out:
        yield f"Left out: {counted(left_out, 'change')} of assertions; --assertions lists them too"


def _is_below(path: str, change: Change) -> bool:
    return any(site.file.startswith(path) for site in (*change.old, *change.new))


def _below(path: str, change: Change) -> Change:
    """Put the sites below the path first: the first one is shown."""
    old, new = (sorted(sites, key=lambda site: not site.file.startswith(path)) for sites in (change.old, change.new))
    return change._replace(old=tuple(old), new=tuple(new))


def _is_asserted(change: Change) -> bool:
    """Whether it is a developer's check on both sides: no operator is meant to meet it."""
    return all(site.how == "assert" for site in (*change.old, *change.new))


def _all_sites(catalog: Catalog, project: str, *releases: int) -> Iterable[KnownSite]:
    rows = map(catalog.row, range(len(catalog.texts)))
    sites = (site for row in rows for site in row.sites if site.project == project)
    return (site for site in sites if any(map(site.is_in, releases)))


def _compared(catalogs: Sequence[Catalog], project: str, old: str, new: str) -> tuple[Catalog, int, int]:
    """Return the first catalogue that has both releases, with their numbers."""
    having = [catalog for catalog in catalogs if project in catalog.versions]
    if not having:
        names = sorted({name for catalog in catalogs for name in catalog.versions})
        raise UsageError(f"no catalogue has the project {project!r}, only {', '.join(names)}")
    for catalog in having:
        before, after = (catalog.release_of(project, version) for version in (old, new))
        if before is None or after is None:
            continue
        if before >= after:
            raise UsageError(_not_older(project, *(catalog.versions[project][number] for number in (before, after))))
        return catalog, before, after
    missing = next(
        (name for name in (old, new) if all(item.release_of(project, name) is None for item in having)), None
    )
    if missing is None:
        raise UsageError(f"no catalogue has both {project} {old} and {new}")
    raise UsageError(unknown_release(having[-1], project, missing))


def _not_older(project: str, old: str, new: str) -> str:
    if old == new:
        return f"{project} {old} is compared with itself; give an older and a newer release"
    return f"{project} {old} is newer than {new}; the older one comes first: lmdiag catalog diff {new} {old}"
