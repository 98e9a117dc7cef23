"""`lmdiag catalog`: asks the catalogue of raise sites, and builds it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from lmdiag.errors import CatalogError, UsageError
from lmdiag.match.catalog import Catalog, KnownSite, key_id
from lmdiag.match.catalog_diff import Change, changes
from lmdiag.match.catalog_format import RELEASES
from lmdiag.match.library import open_library
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.report.catalog import (
    change_lines,
    change_object,
    match_lines,
    match_object,
    row_lines,
    row_object,
    set_lines,
)
from lmdiag.report.control import clip, visible
from lmdiag.report.jsonl import dumps
from lmdiag.report.sections import counted
from lmdiag.report.text import width_of

_TYPE = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): *(?=\S)")
_ID = re.compile(r"[0-9a-f]{1,10}\Z")
_MAX_FOUND = 5
_MAX_TOLD = 8
_MAX_NEAR = 3
_TITLES = {
    "reworded": "Reworded",
    "retyped": "Raised as another type",
    "new": "New errors",
    "gone": "Errors that are gone",
    "moved": "Moved to another file or function",
}
"""The kinds of changes: what breaks an alert or a search first, what nobody notices last."""


def find(
    message: str, versions: Mapping[str, str | None], rules: Sequence[str], style: str, out: TextIO, err: TextIO
) -> int:
    """Look a message up, with its type in front or without. Returns 0 if it was found, 1 if not.

    `versions` says what ran; what is in no catalogue is told, and answered as if it were not known.
    """
    message = message.strip()
    if not message:
        raise UsageError("there is nothing to look up; give the error's message, or pipe it in: lmdiag catalog find -")
    sites = _sites(rules, err)
    for project, version in versions.items():
        if version is not None and all(item.catalog.release_of(project, version) is None for item in sites):
            print(f"lmdiag: {visible(_unknown_release(sites[0].catalog, project, version))}", file=err)
    hit = _TYPE.match(message)
    kind, text = (hit.group(1).rpartition(".")[2], message[hit.end() :]) if hit else (None, message)
    matches = [found for item in sites for found in item.find_all(kind, text, versions)]
    if not matches:  # the words before the colon may belong to the message
        matches = [found for item in sites for found in item.find_all(None, message, versions)]
    matches.sort(key=lambda found: found.rank, reverse=True)
    if not matches:
        print("No release is known to raise this message.", file=err)
        return 1
    for found in matches[:_MAX_FOUND]:
        _print(match_object(found) if style == "jsonl" else match_lines(found), out)
    if len(matches) > _MAX_FOUND:
        print(f"{len(matches) - _MAX_FOUND} more messages fit; more of the message tells them apart.", file=err)
    return 0


def show(row_id: str, rules: Sequence[str], style: str, out: TextIO, err: TextIO) -> int:
    """Show a message and all its sites. Returns 0, or 1 if there is none of that id.

    Raises UsageError for what is no id, and for the beginning of several.
    """
    wanted = row_id.strip().lower()
    if not _ID.match(wanted):
        raise UsageError(f"{clip(row_id, 60)!r} is no id; `lmdiag catalog find MESSAGE` tells the id of a message")
    found = [
        (catalog, catalog.row(number)) for catalog in _catalogs(rules, err) for number in _numbers(catalog, wanted)
    ]
    ids = dict.fromkeys(row.id for _, row in found)
    if len(ids) > 1:
        named = ", ".join(list(ids)[:_MAX_TOLD]) + (", …" if len(ids) > _MAX_TOLD else "")
        raise UsageError(f"{counted(len(ids), 'id')} begin with {wanted}: {named}")
    if not found:
        print(f"No message has the id {wanted}. `lmdiag catalog find MESSAGE` tells the id of a message.", file=err)
        return 1
    for catalog, row in found:
        _print(row_object(catalog, row) if style == "jsonl" else row_lines(catalog, row), out)
    return 0


def _numbers(catalog: Catalog, wanted: str) -> list[int]:
    return [number for number, key in enumerate(catalog.texts) if key_id(key).startswith(wanted)]


def versions(rules: Sequence[str], style: str, out: TextIO, err: TextIO) -> int:
    """List the releases that the catalogues hold, oldest first."""
    catalogs = _catalogs(rules, err)
    for catalog in catalogs:
        listed = _listed(catalog)
        if style != "jsonl" and len(catalogs) > 1:
            _print([f"{catalog.path}:"], out)
        for project, releases in catalog.versions.items():
            for version in releases:
                entry = listed.get(f"{project} {version}", {})
                if style == "jsonl":
                    named = {"kind": "release", "project": project, "version": version, "catalog": catalog.path}
                    _print(named | entry, out)
                else:
                    _print([f"{project:8} {version:14} {_figures(entry)}"], out)
    return 0


def _figures(entry: Mapping[str, object]) -> str:
    sites = entry.get("sites")
    return f"{sites:7,} sites  {entry.get('origin', '')}" if isinstance(sites, int) else ""


def _listed(catalog: Catalog) -> dict[str, dict[str, object]]:
    """Read the list of releases beside a catalogue: what they were read from, and what was counted."""
    try:
        with open(os.path.join(os.path.dirname(catalog.path), RELEASES), encoding="utf-8") as file:
            listed = json.load(file)
    except (OSError, ValueError):
        return {}
    found = listed.items() if isinstance(listed, dict) else ()
    return {name: entry for name, entry in found if isinstance(entry, dict)}


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
    catalog, before, after = _compared(_catalogs(rules, err), project, old, new)
    if path and not any(site.file.startswith(path) for site in _all_sites(catalog, project, before, after)):
        raise UsageError(f"neither release of {project} raises anything below {path}; a path begins like vllm/config/")
    below = [_below(path, change) for change in changes(catalog, project, before, after) if _is_below(path, change)]
    found = [change for change in below if assertions or not _is_asserted(change)]
    left_out = len(below) - len(found)
    if style == "jsonl":
        _print(_diff_object(catalog, project, path, (before, after), (len(found), left_out)), out)
    else:
        _print(_diff_lines(catalog, project, path, (before, after), found, left_out), out)
    for kind, title in _TITLES.items():
        mine = [change for change in found if change.kind == kind]
        if style == "jsonl":
            out.writelines(dumps(change_object(change, project, before, after)) + "\n" for change in mine)
        elif mine:
            _print(["", f"{title}: {len(mine)}"], out)
            _print((f"  {line}" for change in mine for line in change_lines(change, before, after)), out)
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
    raise UsageError(_unknown_release(having[-1], project, missing))


def _not_older(project: str, old: str, new: str) -> str:
    if old == new:
        return f"{project} {old} is compared with itself; give an older and a newer release"
    return f"{project} {old} is newer than {new}; the older one comes first: lmdiag catalog diff {new} {old}"


def _unknown_release(catalog: Catalog, project: str, version: str) -> str:
    from difflib import get_close_matches

    known = catalog.versions.get(project, [])
    longer = [name for name in known if name.startswith(f"{version}.")]
    near = longer[-_MAX_NEAR:] or get_close_matches(version, known, n=_MAX_NEAR, cutoff=0.6)
    range_ = f", which has {known[0]} to {known[-1]}" if known else ""
    hint = f"; did you mean {', '.join(near)}?" if near else "; `lmdiag catalog versions` lists what there is"
    return f"{project} {version} is not in the catalogue{range_}{hint}"


def _print(what: Mapping[str, object] | Iterable[str], out: TextIO) -> None:
    """Print an object as a line of JSON, or lines as wide as the terminal is."""
    if isinstance(what, Mapping):
        print(dumps(what), file=out)
    else:
        out.write(set_lines(what, width_of(out) if out.isatty() else None))


def _catalogs(rules: Sequence[str], err: TextIO) -> list[Catalog]:
    """Return the catalogues, a site's own first."""
    return [sites.catalog for sites in reversed(_sites(rules, err))]


def _sites(rules: Sequence[str], err: TextIO) -> list[RaiseSites]:
    """Open the catalogues, and warn of those that cannot be read. Raises CatalogError if none can."""
    for directory in rules:
        if not os.path.isdir(directory):
            raise UsageError(f"--rules {directory}: there is no such directory; your own catalogue would be missing")
    library = open_library(rules)
    sites = library.sites
    problems = library.problems[len(library.pack.problems) :]
    if not sites:
        raise CatalogError("\n".join(map(str, problems)))
    for problem in problems:
        print(f"lmdiag: {visible(str(problem))}", file=err)
    return sites


def build(
    names: Sequence[str], directory: str | None, packages: Sequence[str], into: str, work: str, err: TextIO
) -> int:
    """Build or extend a catalogue, see lmdiag.catalog.build. Returns 0, or 2 if a release could not be read."""
    from lmdiag.catalog.build import build as build_catalog

    def say(text: str) -> None:
        print(f"lmdiag: {visible(text)}", file=err, flush=True)

    return 0 if build_catalog(names, directory, packages, Path(into), Path(work), say) else 2
