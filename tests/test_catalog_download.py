from __future__ import annotations

import importlib
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmdiag.catalog.download import Index, open_index
from lmdiag.errors import InputError

HOST = "https://files.example/packages/"
WHEEL = "cp38-abi3-manylinux_2_31_x86_64.whl"


class Version:
    """As much of packaging's as is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_prerelease = "rc" in text or "dev" in text

    def key(self) -> list[int]:
        """The numbers of it."""
        return [int(part) for part in self.text.split(".") if part.isdigit()]

    def __lt__(self, other: Version) -> bool:
        return self.key() < other.key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


def candidate(version: str, name: str, *, yanked: bool = False) -> SimpleNamespace:
    link = SimpleNamespace(
        filename=urllib.parse.unquote(name), is_yanked=yanked, url_without_fragment=HOST + name, url=HOST + name + "#sha256=0"
    )
    return SimpleNamespace(version=Version(version), link=link)


class Answer:
    """An answer of a server, in pieces."""

    def __init__(self, *pieces: bytes, length: int | None = None, error: OSError | None = None) -> None:
        self._pieces, self._error = pieces, error
        self.headers = {} if length is None else {"Content-Length": str(length)}

    def raise_for_status(self) -> None:
        """Raise what the server refuses with."""
        if self._error and not self._pieces:
            raise self._error

    def iter_content(self, _size: int) -> Iterator[bytes]:
        """Give the pieces, then break off."""
        yield from self._pieces
        if self._error:
            raise self._error


class Session:
    """Gives the same answer to everything."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def get(self, address: str, **_: Any) -> Answer:
        """Note the address."""
        self.asked.append(address)
        return self._answer


def index_of(*candidates: SimpleNamespace, answer: Answer | None = None) -> Index:
    finder = SimpleNamespace(find_all_candidates=lambda _project: list(candidates))
    return Index(finder, Session(answer or Answer()))


def test_the_source_distribution_is_preferred_to_a_wheel() -> None:
    found = index_of(
        candidate("0.10.0", f"vllm-0.10.0-{WHEEL}"),
        candidate("0.10.0", "vllm-0.10.0.tar.gz"),
        candidate("0.9.0", "vllm-0.9.0.zip"),
        candidate("0.9.0", f"vllm-0.9.0-{WHEEL}"),
        candidate("0.15.0", f"vllm-0.15.0-{WHEEL}"),
    ).releases("vllm")
    assert list(found.items()) == [
        ("0.9.0", HOST + "vllm-0.9.0.zip"),
        ("0.10.0", HOST + "vllm-0.10.0.tar.gz"),
        ("0.15.0", HOST + f"vllm-0.15.0-{WHEEL}"),
    ]


def test_the_choice_does_not_depend_on_the_order_of_the_index() -> None:
    files = [candidate("0.1.0", f"vllm-0.1.0-{tag}.whl") for tag in ("cp310-cp310-a", "cp39-cp39-b", "cp38-cp38-c")]
    assert index_of(*files).releases("vllm") == index_of(*reversed(files)).releases("vllm")


def test_prereleases_are_passed_over_and_withdrawn_releases_are_not() -> None:
    found = index_of(
        candidate("0.1.0", "vllm-0.1.0.tar.gz"),
        candidate("0.2.0rc1", "vllm-0.2.0rc1.tar.gz"),
        candidate("0.3.0.dev1", "vllm-0.3.0.dev1.tar.gz"),
        candidate("0.4.0", "vllm-0.4.0.tar.gz", yanked=True),
        candidate("0.5.0", "vllm-0.5.0.tar.gz", yanked=True),
        candidate("0.5.0", f"vllm-0.5.0-{WHEEL}"),
    )
    assert found.releases("vllm") == {
        "0.1.0": HOST + "vllm-0.1.0.tar.gz",
        "0.4.0": HOST + "vllm-0.4.0.tar.gz",
        "0.5.0": HOST + "vllm-0.5.0.tar.gz",
    }


