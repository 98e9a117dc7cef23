"""The system that `lmdiag service` changes: its files are written at once or not at all, and every deed is told.

Every file that is written ends in a line with the checksum of what stands above it, so that a later version replaces its
own files and leaves alone what a person has edited.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from lmdiag.errors import LmdiagError, UsageError

UNIT = "lmdiag.service"
RUNNING = Path("/")
"""The root of the system that runs."""
NEW, SAVED = ".new", ".saved"
_SEAL = "# lmdiag service install wrote this; sha256 of the lines above: "
_PAST = {"write": "wrote", "update": "updated", "remove": "removed", "move": "moved", "run": "ran"}


class Target:
    """The system that is changed: the running one, or one below another root. It says each thing that it does."""

    def __init__(self, prefix: str, out: TextIO, *, dry_run: bool = False) -> None:
        self.root = Path(os.path.abspath(prefix))
        self.running = self.root == RUNNING
        self.dry_run = dry_run
        self.changed = False
        self._out = out
        self.unit = self.root / "etc/systemd/system" / UNIT
        self.drop_ins = self.root / f"etc/systemd/system/{UNIT}.d"
        self.config = self.root / "etc/lmdiag/config.toml"

    def say(self, text: str) -> None:
        """Tell one thing, in a line of its own."""
        print(text, file=self._out)

    def _do(self, verb: str, what: object, deed: Callable[[], object]) -> None:
        """Do it and then say so; a dry run only says it."""
        if not self.dry_run:
            deed()
        self.say(f"would {verb} {what}" if self.dry_run else f"{_PAST[verb]} {what}")

    def put(self, path: Path, text: str) -> None:
        """Write a file of ours. One that a person edited stays, and the new one is written beside it."""
        sealed, old = _sealed(text), read(path)
        if old == sealed:
            self.say(f"unchanged {path}")
        elif old is None or is_ours(old):
            self.write(path, sealed, "write" if old is None else "update")
            self.changed = True
        else:
            beside = path.with_name(path.name + NEW)
            self.say(f"kept {path}, which was edited; compare it with {beside.name}")
            self.write(beside, sealed)

    def write(self, path: Path, text: str, verb: str = "write") -> None:
        """Write a file that everybody may read, whole or not at all. Raises UsageError if that is not allowed."""
        try:
            self._do(verb, path, lambda: _write(path, text))
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}; run this as root, with sudo") from error

    def remove(self, path: Path) -> None:
        """Remove a file, a link or a whole directory, if it is there. Raises UsageError if that is not allowed."""
        directory = path.is_dir() and not path.is_symlink()
        if os.path.lexists(path):
            try:
                self._do("remove", path, lambda: shutil.rmtree(path) if directory else path.unlink())
            except OSError as error:
                raise UsageError(f"{path} cannot be removed: {error.strerror}; run this as root, with sudo") from error

    def put_aside(self, path: Path) -> None:
        """Remove a file of ours; one that a person edited is only renamed, so that systemd does not read it."""
        if is_ours(read(path)):
            self.remove(path)
        else:
            aside = path.with_name(path.name + SAVED)
            self._do("move", f"{path}, which was edited, to {aside.name}", lambda: path.replace(aside))

    def systemctl(self, *arguments: str) -> None:
        """Run systemctl. Raises LmdiagError with what it says."""
        self._do("run", " ".join(("systemctl", *arguments)), lambda: _obeyed(arguments))

    def without_systemd(self) -> str:
        """Why systemctl is of no use here; "" if it is."""
        if not self.running:
            return f"{self.root} is not the running system"
        return "" if runs_systemd() else "systemd does not run here"


def need_root(target: Target) -> None:
    """Raise UsageError if the running system is to be changed by somebody who may not."""
    if target.running and not target.dry_run and os.geteuid() != 0:
        raise UsageError("the service's files belong to root; run this as root, with sudo, or see --dry-run")


def is_ours(text: str | None) -> bool:
    """Tell whether a file's text is as some version of lmdiag wrote it."""
    return text is not None and _SEAL in text and text == _sealed(text[: text.rfind(_SEAL)])


def _sealed(text: str) -> str:
    return f"{text}{_SEAL}{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}\n"


def read(path: Path) -> str | None:
    """Read a file, whatever its bytes; None if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that systemd never reads half of it; 0644, whatever the umask."""
    for directory in reversed([place for place in path.parents if not place.exists()]):
        directory.mkdir()
        directory.chmod(0o755)
    descriptor, name = tempfile.mkstemp(prefix=".lmdiag-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def runs_systemd() -> bool:
    """Ask as sd_booted(3) does."""
    return os.path.isdir("/run/systemd/system") and shutil.which("systemctl") is not None


def systemctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemctl, whatever comes of it."""
    return subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607


def _obeyed(arguments: tuple[str, ...]) -> None:
    done = systemctl(*arguments)
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise LmdiagError(f"systemctl {' '.join(arguments)}: {said}; journalctl -u {UNIT} -n 30 may show why")
