"""The unit and its drop-ins, as systemd-analyze judges them."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parent.parent / "systemd"
UNIT = "lmdiag.service"
DROP_INS = ("docker", "kubernetes", "ray")
COMBINATIONS = [chosen for size in range(4) for chosen in itertools.combinations(DROP_INS, size)]
LIMIT = 1.5

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@pytest.fixture(params=COMBINATIONS, ids=lambda chosen: "+".join(chosen) or "alone")
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The unit with some drop-ins beside it, calling a program that is there: verify looks."""
    text = (SHIPPED / UNIT).read_text(encoding="utf-8")
    path = tmp_path / UNIT
    path.write_text(text.replace("/opt/lmdiag/bin/lmdiag", "/bin/true"), encoding="utf-8")
    directory = tmp_path / f"{UNIT}.d"
    directory.mkdir()
    for name in request.param:
        shutil.copy(SHIPPED / f"{UNIT}.d/{name}.conf", directory)
    return path


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


@needs_systemd
def test_it_is_clean(unit: Path) -> None:
    done = analyze("verify", "--man=no", "--recursive-errors=yes", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_an_unknown_key_would_be_seen(unit: Path) -> None:
    unit.write_text(unit.read_text(encoding="utf-8").replace("UMask=", "UMaks="), encoding="utf-8")
    assert "UMaks" in analyze("verify", "--man=no", "--recursive-errors=yes", str(unit)).stderr


@needs_systemd
def test_it_is_hardened(unit: Path) -> None:
    done = analyze("security", "--offline=yes", f"--threshold={LIMIT * 10:.0f}", str(unit))
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stderr
    assert float(found.group(1)) <= LIMIT
    assert done.returncode == 0


def test_the_shipped_program_is_where_the_readme_puts_it() -> None:
    text = (SHIPPED / UNIT).read_text(encoding="utf-8")
    assert re.findall(r"(?m)^ExecStart=.*$", text) == ["ExecStart=/opt/lmdiag/bin/lmdiag watch"]


def test_the_credentials_are_those_of_the_example_configuration() -> None:
    given = re.findall(r"(?m)^#LoadCredential=([^:\n]+):(.+)$", (SHIPPED / UNIT).read_text(encoding="utf-8"))
    named = re.findall(r'(?m)^# [a-z-]+-file = "([^"/]+)"', (SHIPPED / "config.toml").read_text(encoding="utf-8"))
    assert given
    assert {name for name, _ in given} <= set(named)
    assert [path for _, path in given] == [f"/etc/lmdiag/{name}" for name, _ in given]


def test_every_drop_in_is_looked_at() -> None:
    assert sorted(path.name for path in (SHIPPED / f"{UNIT}.d").iterdir()) == [f"{name}.conf" for name in DROP_INS]


@pytest.mark.parametrize("name", ["docker", "kubernetes"])
def test_a_drop_in_gives_one_right_and_keeps_the_users_apart(name: str) -> None:
    text = (SHIPPED / f"{UNIT}.d/{name}.conf").read_text(encoding="utf-8")
    given = re.findall(r"(?m)^(?:Ambient|CapabilityBounding)\w*=(.*)$", text)
    assert given == ["CAP_DAC_READ_SEARCH"] * 2
    assert not re.search(r"(?m)^PrivateUsers=", text)