def test_an_index_without_releases_is_told() -> None:
    for found in (index_of(), index_of(candidate("1.0.0rc1", "vllm-1.0.0rc1.tar.gz"))):
        with pytest.raises(InputError, match="no release of 'vllm'"):
            found.releases("vllm")


@pytest.mark.parametrize("length", [6, None])
def test_a_file_is_fetched(tmp_path: Path, length: int | None) -> None:
    index = index_of(answer=Answer(b"abc", b"def", length=length))
    path = index.fetch(HOST + "vllm-0.1.0.tar.gz", tmp_path)
    assert path == tmp_path / "vllm-0.1.0.tar.gz"
    assert path.read_bytes() == b"abcdef"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("vllm-0.1.0.tar.gz?token=a/b", "vllm-0.1.0.tar.gz"),
        ("vllm-0.1.0.tar.gz#sha256=00", "vllm-0.1.0.tar.gz"),
        (f"vllm-0.4.0%2Bcu118-{WHEEL}", f"vllm-0.4.0+cu118-{WHEEL}"),
        ("..%2F..%2Fvllm-0.1.0.tar.gz", "vllm-0.1.0.tar.gz"),
    ],
)
def test_the_name_of_a_fetched_file(tmp_path: Path, address: str, name: str) -> None:
    assert index_of(answer=Answer(b"x")).fetch(HOST + address, tmp_path) == tmp_path / name


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(b"abc", length=6), "broke off after 3 of 6 bytes"),
        (Answer(b"abc", error=ConnectionResetError("reset by peer"), length=6), "cannot be fetched: reset by peer"),
        (Answer(error=OSError("404 Client Error")), "cannot be fetched: 404 Client Error"),
    ],
    ids=["truncated", "reset", "missing"],
)
def test_a_file_that_does_not_arrive_whole_is_not_kept(tmp_path: Path, answer: Answer, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        index_of(answer=answer).fetch(HOST + "vllm-0.1.0.tar.gz", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be fetched"):
        index_of(answer=Answer(b"x")).fetch(HOST + "vllm-0.1.0.tar.gz", tmp_path / "none")


class Command:
    """As much of pip's `download` as is used."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.is_open = False

    @contextmanager
    def main_context(self) -> Iterator[None]:
        """Be open for the time."""
        self.is_open = True
        yield
        self.is_open = False

    def parse_args(self, arguments: list[str]) -> tuple[object, list[str]]:
        """Note the arguments."""
        self.arguments = arguments
        return object(), []

    def get_default_session(self, _options: object) -> Session:
        """Give a session."""
        return Session(Answer(b"x"))

    def _build_package_finder(self, _options: object, _session: object, *, ignore_requires_python: bool) -> SimpleNamespace:
        assert ignore_requires_python
        return SimpleNamespace(find_all_candidates=lambda _: [candidate("0.1.0", "vllm-0.1.0.tar.gz")])


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Make `pip._internal.commands` another module, or an error."""

    def replace(commands: object) -> None:
        def load(_name: str) -> object:
            if isinstance(commands, Exception):
                raise commands
            return commands

        monkeypatch.setattr(importlib, "import_module", load)

    return replace


def test_pip_is_asked(pip: Callable[[object], None]) -> None:
    command = Command()
    pip(SimpleNamespace(create_command=lambda _name: command))
    with open_index() as index:
        assert command.is_open
        assert index.releases("vllm") == {"0.1.0": HOST + "vllm-0.1.0.tar.gz"}
    assert command.arguments == ["--no-deps"]
    assert not command.is_open


@pytest.mark.parametrize(
    "commands",
    [ModuleNotFoundError("No module named 'pip'"), SimpleNamespace(), SimpleNamespace(create_command=lambda: None)],
    ids=["missing", "renamed", "changed"],
)
def test_a_pip_that_is_missing_or_different_is_told(pip: Callable[[object], None], commands: object) -> None:
    pip(commands)
    with pytest.raises(InputError, match="fetch the archives by hand"), open_index():
        pass
