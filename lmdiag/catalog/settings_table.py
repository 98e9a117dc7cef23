"""Adds the settings of releases to the table of them all, and writes it: one setting a line, for reviews."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from lmdiag.catalog.releases import Header
from lmdiag.match.settings import Settings, Table, knows
from lmdiag.match.versions import release_order


def add_settings(table: Settings, headers: Iterable[Header]) -> bytes:
    """Return the table, as a file, with what the releases know; a release that is there already is replaced."""
    known: dict[str, dict[str, set[str]]] = {project: dict(_unpacked(found)) for project, found in table.items()}
    for header in headers:
        known.setdefault(header.project, {})[header.version] = set(header.settings)
    projects = [f"{json.dumps(project)}: {_project(known[project])}" for project in sorted(known)]
    return ("{\n" + ",\n".join(projects) + "\n}\n").encode()


def _unpacked(table: Table) -> Iterator[tuple[str, set[str]]]:
    for release in table.releases:
        yield release, {setting for setting in table.runs if knows(table, setting, release)}


def _project(releases: dict[str, set[str]]) -> str:
    order = sorted(releases, key=release_order)
    names = sorted(set().union(*releases.values()))
    lines = [f"{json.dumps(name)}: {json.dumps(_runs(order, name, releases))}" for name in names]
    inner = ",\n".join(lines)
    return f'{{"releases": {json.dumps(order)},\n"settings": {{\n{inner}\n}}}}'


def _runs(order: Sequence[str], name: str, releases: dict[str, set[str]]) -> str:
    """`0.8.0-0.9.2,0.10.1-0.34.0`: the runs of releases that know it."""
    runs: list[list[str]] = []
    before = False
    for release in order:
        here = name in releases[release]
        if here and before:
            runs[-1][1] = release
        elif here:
            runs.append([release, release])
        before = here
    return ",".join("-".join(run) for run in runs)
