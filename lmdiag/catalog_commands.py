"""`lmdiag catalog`: asks the catalogue of raise sites, and builds it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from lmdiag.errors import CatalogError, UsageError
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_format import OPAQUE, RELEASES
from lmdiag.match.catalog_words import WORD
from lmdiag.match.known_sites import key_id
from lmdiag.match.library import open_library
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.report.catalog import match_lines, match_object, row_lines, row_object, set_lines
from lmdiag.report.control import clip, visible
from lmdiag.report.jsonl import dumps
from lmdiag.report.sections import counted
from lmdiag.report.text import width_of

_TYPE = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): *(?=\S)")
_ID = re.compile(r"[0-9a-f]{1,10}\Z")
_MAX_FOUND = 5
_MAX_TOLD = 8
_MAX_NEAR = 3
_MAX_NEAR_TEXT = 160


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
            print(f"lmdiag: {visible(unknown_release(sites[0].catalog, project, version))}", file=err)
    hit = _TYPE.match(message)
    kind, text = (hit.group(1).rpartition(".")[2], message[hit.end() :]) if hit else (None, message)
    matches = [found for item in sites for found in item.find_all(kind, text, versions)]
    if not matches:  # the words before the colon may belong to the message
        matches = [found for item in sites for found in item.find_all(None, message, versions)]
    matches.sort(key=lambda found: found.rank, reverse=True)
    if not matches:
        _tell_near(message, sites, err)
        return 1
    for found in matches[:_MAX_FOUND]:
        print_lines(match_object(found) if style == "jsonl" else match_lines(found), out)
    if len(matches) > _MAX_FOUND:
        print(f"{len(matches) - _MAX_FOUND} more messages fit; more of the message tells them apart.", file=err)
    return 0


def _tell_near(message: str, sites: Sequence[RaiseSites], err: TextIO) -> None:
    """Say that a message is unknown, and which ones have all of its words, the shortest first."""
    words = {word.lower() for word in WORD.findall(message)}
    rows = [
        (item.catalog, number) for item in sites for number, text in enumerate(item.catalog.texts) if _has(text, words)
    ]
    rows.sort(key=lambda row: len(row[0].texts[row[1]]))
    print(f"No release is known to raise this message{'; these have its words:' if rows else '.'}", file=err)
    for catalog, number in rows[:_MAX_FOUND]:
        row = catalog.row(number)
        print(f"  {row.id}  {clip(visible(row.template), _MAX_NEAR_TEXT)}", file=err)
    if len(rows) > _MAX_FOUND:
        print(f"  and {len(rows) - _MAX_FOUND:,} more", file=err)


def _has(text: str, words: set[str]) -> bool:
    lower = text.lower()
    return bool(words) and not text.startswith(OPAQUE) and all(word in lower for word in words)


def show(row_id: str, rules: Sequence[str], style: str, out: TextIO, err: TextIO) -> int:
    """Show a message and all its sites. Returns 0, or 1 if there is none of that id.

    Raises UsageError for what is no id, and for the beginning of several.
    """
    wanted = row_id.strip().lower()
    if not _ID.match(wanted):
        raise UsageError(f"{clip(row_id, 60)!r} is no id; `lmdiag catalog find MESSAGE` tells the id of a message")
    found = [
        (catalog, catalog.row(number)) for catalog in catalogs_of(rules, err) for number in _numbers(catalog, wanted)
    ]
    ids = dict.fromkeys(row.id for _, row in found)
    if len(ids) > 1:
        named = ", ".join(list(ids)[:_MAX_TOLD]) + (", …" if len(ids) > _MAX_TOLD else "")
        raise UsageError(f"{counted(len(ids), 'id')} begin with {wanted}: {named}")
    if not found:
        print(f"No message has the id {wanted}. `lmdiag catalog find MESSAGE` tells the id of a message.", file=err)
        return 1
    for catalog, row in found:
        print_lines(row_object(catalog, row) if style == "jsonl" else row_lines(catalog, row), out)
    return 0


def _numbers(catalog: Catalog, wanted: str) -> list[int]:
    return [number for number, key in enumerate(catalog.texts) if key_id(key).startswith(wanted)]


def versions(rules: Sequence[str], style: str, out: TextIO, err: TextIO) -> int:
    """List the releases that the catalogues hold, oldest first."""
    catalogs = catalogs_of(rules, err)
    for catalog in catalogs:
        listed = _listed(catalog)
        if style != "jsonl" and len(catalogs) > 1:
            print_lines([f"{catalog.path}:"], out)
        for project, releases in catalog.versions.items():
            for version in releases:
                entry = listed.get(f"{project} {version}", {})
                if style == "jsonl":
                    named = {"kind": "release", "project": project, "version": version, "catalog": catalog.path}
                    print_lines(named | entry, out)
                else:
                    print_lines([f"{project:8} {version:14} {_figures(entry)}"], out)
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


def unknown_release(catalog: Catalog, project: str, version: str) -> str:
    """Say that a release is in no catalogue, and which near ones are."""
    from difflib import get_close_matches

    known = catalog.versions.get(project, [])
    longer = [name for name in known if name.startswith(f"{version}.")]
    near = longer[-_MAX_NEAR:] or get_close_matches(version, known, n=_MAX_NEAR, cutoff=0.6)
    range_ = f", which has {known[0]} to {known[-1]}" if known else ""
    hint = f"; did you mean {', '.join(near)}?" if near else "; `lmdiag catalog versions` lists what there is"
    return f"{project} {version} is not in the catalogue{range_}{hint}"


def print_lines(what: Mapping[str, object] | Iterable[str], out: TextIO) -> None:
    """Print an object as a line of JSON, or lines as wide as the terminal is."""
    if isinstance(what, Mapping):
        print(dumps(what), file=out)
    else:
        out.write(set_lines(what, width_of(out) if out.isatty() else None))


def catalogs_of(rules: Sequence[str], err: TextIO) -> list[Catalog]:
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
