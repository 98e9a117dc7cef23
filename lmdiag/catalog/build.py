"""Builds a catalogue: fetches and extracts the releases that it does not hold yet, and merges them with those it does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from lmdiag.catalog.download import Index, open_index
from lmdiag.catalog.merge import Say, merge
from lmdiag.catalog.releases import file_of, read_header, write_release
from lmdiag.catalog.sources import Release, read_archive, read_directory
from lmdiag.errors import InputError, UsageError
from lmdiag.match.catalog import read_catalog
from lmdiag.match.catalog_format import FILE

_ARCHIVES = (".tar.gz", ".whl", ".zip")
_CORES = os.cpu_count() or 1


class Wanted(NamedTuple):
    """A release to fetch."""

    project: str
    version: str
    address: str


def build(
    names: Sequence[str], directory: str | None, packages: Sequence[str], into: Path, work: Path, say: Say
) -> bool:
    """Build or extend the catalogue in the directory `into`; return whether everything could be read.

    `names` are archives, `vllm==0.26.0`, or `vllm` for all its final releases that are not there yet; `directory` holds
    installed packages or a checkout. What each release gives is kept as a file in `work`. A release that cannot be read is
    told and left out. Raises UsageError if nothing is asked for, InputError if pip or the catalogue cannot be used.
    """
    if not names and directory is None:
        raise UsageError("nothing to read: give archives, vllm==0.26.0, vllm (all new releases), or --from DIR")
    try:
        return _build(names, directory, packages, into, work, say)
    except OSError as error:
        where = f"{error.filename or into}: cannot be written: {error.strerror or error}"
        raise InputError(f"{where}; give --into and --work where there is room and you may write") from None


def _build(
    names: Sequence[str], directory: str | None, packages: Sequence[str], into: Path, work: Path, say: Say
) -> bool:
    work.mkdir(parents=True, exist_ok=True)
    files = [write_release(release, work) for release in _installed(directory, packages)]
    archives = [Path(name) for name in names if _is_archive(name)]
    wanted = [name for name in names if not _is_archive(name)]
    found, errors = extract_archives(archives, work, say)
    if wanted:
        fetched, more = _fetched(wanted, _known(into), work, say)
        found, errors = found + fetched, errors + more
    files += found
    for error in errors:
        say(str(error))
    if files:
        merge(files, into, say)
    amount = "1 release" if len(files) == 1 else f"{len(files)} releases"
    say(f"{amount} merged into {into / FILE}" if files else "there is nothing new to merge")
    return not errors


def _installed(directory: str | None, packages: Sequence[str]) -> Iterator[Release]:
    if directory is not None:
        yield from read_directory(Path(directory), tuple(packages))


def _is_archive(name: str) -> bool:
    return os.sep in name or name.endswith(_ARCHIVES)


def _known(into: Path) -> dict[str, list[str]]:
    return read_catalog(str(into / FILE)).versions if (into / FILE).exists() else {}


def extract_archives(archives: Sequence[Path], work: Path, say: Say) -> tuple[list[Path], list[InputError]]:
    """Extract archives into files of the work directory, on all cores; return them and what could not be read."""
    files: list[Path] = []
    errors: list[InputError] = []
    if not archives:
        return files, errors
    with ProcessPoolExecutor(max_workers=min(len(archives), _CORES)) as pool:
        for job in as_completed([pool.submit(_extract_archive, path, work) for path in archives]):
            try:
                files.append(job.result())
                say(f"read {files[-1].name}")
            except InputError as error:
                errors.append(error)
    return files, errors


def _extract_archive(path: Path, work: Path) -> Path:
    return write_release(read_archive(path), work)


def _fetched(
    names: Sequence[str], known: dict[str, list[str]], work: Path, say: Say
) -> tuple[list[Path], list[InputError]]:
    """Fetch a few releases at a time into a directory that does not stay: a wheel has half a gigabyte."""
    files: list[Path] = []
    errors: list[InputError] = []
    with open_index() as index:
        missing: list[Wanted] = []
        for item in dict.fromkeys(_wanted(names, known, index)):
            path = work / file_of(item.project, item.version)
            if _is_whole(path):  # of a build that was interrupted
                files.append(path)
            else:
                missing.append(item)
        for start in range(0, len(missing), _CORES):
            found, more = _fetch_batch(missing[start : start + _CORES], index, work, say)
            files, errors = files + found, errors + more
    return files, errors


def _fetch_batch(batch: Sequence[Wanted], index: Index, work: Path, say: Say) -> tuple[list[Path], list[InputError]]:
    archives: list[Path] = []
    errors: list[InputError] = []
    with tempfile.TemporaryDirectory(prefix="lmdiag-") as scratch:
        for item in batch:
            say(f"fetching {item.project} {item.version}")
            try:
                archives.append(index.fetch(item.address, Path(scratch)))
            except InputError as error:
                errors.append(error)
        files, more = extract_archives(archives, work, say)
    return files, errors + more


def _is_whole(path: Path) -> bool:
    try:
        read_header(path)
    except InputError:
        return False
    return True


def _wanted(names: Sequence[str], known: dict[str, list[str]], index: Index) -> Iterator[Wanted]:
    for name in names:
        project, _, version = name.partition("==")
        releases = index.releases(project)
        if version and version not in releases:
            raise InputError(f"{project} has no release {version!r}; the newest are {', '.join(list(releases)[-3:])}")
        for each, address in releases.items():
            if each == version or (not version and each not in known.get(project, ())):
                yield Wanted(project, each, address)
