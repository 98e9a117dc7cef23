"""A wheel built from the tree holds what a scan needs: the cards, their index, and the catalogue."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("lmdiag", "rules", "systemd", "pyproject.toml", "README.md", "LICENSE", "NOTICE")
OFFLINE = re.compile(r"No matching distribution found for setuptools|Failed to establish a new connection")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a wheel, built from a copy: a build leaves files beside the sources."""
    tree = tmp_path_factory.mktemp("tree")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tree / "out"), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("no package index: the build needs setuptools")
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_holds_every_file_of_the_rules(names: set[str]) -> None:
    rules = (path for path in (ROOT / "rules").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    wanted = {f"lmdiag/rules/{path.relative_to(ROOT / 'rules').as_posix()}" for path in rules}
    assert "lmdiag/rules/catalog/catalog.bin" in wanted
    assert wanted - names == set()


def test_it_holds_every_module(names: set[str]) -> None:
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lmdiag").rglob("*.py")}
    assert wanted - names == set()
