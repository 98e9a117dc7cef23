"""Merges release files with the catalogue that is there; the result is the same as if all had been read at once."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lmdiag.catalog.decode import rows_of
from lmdiag.catalog.encode import encode
from lmdiag.catalog.releases import Header, read_release
from lmdiag.catalog.rows import Rows
from lmdiag.catalog.settings_table import add_settings
from lmdiag.errors import InputError
from lmdiag.match.catalog import read_catalog
from lmdiag.match.catalog_format import FILE, RELEASES, SETTINGS
from lmdiag.match.settings import read_settings
from lmdiag.match.versions import release_order

Say = Callable[[str], None]
"""Tells the person who waits what is being done."""


def merge(files: Sequence[Path], into: Path, say: Say) -> None:
    """Merge release files with the catalogue in the directory `into`, and write it there.

    Raises InputError if a file or the catalogue that is there cannot be read; nothing is written then.
    """
    into.mkdir(parents=True, exist_ok=True)
    with _locked(into):
        rows, known = Rows(), dict[str, object]()
        if (into / FILE).exists():
            rows = rows_of(read_catalog(str(into / FILE)))
            known = _listed(into / RELEASES)
        headers = []
        for path in sorted(files):
            header, sites = read_release(path)
            headers.append(header)
            _check(header, say)
            rows.add_release(header.project, header.version, sites)
            known[f"{header.project} {header.version}"] = _entry(header)
        _replace(into / RELEASES, _listing(known))  # first: what is listed and not there is built again
        _replace(into / SETTINGS, add_settings(read_settings(str(into / SETTINGS)), headers))
        _replace(into / FILE, encode(rows))


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Wait until no other build merges into the directory: of two at once, neither loses what it adds."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check(header: Header, say: Say) -> None:
    """Say what makes a release's part of the catalogue less than whole."""
    name, figures = f"{header.project} {header.version}", header.figures
    if figures.unparsable:
        say(
            f"warning: {name}: {len(figures.unparsable)} files cannot be parsed by this Python: {figures.unparsable[0]}, …"
        )
    if figures.value_errors != figures.value_errors_in_source:
        say(f"warning: {name}: {figures.value_errors} of {figures.value_errors_in_source} ValueErrors found")


def _entry(header: Header) -> dict[str, object]:
    return {"origin": header.origin, "sha256": header.sha256, **header.figures._asdict()}


def _listed(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: cannot be read: {error}; restore it, or remove the whole catalogue to build it anew"
        ) from None


def _listing(known: Mapping[str, object]) -> bytes:
    """Return the list of releases, one a line, for reviews."""

    def order(name: str) -> tuple[object, ...]:
        project, _, version = name.partition(" ")
        return project, release_order(version)

    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known, key=order)]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
