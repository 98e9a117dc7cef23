"""What `lmdiag service` writes, keeps, removes and says, below another root and with a systemctl that only notes its calls."""

from __future__ import annotations

import io
import os
import sys
import tomllib
from pathlib import Path

import pytest

from lmdiag import service_command, service_target
from lmdiag.errors import LmdiagError, UsageError
from lmdiag.service_command import DROP_INS, install, service_status, uninstall

PROGRAM = "/opt/lmdiag/bin/lmdiag"
UNIT = "etc/systemd/system/lmdiag.service"
CONFIG = "etc/lmdiag/config.toml"


@pytest.fixture(autouse=True)
def _called_as(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program runs from a venv in an open place."""
    program = tmp_path / "venv/bin/lmdiag"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "service", "install"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


class System:
    """The running system, with its root elsewhere and a systemctl that answers as told."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.calls = directory / "calls"
        self._program = directory / "bin/systemctl"
        self._program.parent.mkdir()
        self.answer("exit 0")

    def answer(self, script: str) -> None:
        """What systemctl does from now on."""
        self._program.write_text(f'#!/bin/sh\necho "$*" >> {self.calls}\n{script}\n', encoding="utf-8")
        self._program.chmod(0o755)

    def called(self) -> list[str]:
        """The calls since the last time."""
        found = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return found


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    system = System(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(service_target, "runs_systemd", lambda: True)
    monkeypatch.setattr(service_target, "RUNNING", system.root)
    monkeypatch.setattr(service_command, "_check_reachable", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return system


def done(root: Path, *drop_ins: str, now: bool = True, dry_run: bool = False) -> list[str]:
    """What an installation says, with the root cut off."""
    out = io.StringIO()
    assert install(str(root), drop_ins, now, dry_run, out) == 0
    return out.getvalue().replace(str(root), "").splitlines()


def undone(root: Path, *, purge: bool = False) -> list[str]:
    """What a removal says."""
    out = io.StringIO()
    assert uninstall(str(root), purge, out) == 0
    return out.getvalue().replace(str(root), "").splitlines()


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink()}


# -- what is written ---------------------------------------------------------------------------------------------------


def test_it_writes_the_unit_and_a_configuration_and_says_so(root: Path) -> None:
    said = done(root)
    assert files(root) == {UNIT, CONFIG}
    assert said[:2] == [f"wrote /{UNIT}", f"wrote /{CONFIG}"]
    assert "left out systemctl" in said[-1]
    assert said[-1].endswith("is not the running system")


def test_the_unit_runs_the_program_that_was_called(root: Path, tmp_path: Path) -> None:
    done(root)
    lines = (root / UNIT).read_text(encoding="utf-8").splitlines()
    assert f"ExecStart={tmp_path}/venv/bin/lmdiag watch" in lines
    assert not [line for line in lines if PROGRAM in line]


def test_a_module_is_run_as_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/lmdiag/__main__.py"])
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    done(root)
    assert f"ExecStart={sys.executable} -m lmdiag watch\n" in (root / UNIT).read_text(encoding="utf-8")


def test_a_path_that_a_unit_reads_otherwise_is_refused(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "100%/lmdiag"
    program.parent.mkdir()
    program.symlink_to(sys.argv[0])
    sys.argv[0] = str(program)
    with pytest.raises(UsageError, match=r"100%/lmdiag.*/opt/lmdiag"):
        done(root)
    assert not root.exists()


@pytest.mark.parametrize("name", DROP_INS)
def test_a_drop_in_brings_its_logs_into_a_new_configuration(root: Path, name: str) -> None:
    done(root, name)
    assert files(root) == {UNIT, CONFIG, f"{UNIT}.d/{name}.conf"}
    config = tomllib.loads((root / CONFIG).read_text(encoding="utf-8"))
    assert config == {"paths": ["/var/log/vllm", DROP_INS[name]]}


def test_everybody_may_read_the_files_whatever_the_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        done(root, "ray")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (root, *root.rglob("*")) if path.is_dir()}
    assert modes == {0o755}
    assert {(root / name).stat().st_mode & 0o777 for name in files(root)} == {0o644}


def test_a_dry_run_writes_nothing(root: Path) -> None:
    said = done(root, "ray", dry_run=True)
    assert said[:3] == [f"would write /{UNIT}", f"would write /{UNIT}.d/ray.conf", f"would write /{CONFIG}"]
    assert not root.exists()


# -- again -------------------------------------------------------------------------------------------------------------


def test_a_second_time_nothing_changes(root: Path) -> None:
    done(root, "ray")
    before = {name: (root / name).stat().st_mtime_ns for name in files(root)}
    said = done(root, "ray")
    assert said[:2] == [f"unchanged /{UNIT}", f"unchanged /{UNIT}.d/ray.conf"]
    assert {name: (root / name).stat().st_mtime_ns for name in files(root)} == before


def test_another_version_replaces_its_own_files(root: Path) -> None:
    done(root, "ray")
    new = (root / UNIT).read_text(encoding="utf-8")
    body = new[: new.index(service_target._SEAL)].replace("Nice=10", "Nice=5")
    (root / UNIT).write_text(service_target._sealed(body), encoding="utf-8")
    said = done(root)
    assert said[:2] == [f"updated /{UNIT}", f"unchanged /{UNIT}.d/ray.conf"]
    assert (root / UNIT).read_text(encoding="utf-8") == new


@pytest.mark.parametrize("edit", [b"# mine\n", b"\xff\n"])
def test_what_a_person_edited_stays_and_the_new_one_lies_beside_it(root: Path, edit: bytes) -> None:
    done(root)
    new = (root / UNIT).read_bytes()
    (root / UNIT).write_bytes(edit + new)
    (root / CONFIG).write_text("paths = []\n", encoding="utf-8")
    said = done(root, "docker")
    assert f"kept /{UNIT}, which was edited; compare it with lmdiag.service.new" in said
    assert f"kept /{CONFIG}; put /var/lib/docker/containers into its `paths`" in said
    assert (root / UNIT).read_bytes() == edit + new
    assert (root / f"{UNIT}.new").read_bytes() == new
    assert (root / CONFIG).read_text(encoding="utf-8") == "paths = []\n"


def test_what_cannot_be_written_is_told_with_its_path(root: Path) -> None:
    root.mkdir()
    (root / "etc").write_text("a file", encoding="utf-8")
    with pytest.raises(UsageError, match=r"lmdiag\.service cannot be written: .*sudo"):
        done(root)


# -- systemd -----------------------------------------------------------------------------------------------------------


def test_the_running_system_takes_it_up(system: System) -> None:
    system.answer("[ $1 = is-active ] && exit 3; exit 0")
    said = done(system.root)
    assert said[-2:] == ["ran systemctl daemon-reload", "ran systemctl enable --now lmdiag.service"]
    assert [call for call in system.called() if not call.startswith("is-active")] == [
        "daemon-reload",
        "enable --now lmdiag.service",
    ]


def test_a_running_service_is_restarted_only_for_a_change(system: System) -> None:
    done(system.root)
    system.called()
    done(system.root)
    assert "restart lmdiag.service" not in system.called()
    done(system.root, "ray")
    assert "restart lmdiag.service" in system.called()


def test_it_is_not_started_where_that_is_not_wanted(system: System) -> None:
    said = done(system.root, now=False)
    assert system.called() == ["daemon-reload"]
    assert said[-1] == "left out systemctl enable --now lmdiag.service"


def test_a_dry_run_asks_systemd_for_nothing(system: System) -> None:
    done(system.root, dry_run=True)
    assert [call for call in system.called() if not call.startswith("is-active")] == []


def test_what_systemctl_refuses_is_told(system: System) -> None:
    system.answer('[ $1 = enable ] && echo "Unit is masked." >&2 && exit 1; exit 0')
    with pytest.raises(LmdiagError, match=r"enable --now lmdiag\.service: Unit is masked\..*journalctl"):
        done(system.root)


def test_without_systemd_the_files_are_written(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_target, "runs_systemd", lambda: False)
    assert done(system.root)[-1].endswith("systemd does not run here")
    assert system.called() == []
    assert UNIT in files(system.root)


@pytest.mark.parametrize("command", [done, undone])
def test_it_needs_root(system: System, monkeypatch: pytest.MonkeyPatch, command: object) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="sudo"):
        command(system.root)  # type: ignore[operator]
    assert not system.root.exists()
    done(system.root, dry_run=True)


# -- a program that the service's user could not run ----------------------------------------------------------------------


def program_needing(path: Path) -> service_command._Program:
    return service_command._Program((PROGRAM,), (str(path),))


def test_a_closed_home_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    library = tmp_path / "home/lib/lmdiag.py"
    library.parent.mkdir(parents=True)
    library.write_text("", encoding="utf-8")
    service_command._check_reachable(program_needing(library), tmp_path)
    library.chmod(0o600)
    with pytest.raises(UsageError, match=r"lmdiag\.py is closed to others \(mode 0600\)"):
        service_command._check_reachable(program_needing(library), tmp_path)
    library.chmod(0o644)
    (tmp_path / "home").chmod(0o700)
    with pytest.raises(UsageError, match=r"home is closed to others \(mode 0700\); .*/opt/lmdiag/bin/pip"):
        service_command._check_reachable(program_needing(library), tmp_path)


def test_a_link_into_a_closed_home_is_followed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home/lmdiag").write_text("", encoding="utf-8")
    link = tmp_path / "lmdiag"
    link.symlink_to(tmp_path / "home/lmdiag")
    with pytest.raises(UsageError, match="home is closed to others"):
        service_command._check_reachable(program_needing(link), tmp_path)


@pytest.mark.parametrize("place", ["/tmp/venv/bin/lmdiag", "/var/tmp/lmdiag"])  # noqa: S108
def test_a_private_tmp_hides_it(place: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be seen by the service.*/opt/lmdiag"):
        service_command._check_reachable(program_needing(Path(place)))


# -- status and removal ------------------------------------------------------------------------------------------------


def status(root: Path) -> tuple[int, list[str]]:
    out = io.StringIO()
    code = service_status(str(root), out)
    return code, out.getvalue().replace(str(root), "").splitlines()


def test_the_status_says_what_is_there(root: Path) -> None:
    code, said = status(root)
    assert (code, said[0]) == (1, f"missing    /{UNIT}; lmdiag service install writes it")
    done(root, "ray")
    with (root / UNIT).open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    code, said = status(root)
    assert code == 0
    assert said[:3] == [f"edited     /{UNIT}", f"installed  /{UNIT}.d/ray.conf", f"present    /{CONFIG}"]


@pytest.mark.parametrize(("state", "code"), [("active", 0), ("reloading", 0), ("failed", 1), ("activating", 1)])
def test_the_status_says_whether_it_runs(system: System, state: str, code: int) -> None:
    done(system.root)
    system.answer(f"echo ActiveState={state}; echo StatusText=3 sources = all; echo Result=")
    assert status(system.root)[0] == code
    assert status(system.root)[1][-2:] == [f"ActiveState={state}", "StatusText=3 sources = all"]


def test_a_removal_keeps_configuration_and_state(system: System) -> None:
    done(system.root, *DROP_INS)
    (system.root / "var/lib/lmdiag").mkdir(parents=True)
    system.called()
    said = undone(system.root)
    assert system.called() == ["disable --now lmdiag.service", "daemon-reload"]
    assert files(system.root) == {CONFIG}
    assert not (system.root / f"{UNIT}.d").exists()
    assert said[-2:] == ["kept /etc/lmdiag; --purge removes it", "kept /var/lib/lmdiag; --purge removes it"]


def test_a_purge_leaves_nothing(root: Path) -> None:
    done(root, *DROP_INS)
    (root / f"{UNIT}.saved").write_text("old", encoding="utf-8")
    (root / f"{UNIT}.new").write_text("new", encoding="utf-8")
    (root / "var/lib/private/lmdiag").mkdir(parents=True)
    (root / "var/lib/private/lmdiag/state.db").write_text("", encoding="utf-8")
    (root / "var/lib/lmdiag").symlink_to("private/lmdiag")
    (root / "etc/systemd/system/multi-user.target.wants").mkdir()
    (root / "etc/systemd/system/multi-user.target.wants/lmdiag.service").symlink_to(f"/{UNIT}")
    undone(root, purge=True)
    assert files(root) == set()
    assert not (root / "etc/lmdiag").exists()


def test_a_removal_puts_edited_files_aside(root: Path) -> None:
    done(root)
    (root / UNIT).write_text("[Service]\n", encoding="utf-8")
    assert f"moved /{UNIT}, which was edited, to lmdiag.service.saved" in undone(root)
    assert files(root) == {CONFIG, f"{UNIT}.saved"}
    assert (root / f"{UNIT}.saved").read_text(encoding="utf-8") == "[Service]\n"


def test_a_drop_in_of_ones_own_stays(root: Path) -> None:
    done(root, "ray")
    (root / f"{UNIT}.d/override.conf").write_text("[Service]\nNice=0\n", encoding="utf-8")
    assert f"kept /{UNIT}.d, in which there are files of your own" in undone(root)
    assert files(root) == {CONFIG, f"{UNIT}.d/override.conf"}


def test_removing_twice_is_no_error(root: Path) -> None:
    done(root)
    undone(root, purge=True)
    assert undone(root, purge=True) == []
