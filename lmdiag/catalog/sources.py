"""The Python sources of a release: from a source distribution, a wheel, an installed package or a checkout."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lmdiag.errors import InputError

_ARCHIVE = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+?)-(?P<version>\d[\w.!+]*?)(?:\.tar\.gz|\.zip|(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl)$"
)
_VERSION_LINE = re.compile(
    r"^__version__ = version = ['\"]([^'\"]+)['\"]|^__version__ = ['\"]([^'\"]+)['\"]", re.MULTILINE
)
_METADATA_VERSION = re.compile(r"^Version: (\S+)", re.MULTILINE)
# What the readers of archives raise: for a broken one, for one that is encrypted or packed in an unknown way.
_BROKEN = (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)
_CHUNK = 1 << 20
PROJECTS = ("vllm", "lmcache")


class Release(NamedTuple):
    """The sources of one version of one package."""

    project: str
    version: str
    origin: str
    """The name of the archive, or what the sources were read from."""
    sha256: str
    """Of the archive; "" for a directory."""
    sources: dict[str, str]
    """Path from the package's parent (vllm/config/model.py) -> text."""


def read_archive(path: Path) -> Release:
    """Read a source distribution or a wheel, named as on a package index. Raises InputError if it is none."""
    hit = _ARCHIVE.fullmatch(path.name)
    if hit is None:
        raise InputError(f"{path}: not named like a source distribution or a wheel, such as vllm-0.26.0.tar.gz")
    project = hit["name"].lower().replace("-", "_")
    try:
        members = _wheel if path.suffix == ".whl" or path.suffix == ".zip" else _tarball
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        sources = {name: _text(data) for name, data in members(path, project)}
    except _BROKEN as error:
        raise InputError(f"{path}: cannot be read as an archive: {error}; download it again") from None
    if not sources:
        raise InputError(f"{path}: has no Python file in a directory {project}/")
    return Release(project, hit["version"], path.name, digest, sources)


def _wheel(path: Path, project: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            inner = name if name.startswith(f"{project}/") else name.partition("/")[2]
            if inner.startswith(f"{project}/") and inner.endswith(".py"):
                yield inner, archive.read(name)


def _tarball(path: Path, project: str) -> Iterator[tuple[str, bytes]]:
    with gzip.open(path) as stream, tarfile.open(fileobj=stream) as archive:
        for member in archive:
            inner = member.name.partition("/")[2]  # the first directory is project-version
            if member.isfile() and inner.startswith(f"{project}/") and inner.endswith(".py"):
                file = archive.extractfile(member)
                assert file is not None
                yield inner, file.read()
        while stream.read(_CHUNK):  # to the end of the stream, whose checksum tells whether it is whole
            pass


def read_directory(root: Path, packages: tuple[str, ...] = ()) -> Iterator[Release]:
    """Read packages that lie in a directory: site-packages, or a checkout. Without names: vllm and lmcache, if there.

    Raises InputError if there is none of them.
    """
    for name in packages:
        if not name.isidentifier():
            raise InputError(f"--package {name!r}: not the name of a package, such as vllm_ascend")
    wanted = packages or tuple(name for name in PROJECTS if (root / name / "__init__.py").is_file())
    if not wanted:
        raise InputError(
            f"{root}: holds neither vllm/ nor lmcache/; give the directory that a package lies in, or --package"
        )
    for project in wanted:
        files = [path for path in sorted((root / project).rglob("*.py")) if path.is_file()]
        if not files:
            raise InputError(f"{root / project}: no Python file there")
        try:
            sources = {path.relative_to(root).as_posix(): _text(path.read_bytes()) for path in files}
        except OSError as error:
            raise InputError(f"{root / project}: cannot be read: {error}") from None
        yield Release(project, _installed_version(root, project), str(root / project), "", sources)


def _installed_version(root: Path, project: str) -> str:
    """Return the version that the package's metadata or its version file names, or "local"."""
    for pattern in (f"{project}-*.dist-info/METADATA", "PKG-INFO"):
        for path in sorted(root.glob(pattern)):
            if hit := _METADATA_VERSION.search(_text(path.read_bytes())):
                return hit.group(1)
    for name in ("_version.py", "version.py", "__init__.py"):
        path = root / project / name
        if path.is_file() and (hit := _VERSION_LINE.search(_text(path.read_bytes()))):
            return hit.group(1) or hit.group(2)
    return "local"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")
