"""One file for each release that was read: its raise sites, settings and figures, so that none is read twice.

Lines of JSON, gzipped: the header first, then one site a line. The same sources give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lmdiag.catalog.extract import Figures, extract
from lmdiag.catalog.settings import settings
from lmdiag.catalog.sites import Site
from lmdiag.catalog.sources import Release
from lmdiag.errors import InputError

FORMAT = 2
"""Raised when the extractor finds more or other things, so that older files are made anew."""


_DAMAGED = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, StopIteration)
"""What reading a file raises that was not written by write_release, or not to its end."""


class Header(NamedTuple):
    """Which release a file is of, and what was counted in it."""

    project: str
    version: str
    origin: str
    sha256: str
    figures: Figures
    settings: tuple[str, ...]


def file_of(project: str, version: str) -> str:
    """Return the name of a release's file."""
    return re.sub(r"[^\w.+!-]", "_", f"{project}-{version}") + ".jsonl.gz"


def write_release(release: Release, directory: Path) -> Path:
    """Extract a release into a file of the directory; return its path."""
    sites, figures = extract(release.sources)
    header = Header(*release[:4], figures, settings(release.sources))
    rows = [json.dumps({"format": FORMAT, **header._asdict(), "figures": figures._asdict()}), *map(_dump, sites)]
    path = directory / file_of(release.project, release.version)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_bytes(gzip.compress("\n".join(rows).encode(), mtime=0))
    return partial.rename(path)


def _dump(site: Site) -> str:
    return json.dumps(site, separators=(",", ":"))


def read_header(path: Path) -> Header:
    """Return the header of a file. Raises InputError if it is damaged or of another format."""
    with _opened(path) as lines:
        return _header(path, lines)


def read_release(path: Path) -> tuple[Header, list[Site]]:
    """Return a file's header and sites. Raises InputError if it is damaged or of another format."""
    with _opened(path) as lines:
        return _header(path, lines), [_site(json.loads(line)) for line in lines]


class _opened:  # noqa: N801 - used like a function
    """The lines of a file; what goes wrong while they are read becomes an InputError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None

    def __enter__(self) -> Iterator[str]:
        try:
            self._file = gzip.open(self.path, "rt", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error}") from None
        return iter(self._file)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._file.close()
        if isinstance(error, _DAMAGED):
            raise InputError(
                f"{self.path}: is damaged or of another format ({error!r}); delete it to have it made again"
            )


def _header(path: Path, lines: Iterable[str]) -> Header:
    data = json.loads(next(iter(lines)))
    if data.pop("format") != FORMAT:
        raise InputError(f"{path}: is of another format; delete it to have it made again")
    figures = data.pop("figures")
    names = tuple(map(str, data.pop("settings")))
    return Header(**data, settings=names, figures=Figures(**{**figures, "unparsable": tuple(figures["unparsable"])}))


def _site(data: list[Any]) -> Site:
    return Site._make([*data[:-1], tuple(map(tuple, data[-1]))])
