"""`lmdiag service`: writes the unit, its drop-ins and an example configuration, and has systemd take them up."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

import lmdiag
from lmdiag.errors import UsageError
from lmdiag.service_target import NEW, RUNNING, SAVED, UNIT, Target, is_ours, need_root, read, systemctl

DROP_INS = {
    "docker": "/var/lib/docker/containers",
    "kubernetes": "/var/log/pods",
    "ray": "/tmp/ray/session_latest/logs",  # noqa: S108 - Ray's place, which is only named
}
"""The kinds of nodes, each with the logs that its drop-in lets the service read."""
LOGS = "/var/log/vllm"
"""Where the logs are of a server that was set up with some thought."""
_PLAIN = re.compile(r"[\w./+@:=,~-]+")
_HIDDEN = ("/tmp/", "/var/tmp/")  # noqa: S108 - PrivateTmp=yes puts empty directories there
_ELSEWHERE = (
    "put it where everybody may run it: /usr/bin/python3 -m venv /opt/lmdiag && /opt/lmdiag/bin/pip install lmdiag,"
    " then /opt/lmdiag/bin/lmdiag service install"
)


def install(prefix: str, drop_ins: Sequence[str], now: bool, dry_run: bool, out: TextIO) -> int:
    """Write the unit, the drop-ins of these kinds of nodes and the configuration; enable and start it if `now`.

    Can be repeated: files that are as they should be stay, and a running service is restarted only if one changed.
    Drop-ins that are installed already are kept up to date. Returns 0. Raises UsageError (not root; a program that
    the service's user could not run) and LmdiagError (systemctl).
    """
    target = Target(prefix, out, dry_run=dry_run)
    need_root(target)
    program = _program()
    if target.running:
        _check_reachable(program)
    target.put(target.unit, _unit(program))
    for name in DROP_INS:
        path = target.drop_ins / f"{name}.conf"
        if name in drop_ins or path.exists():
            target.put(path, _shipped(f"{UNIT}.d/{name}.conf"))
    _configure(target, [DROP_INS[name] for name in DROP_INS if name in drop_ins])
    _take_up(target, now=now)
    return 0


def _configure(target: Target, paths: Sequence[str]) -> None:
    """Write a configuration that follows these logs as well. One that is there stays as it is."""
    listed = ", ".join(f'"{path}"' for path in (LOGS, *paths))
    if target.config.exists():
        target.say(f"kept {target.config}" + (f"; put {', '.join(paths)} into its `paths`" if paths else ""))
        return
    text = re.sub(r"(?m)^# paths = .*$", f"paths = [{listed}]", _shipped("config.toml"))
    target.write(target.config, text)
    target.say(f"it follows {listed}; change `paths` there, then systemctl reload {UNIT}")


def _take_up(target: Target, *, now: bool) -> None:
    """Have systemd read the files, and start the service."""
    if reason := target.without_systemd():
        target.say(f"left out systemctl daemon-reload and enable --now {UNIT}: {reason}")
        return
    target.systemctl("daemon-reload")
    if not now:
        target.say(f"left out systemctl enable --now {UNIT}")
        return
    ran = systemctl("is-active", "--quiet", UNIT).returncode == 0
    target.systemctl("enable", "--now", UNIT)
    if ran and target.changed:
        target.systemctl("restart", UNIT)


def uninstall(prefix: str, purge: bool, out: TextIO) -> int:
    """Stop and disable the service and remove its files; with `purge` the configuration and the state as well.

    Returns 0, also if there was nothing to remove. Raises UsageError and LmdiagError as `install` does.
    """
    target = Target(prefix, out)
    need_root(target)
    systemd = not target.without_systemd()
    if systemd and target.unit.exists():
        target.systemctl("disable", "--now", UNIT)
    target.remove(target.unit.parent / "multi-user.target.wants" / UNIT)
    for path in _files(target):
        if path.exists() and not purge:
            target.put_aside(path)
        for name in (path.name + NEW, *((path.name, path.name + SAVED) if purge else ())):
            target.remove(path.with_name(name))
    if target.drop_ins.is_dir() and not any(target.drop_ins.iterdir()):
        target.drop_ins.rmdir()
    elif target.drop_ins.is_dir():
        target.say(f"kept {target.drop_ins}, in which there are files of your own")
    if systemd:
        target.systemctl("daemon-reload")
    _remove_belongings(target, purge=purge)
    return 0


def _remove_belongings(target: Target, *, purge: bool) -> None:
    """Remove configuration and state, or say where they stay."""
    state = target.root / "var/lib/lmdiag"
    if purge:
        state_itself = state.parent / "private/lmdiag"  # DynamicUser= makes `state` a link to it
        for path in (target.config.parent, state, state_itself):
            target.remove(path)
        return
    for path in (target.config.parent, state):
        if path.exists():
            target.say(f"kept {path}; --purge removes it")


def service_status(prefix: str, out: TextIO) -> int:
    """Say what is installed and whether it runs. Returns 0 if it does (elsewhere: if it is installed), otherwise 1."""
    target = Target(prefix, out)
    installed = [path for path in _files(target) if path.exists()]
    for path in installed:
        target.say(f"{'installed' if is_ours(read(path)) else 'edited   '}  {path}")
    if not target.unit.exists():
        target.say(f"missing    {target.unit}; lmdiag service install writes it")
    target.say(f"{'present  ' if target.config.exists() else 'missing  '}  {target.config}")
    if reason := target.without_systemd():
        target.say(f"systemctl was not asked: {reason}")
        return 0 if target.unit in installed else 1
    return _tell_state(target)


def _tell_state(target: Target) -> int:
    names = ("LoadState", "UnitFileState", "ActiveState", "SubState", "Result", "NRestarts", "StatusText")
    done = systemctl("show", UNIT, *(f"--property={name}" for name in names))
    found = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    for name in names:
        if found.get(name):
            target.say(f"{name}={found[name]}")
    return 0 if found.get("ActiveState") in ("active", "reloading") else 1


def _files(target: Target) -> tuple[Path, ...]:
    """The unit and every drop-in that can be of ours."""
    return (target.unit, *(target.drop_ins / f"{name}.conf" for name in DROP_INS))


class _Program(NamedTuple):
    """How the service calls lmdiag."""

    command: tuple[str, ...]
    needs: tuple[str, ...]
    """What its user must be able to reach."""


def _program() -> _Program:
    """The program that runs now, at the path by which it was called: that one outlives an upgrade."""
    called = os.path.abspath(sys.argv[0])
    beside = os.path.join(sys.prefix, "bin", "lmdiag")
    found = next((path for path in (called, beside) if path.endswith("/lmdiag") and os.access(path, os.X_OK)), None)
    command = (found,) if found and not os.path.isdir(found) else (sys.executable, "-m", "lmdiag")
    return _Program(command, (command[0], sys.executable, sys.base_prefix, lmdiag.__file__))


def _check_reachable(program: _Program, top: Path = RUNNING) -> None:
    """Raise UsageError if the service's user, who is nobody's and in no home, could not start the program.

    What lies above `top` is taken to be open.
    """
    for path in map(Path, (*program.needs, *map(os.path.realpath, program.needs))):
        if str(path).startswith(_HIDDEN) and top == RUNNING:
            raise UsageError(f"{path} cannot be seen by the service, which has a /tmp of its own; {_ELSEWHERE}")
        for place in reversed([path, *path.parents]):
            mode = place.stat().st_mode
            needed = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if place.is_relative_to(top) and not mode & needed:
                raise UsageError(
                    f"{path} cannot be used by the service's user: {place} is closed to others"
                    f" (mode {stat.S_IMODE(mode):04o}); {_ELSEWHERE}"
                )


def _unit(program: _Program) -> str:
    """The shipped unit with the program that is to run."""
    for word in program.command:
        if not _PLAIN.fullmatch(word):
            raise UsageError(f"{word!r} has characters that mean something else in a unit; {_ELSEWHERE}")
    line = f"ExecStart={' '.join((*program.command, 'watch'))}"
    return re.sub(r"(?m)^ExecStart=.*$", lambda _: line, _shipped(UNIT))


def _shipped(name: str) -> str:
    """Read a file of the package lmdiag.systemd, or of `systemd` beside lmdiag in a bare checkout."""
    from importlib import resources

    try:
        return (resources.files("lmdiag.systemd") / name).read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return (Path(lmdiag.__file__).parent.parent / "systemd" / name).read_text(encoding="utf-8")
