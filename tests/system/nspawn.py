"""A machine with a real systemd: Debian's smallest system, booted by systemd-nspawn, with this lmdiag inside.

The root is made once by debootstrap, from the mirror that apt uses here, and never written to afterwards: each machine has
an overlay of it in memory. The interpreter, the venv and the checkout are mounted into it at the paths that they have here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

CHECKOUT = Path(__file__).parent.parent.parent
ROOT_VARIABLE = "LMDIAG_NSPAWN_ROOT"
_TOOLS = ("systemd-nspawn", "debootstrap", "nsenter", "setpriv", "unshare")
# The machine's systemd outlives a killed nspawn. In a process namespace whose first process is nspawn it cannot.
_DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_PACKAGES = "systemd,systemd-sysv,dbus,python3-minimal,python3"
_PARTS = ("--variant=minbase", f"--include={_PACKAGES}")
_BOOT, _HALT, _COMMAND = 60.0, 20.0, 60.0  # seconds, generous: two cores are shared by many


def missing() -> str:
    """Why no machine can be had here; "" if one can."""
    if os.geteuid() != 0:
        return "systemd-nspawn needs root"
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def root_directory(fallback: Path) -> Path:
    """Return a Debian root, made if it is not there yet (about a minute): $LMDIAG_NSPAWN_ROOT, or below `fallback`."""
    root = Path(os.environ.get(ROOT_VARIABLE) or fallback / "root").absolute()
    if not (root / "etc/hosts").exists():  # written last: what debootstrap left unfinished does not count
        shutil.rmtree(root, ignore_errors=True)
        codename, mirror = _distribution()
        root.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["debootstrap", *_PARTS, codename, str(root), mirror], capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    return root


def _distribution() -> tuple[str, str]:
    """The codename of this system and the mirror that apt gets it from: what runs here then runs there."""
    release = dict(
        line.partition("=")[::2] for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    )
    codename = release["VERSION_CODENAME"].strip('"')
    what = ["--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {codename}", "Component: main"]
    found = subprocess.run(
        ["apt-get", "indextargets", *what], capture_output=True, text=True, check=True
    ).stdout.split()
    assert found, f"apt knows no mirror of {codename}"
    return codename, found[0]


def _shared() -> list[Path]:
    """What the machine gets from here, read-only; a system's own Python is in the root anyway."""
    places = [CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)]
    outer = [place for place in places if not place.is_relative_to("/usr")]
    return [place for place in outer if not any(place != other and place.is_relative_to(other) for other in outer)]


class Machine:
    """A booted machine without a network. Leaving the block halts it; it dies with this process in any case."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._outer: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def __enter__(self) -> Self:
        for place in _shared():
            _make_reachable(self._root, place)
        environment = os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_NSPAWN_LOCK": "0"}
        name = f"--machine=lmdiag-{os.getpid()}"
        options = [
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--private-network",
            "--console=pipe",
            "--volatile=overlay",
        ]
        binds = [f"--bind-ro={place}" for place in _shared()]
        command = ["systemd-nspawn", *options, name, *binds, f"--directory={self._root}", "--boot"]
        self._outer = subprocess.Popen(
            [*_DIE_WITH_US, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.until(self._booted, "boot", _BOOT)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Halt the machine; if that takes too long, kill it, and with its first process all others."""
        if self._outer is None:
            return
        for nspawn in _children(self._outer.pid):
            os.kill(nspawn, signal.SIGTERM)
        try:
            self._outer.wait(_HALT)
        except subprocess.TimeoutExpired:
            self._outer.kill()
            self._outer.wait()
        self._outer = None

    def _booted(self) -> bool:
        assert self._outer is not None
        assert self._outer.poll() is None, f"systemd-nspawn ended with {self._outer.returncode}"
        leaders = [leader for nspawn in _children(self._outer.pid) for leader in _children(nspawn)]
        self._leader = leaders[0] if leaders else 0
        return bool(leaders) and self.run("systemctl", "is-system-running", check=False).stdout.strip() == "running"

    def run(self, *command: str, check: bool = True, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command inside, as root, with `text` on its standard input."""
        inside = ["nsenter", "--target", str(self._leader), "--all", *command]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        done = subprocess.run(
            inside, input=text, capture_output=True, text=True, timeout=_COMMAND, env=environment, errors="replace"
        )
        if check and done.returncode:
            said = f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}\n"
            raise AssertionError(said + self.run("journalctl", "-n", "60", check=False).stdout)
        return done

    def write(self, path: str, text: str, *, append: bool = False, mode: str = "644") -> None:
        """Write a file inside, with the directories that it needs."""
        self.run("mkdir", "-p", os.path.dirname(path))
        self.run("tee", *(["-a"] if append else []), path, text=text)
        self.run("chmod", mode, path)

    def until(self, condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
        """Wait for the machine, whose clock nobody can drive; fail with the lmdiag journal if it takes too long."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                journal = self.run("journalctl", "-n", "60", check=False).stdout if self._leader else ""
                raise AssertionError(f"not within {seconds:g} s: {what}\n{journal}")
            time.sleep(0.1)

    def journal(self, unit: str) -> str:
        """What a unit has printed so far."""
        return self.run("journalctl", "--quiet", f"_SYSTEMD_UNIT={unit}", "-o", "cat").stdout

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()


def _children(pid: int) -> list[int]:
    """The children of a process's first thread; none if it is gone."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _make_reachable(root: Path, place: Path) -> None:
    """Open the way to a place inside: a home here may be closed, and the service there is nobody's."""
    for directory in reversed([place, *place.parents][:-1]):
        inside = root / directory.relative_to("/")
        inside.mkdir(exist_ok=True)
        inside.chmod(0o755)
