"""`lmdiag catalog`: asks the catalogue of raise sites, and builds it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from lmdiag.errors import CatalogError, UsageError
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_diff import KINDS, changes
from lmdiag.match.catalog_format import RELEASES
from lmdiag.match.library import open_library
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.report.catalog import change_lines, change_object, match_lines, match_object, row_lines, row_object
from lmdiag.report.control import visible
from lmdiag.report.jsonl import dumps

_TYPE = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): *(?=\S)")
_MAX_FOUND = 5
_TITLES = {
    "new": "New errors",
    "gone": "Errors that are gone",
    "reworded": "Reworded",
    "retyped": "Raised as another type",
    "moved": "Moved to another file or function",
}


def find(
    message: str, versions: dict[str, str | None], rules: Sequence[str], style: str, out: TextIO, err: TextIO
) -> int:
    """Look a message up, with its type in front or without. Returns 0 if it was found, 1 if not."""
    message = message.strip()
    if not message:
        raise UsageError("there is nothing to look up; give the error's message, or pipe it in: lmdiag catalog find -")
    hit = _TYPE.match(message)
    kind, text = (hit.group(1), message[hit.end() :]) if hit else (None, message)
    sites = _sites(rules)
    matches = [found for item in sites for found in item.find_all(kind, text, versions)]
    if not matches:  # the words before the colon may belong to the message
        matches = [found for item in sites for found in item.find_all(None, message, versions)]
    matches.sort(key=lambda found: found.rank, reverse=True)
    if not matches:
        print("No release is known to raise this message.", file=err)
        return 1
    for found in matches[:_MAX_FOUND]:
        if style == "jsonl":
            print(dumps(match_object(found)), file=out)
        else:
            print("\n".join(map(visible, match_lines(found))), file=out)
    return 0


def show(row_id: str, rules: Sequence[str], style: str, out: TextIO) -> int:
    """Show a message and all its sites. Raises UsageError if there is none of that id, or several begin like it."""
    for catalog in _catalogs(rules):
        number = catalog.number_of(row_id)
        if number is None:
            continue
        row = catalog.row(number)
        if style == "jsonl":
            print(dumps(row_object(catalog, row)), file=out)
        else:
            print("\n".join(map(visible, row_lines(catalog, row))), file=out)
        return 0
    raise UsageError(
        f"no message has the id {row_id!r}, or several begin with it; `lmdiag catalog find MESSAGE` tells ids"
    )


def versions(rules: Sequence[str], style: str, out: TextIO) -> int:
    """List the releases that the catalogues hold, oldest first."""
    for catalog in _catalogs(rules):
        listed = _listed(catalog)
        for project, releases in catalog.versions.items():
            for version in releases:
                entry = listed.get(f"{project} {version}", {})
                if style == "jsonl":
                    print(dumps({"kind": "release", "project": project, "version": version, **entry}), file=out)
                else:
                    figures = f"{entry['sites']:7,} sites  {entry['origin']}" if entry else ""
                    print(visible(f"{project:8} {version:14} {figures}".rstrip()), file=out)
    return 0


def _listed(catalog: Catalog) -> dict[str, dict[str, object]]:
    """Read the list of releases beside a catalogue: what they were read from, and what was counted."""
    try:
        with open(os.path.join(os.path.dirname(catalog.path), RELEASES), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def diff(old: str, new: str, project: str, path: str, rules: Sequence[str], style: str, out: TextIO) -> int:
    """List what changed in a project's errors from a release to another, below `path` only if given.

    Raises UsageError if a release is not in the catalogue.
    """
    catalog = next((item for item in _catalogs(rules) if project in item.versions), None)
    if catalog is None:
        raise UsageError(f"no catalogue has {project!r}; `lmdiag catalog versions` lists what there is")
    numbers = [_release(catalog, project, version) for version in (old, new)]
    found = [
        change for change in changes(catalog, project, *numbers) if (change.new or change.old)[0].file.startswith(path)
    ]
    if style == "jsonl":
        out.writelines(dumps(change_object(change, project, *numbers)) + "\n" for change in found)
        return 0
    for kind in KINDS:
        mine = [change for change in found if change.kind == kind]
        print(f"{_TITLES[kind]}: {len(mine)}", file=out)
        for change in mine:
            print("\n".join(visible(f"  {line}") for line in change_lines(change, *numbers)), file=out)
    return 0


def _release(catalog: Catalog, project: str, version: str) -> int:
    number = catalog.release_of(project, version)
    if number is None:
        from difflib import get_close_matches

        near = get_close_matches(version, catalog.versions[project], n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `lmdiag catalog versions` lists them"
        raise UsageError(f"{project} {version} is not in the catalogue{hint}")
    return number


def _catalogs(rules: Sequence[str]) -> list[Catalog]:
    """Return the catalogues, a site's own first."""
    return [sites.catalog for sites in reversed(_sites(rules))]


def _sites(rules: Sequence[str]) -> list[RaiseSites]:
    """Raises CatalogError if no catalogue can be read."""
    library = open_library(rules)
    if not library.sites:
        raise CatalogError("\n".join(map(str, library.problems)))
    return library.sites


def build(
    names: Sequence[str], directory: str | None, packages: Sequence[str], into: str, work: str, err: TextIO
) -> int:
    """Build or extend a catalogue, see lmdiag.catalog.build. Returns 0, or 2 if a release could not be read."""
    from lmdiag.catalog.build import build as build_catalog

    def say(text: str) -> None:
        print(f"lmdiag: {visible(text)}", file=err, flush=True)

    return 0 if build_catalog(names, directory, packages, Path(into), Path(work), say) else 2
