from __future__ import annotations

import contextlib
import hashlib
import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from lmdiag.catalog.extract import extract
from lmdiag.catalog.sources import Release, read_archive, read_directory
from lmdiag.errors import InputError

FILES = {"vllm/__init__.py": b"x = 1\n", "vllm/config/model.py": b"raise ValueError('text')\n", "vllm/csrc/a.cpp": b"int x;"}
PYTHON = {"vllm/__init__.py": "x = 1\n", "vllm/config/model.py": "raise ValueError('text')\n"}


def sdist(directory: Path, files: dict[str, bytes], name: str = "vllm-0.26.0.tar.gz", root: str = "vllm-0.26.0/") -> Path:
    path = directory / name
    with tarfile.open(path, "w:gz") as archive:
        for inner, data in files.items():
            member = tarfile.TarInfo(root + inner)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def zipped(directory: Path, files: dict[str, bytes], name: str, root: str = "") -> Path:
    path = directory / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, data in files.items():
            archive.writestr(root + inner, data)
    return path


def tree(directory: Path, files: dict[str, bytes]) -> Path:
    for inner, data in files.items():
        path = directory / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


def test_a_source_distribution(tmp_path: Path) -> None:
    path = sdist(tmp_path, {**FILES, "tests/test_a.py": b"", "setup.py": b"", "tests/vllm/b.py": b""})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_archive(path) == Release("vllm", "0.26.0", "vllm-0.26.0.tar.gz", digest, PYTHON)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("vllm-0.15.1-cp38-abi3-manylinux_2_31_x86_64.whl", "0.15.1"),
        ("vllm-0.4.0.post1+cu118-cp38-abi3-linux_x86_64.whl", "0.4.0.post1+cu118"),
        ("vllm-0.4.0-1-cp38-abi3-linux_x86_64.whl", "0.4.0"),
        ("VLLM-0.4.0rc1-py3-none-any.whl", "0.4.0rc1"),
    ],
)
def test_a_wheel(tmp_path: Path, name: str, version: str) -> None:
    release = read_archive(zipped(tmp_path, {**FILES, "vllm-0.1.dist-info/METADATA": b"Version: 9\n"}, name))
    assert (release.project, release.version, release.sources) == ("vllm", version, PYTHON)


def test_a_zipped_source_distribution(tmp_path: Path) -> None:
    release = read_archive(zipped(tmp_path, FILES, "vllm-0.2.0.zip", "vllm-0.2.0/"))
    assert (release.version, release.sources) == ("0.2.0", PYTHON)


@pytest.mark.parametrize(
    "name",
    ["vllm.tar.gz", "vllm-latest.tar.gz", "vllm-0.26.0.tar", "vllm-0.26.0.whl", "-0.26.0.tar.gz", "vllm-0.26.0.tar.gz.part", "x"],
)
def test_a_name_that_is_no_archives_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="not named like"):
        read_archive(tmp_path / name)


@pytest.mark.parametrize("name", ["vllm-0.26.0.tar.gz", "vllm-0.26.0-py3-none-any.whl"])
def test_an_archive_without_the_package_is_refused(tmp_path: Path, name: str) -> None:
    files = {"other/a.py": b"", "vllm/a.txt": b"", "vllm.py": b""}
    path = sdist(tmp_path, files, name) if name.endswith("gz") else zipped(tmp_path, files, name)
    with pytest.raises(InputError, match="no Python file in a directory vllm/"):
        read_archive(path)


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as an archive"):
        read_archive(tmp_path / "vllm-0.26.0.tar.gz")


def test_every_truncated_archive_is_refused(tmp_path: Path) -> None:
    files = {f"vllm/module_{number}.py": random.Random(number).randbytes(300).hex().encode() for number in range(9)}  # noqa: S311
    for path in (sdist(tmp_path, files), zipped(tmp_path, files, "vllm-0.26.0-py3-none-any.whl")):
        whole = path.read_bytes()
        for size in range(0, len(whole) - 8, 97):
            path.write_bytes(whole[:size])
            with pytest.raises(InputError):
                read_archive(path)


