from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lmdiag.catalog import build as module
from lmdiag.catalog.build import build
from lmdiag.errors import InputError, UsageError
from lmdiag.match.catalog import read_catalog


def source(word: str) -> str:
    return f"def check(n):\n    raise ValueError(f'length {{n}} is {word}')\n"


def sdist(directory: Path, project: str, version: str, word: str = "bad") -> Path:
    """A source distribution of one module."""
    path = directory / f"{project}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        data = source(word).encode()
        member = tarfile.TarInfo(f"{project}-{version}/{project}/a.py")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return path


def wheel(directory: Path, project: str, version: str) -> Path:
    path = directory / f"{project}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{project}/a.py", source("bad"))
    return path


class FakeIndex:
    """An index whose releases lie nowhere, and which notes what is fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.broken: set[str] = set()

    def releases(self, project: str) -> dict[str, str]:
        """Three of vLLM."""
        if project != "vllm":
            raise InputError(f"the package index has no release of {project!r}")
        return {version: f"https://index/vllm-{version}.tar.gz" for version in ("0.9.0", "0.10.0", "0.11.0")}

    def fetch(self, address: str, directory: Path) -> Path:
        """Make a source distribution on the spot."""
        version = address.rpartition("-")[2].removesuffix(".tar.gz")
        self.fetched.append(version)
        if version in self.broken:
            raise InputError(f"{address}: cannot be fetched")
        return sdist(directory, "vllm", version, f"of {version}")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> FakeIndex:
    fake = FakeIndex()

    @contextmanager
    def opened() -> Iterator[FakeIndex]:
        yield fake

    monkeypatch.setattr(module, "open_index", opened)
    monkeypatch.setattr(module, "_CORES", 2)
    return fake


class Runner:
    """Builds into one directory, and keeps what was said."""

    def __init__(self, root: Path) -> None:
        self.into, self.work, self.said = root / "into", root / "work", list[str]()

    def __call__(self, *names: str, directory: str | None = None, packages: tuple[str, ...] = ()) -> bool:
        """Build from these, and return whether all could be read."""
        return build(names, directory, packages, self.into, self.work, self.said.append)

    @property
    def versions(self) -> dict[str, list[str]]:
        """The releases in the catalogue."""
        return read_catalog(str(self.into / "catalog.bin")).versions


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_archives_a_directory_and_named_releases_are_merged(run: Runner, index: FakeIndex, tmp_path: Path) -> None:
    (tmp_path / "site" / "lmcache").mkdir(parents=True)
    (tmp_path / "site" / "lmcache" / "__init__.py").write_text(source("local"))
    archives = [str(sdist(tmp_path, "vllm", "0.8.0")), str(wheel(tmp_path, "vllm", "0.15.0"))]
    assert run(*archives, "vllm==0.10.0", directory=str(tmp_path / "site"))
    assert run.versions == {"vllm": ["0.8.0", "0.10.0", "0.15.0"], "lmcache": ["local"]}
    assert index.fetched == ["0.10.0"]
    assert run.said[-1].startswith("4 releases")


def test_a_project_means_all_releases_that_are_not_there_yet(run: Runner, index: FakeIndex) -> None:
    assert run("vllm==0.10.0")
    assert run("vllm")
    assert run.versions == {"vllm": ["0.9.0", "0.10.0", "0.11.0"]}
    assert sorted(index.fetched) == ["0.10.0", "0.11.0", "0.9.0"]
    assert run("vllm")
    assert "nothing new" in run.said[-1]
    assert len(index.fetched) == 3


def test_in_steps_or_at_once_gives_the_same_catalogue(tmp_path: Path, index: FakeIndex) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole, steps = Runner(tmp_path / "a"), Runner(tmp_path / "b")
    whole("vllm")
    for version in ("0.11.0", "0.9.0", "0.10.0"):
        steps(f"vllm=={version}")
    assert (whole.into / "catalog.bin").read_bytes() == (steps.into / "catalog.bin").read_bytes()


def test_what_is_asked_for_twice_is_fetched_once(run: Runner, index: FakeIndex) -> None:
    assert run("vllm==0.9.0", "vllm==0.9.0", "vllm")
    assert sorted(index.fetched) == ["0.10.0", "0.11.0", "0.9.0"]


def test_an_unreadable_archive_is_told_and_the_others_are_merged(run: Runner, tmp_path: Path) -> None:
    good, bad = sdist(tmp_path, "vllm", "0.9.0"), sdist(tmp_path, "vllm", "0.10.0")
    bad.write_bytes(bad.read_bytes()[:60])
    assert not run(str(bad), str(tmp_path / "missing-1.0.tar.gz"), str(good))
    assert run.versions == {"vllm": ["0.9.0"]}
    for name in (bad.name, "missing-1.0.tar.gz"):
        assert any(name in text for text in run.said), name


def test_a_release_that_cannot_be_fetched_is_told_and_the_others_are_merged(run: Runner, index: FakeIndex) -> None:
    index.broken = {"0.10.0"}
    assert not run("vllm")
    assert run.versions == {"vllm": ["0.9.0", "0.11.0"]}
    assert any("vllm-0.10.0.tar.gz: cannot be fetched" in text for text in run.said)


def test_nothing_readable_writes_no_catalogue(run: Runner, tmp_path: Path) -> None:
    assert not run(str(tmp_path / "vllm-0.9.0.tar.gz"))
    assert not run.into.exists()


def test_an_interrupted_build_goes_on_with_the_files_that_are_whole(run: Runner, index: FakeIndex) -> None:
    run("vllm")
    (run.into / "catalog.bin").unlink()
    half = run.work / "vllm-0.10.0.jsonl.gz"
    half.write_bytes(half.read_bytes()[:20])
    index.fetched.clear()
    assert run("vllm")
    assert index.fetched == ["0.10.0"]
    assert run.versions == {"vllm": ["0.9.0", "0.10.0", "0.11.0"]}


def test_archives_of_the_index_do_not_stay(run: Runner, index: FakeIndex) -> None:
    run("vllm==0.9.0")
    assert [path.name for path in run.work.iterdir()] == ["vllm-0.9.0.jsonl.gz"]


def test_a_package_of_another_name(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "a.py").write_text(source("mine"))
    (tmp_path / "plugin" / "version.py").write_text('__version__ = "1.2.3"\n')
    assert run(directory=str(tmp_path), packages=("plugin",))
    assert run.versions == {"plugin": ["1.2.3"]}


def test_nothing_asked_for(run: Runner) -> None:
    with pytest.raises(UsageError, match="nothing to read"):
        run()


@pytest.mark.parametrize(("name", "problem"), [("vllm==0.99.0", "0.99.0"), ("nonesuch", "nonesuch")])
def test_a_release_or_project_that_the_index_does_not_have(run: Runner, index: FakeIndex, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        run(name)


def test_a_directory_without_packages(run: Runner, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither vllm/ nor lmcache/"):
        run(directory=str(tmp_path))