def test_every_damaged_archive_is_refused_or_read(tmp_path: Path) -> None:
    files = {f"vllm/module_{number}.py": random.Random(number).randbytes(300).hex().encode() for number in range(5)}  # noqa: S311
    for path in (sdist(tmp_path, files), zipped(tmp_path, files, "vllm-0.26.0-py3-none-any.whl")):
        whole = path.read_bytes()
        for place in range(0, len(whole), 53):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            with contextlib.suppress(InputError):
                read_archive(path)


def test_names_that_lead_out_of_the_archive_write_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    path = sdist(directory, {"vllm/../../../out.py": b"x", "../vllm/up.py": b"y", "vllm/a.py": b"z"})
    assert read_archive(path).sources["vllm/a.py"] == "z"
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["in", path.name]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "vllm-0.26.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("vllm-0.26.0/vllm/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("vllm-0.26.0/vllm/a.py"))
    assert read_archive(path).sources == {"vllm/a.py": ""}


@pytest.mark.parametrize(
    "data",
    [
        b"raise ValueError('text')\n",
        b"\xef\xbb\xbfraise ValueError('text')\n",
        b"# caf\xe9\r\nraise ValueError('text')\r\n",
        b"# a \0 in a comment\nraise ValueError('text')\n",
        b"# -*- coding: latin-1 -*-\n# \xfc\nraise ValueError('text')\n",
    ],
    ids=["plain", "bom", "latin1-crlf", "nul", "cookie"],
)
def test_bytes_of_all_kinds_are_read(tmp_path: Path, data: bytes) -> None:
    sites, figures = extract(read_archive(sdist(tmp_path, {"vllm/a.py": data})).sources)
    assert figures.unparsable == ()
    assert [site.texts for site in sites] == [(("text",),)]


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"vllm-0.26.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: vllm\nVersion: 0.26.0\n"}, "0.26.0"),
        ({"PKG-INFO": b"Metadata-Version: 2.1\nVersion: 0.25.0\n"}, "0.25.0"),
        ({"vllm/_version.py": b"__version__ = version = '0.24.0'\n"}, "0.24.0"),
        ({"vllm/version.py": b'"""doc"""\n__version__ = "0.23.0"\n'}, "0.23.0"),
        ({"vllm/__init__.py": b"__version__ = '0.2.0'\n"}, "0.2.0"),
        ({"vllm-x.dist-info/METADATA": b"Name: vllm\n", "vllm/_version.py": b"__version__ = version = '1'"}, "1"),
        ({"other-3.dist-info/METADATA": b"Version: 3\n"}, "local"),
        ({}, "local"),
    ],
)
def test_the_version_of_a_directory(tmp_path: Path, files: dict[str, bytes], version: str) -> None:
    (release,) = read_directory(tree(tmp_path, {**FILES, **files}))
    assert release[:4] == ("vllm", version, str(tmp_path / "vllm"), "")
    assert release.sources.keys() >= PYTHON.keys()


def test_site_packages_may_hold_both(tmp_path: Path) -> None:
    tree(tmp_path, {**FILES, "lmcache/__init__.py": b"", "other/__init__.py": b""})
    assert [release.project for release in read_directory(tmp_path)] == ["vllm", "lmcache"]
    assert [release.project for release in read_directory(tmp_path, ("other",))] == ["other"]


def test_a_directory_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds neither"):
        list(read_directory(tmp_path))
    with pytest.raises(InputError, match="no Python file"):
        list(read_directory(tmp_path, ("vllm",)))


def test_odd_entries_of_a_directory_are_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, FILES)
    (tmp_path / "vllm/broken.py").symlink_to("nowhere.py")
    (tmp_path / "vllm/directory.py").mkdir()
    (release,) = read_directory(tmp_path)
    assert release.sources == PYTHON


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, FILES)
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "model.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"cannot be read: .*model\.py"):
        list(read_directory(tmp_path))


@pytest.mark.parametrize("name", ["", ".", "/etc", "pip/_internal", "../rich"])
def test_what_is_no_name_of_a_package_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="not the name of a package"):
        list(read_directory(tmp_path, (name,)))
