"""Flags over environment over file over defaults: the settings that hold, and where each of them comes from."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from lmdiag.config import WatchConfig
from lmdiag.errors import ConfigError
from lmdiag.settings.amounts import WrongValueError
from lmdiag.settings.places import Places
from lmdiag.settings.sinks import given_keys, read_sinks
from lmdiag.settings.table import BY_KEY, IN_FILE, SETTINGS, Setting
from lmdiag.settings.values import ListOf, did_you_mean, nearest


class Origin(NamedTuple):
    """Where a value comes from."""

    kind: str
    """default, file, environment or flag."""
    place: str = ""
    """The file's path, the variable's name, the flag; "" for what is built in."""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}".strip()


class Loaded(NamedTuple):
    """The configuration, and how it came about."""

    config: WatchConfig
    origins: Mapping[str, Origin]
    """Of each setting, by its key; and of each that a sink was given, as sinks.NAME.KEY."""
    file: str | None
    """The file that was read; None: there is none."""


class _Given(NamedTuple):
    """A value as somebody wrote it."""

    setting: Setting
    raw: object
    origin: Origin
    where: str
    """How a person finds the place: FILE:LINE: KEY, the variable's name, the flag."""


def load(flags: Mapping[str, object], environment: Mapping[str, str], file: str | None = None) -> Loaded:
    """Read everything; `flags` holds what was given, by key, as text, lists of texts, or truth values.

    `file` is the argument of --config. Raises ConfigError with all problems there are.
    """
    problems: list[str] = []
    path, text = _read_first(file, environment, problems)
    table = _table(path, text, problems)
    places = Places(path or "", text)
    values = {setting.key: setting.default for setting in SETTINGS}
    origins = {setting.key: Origin("default") for setting in SETTINGS}
    values["state"], origins["state"] = _default_state(environment)
    _take(_from_file(table, places, problems), values, origins, problems)
    sinks = read_sinks(table.get("sinks", {}), places, problems)
    _take(chain(_from_environment(environment), _from_flags(flags)), values, origins, problems)
    if problems:
        raise ConfigError(tuple(problems))
    origins |= {key: Origin("file", places.path) for key in given_keys(table.get("sinks", {}))}
    fields = {BY_KEY[key].field: value for key, value in values.items()}
    return Loaded(WatchConfig(**fields, sinks=sinks), origins, path)


def _take(given: Iterator[_Given], values: dict[str, Any], origins: dict[str, Origin], problems: list[str]) -> None:
    """Put what was given over what held before: the strongest comes last."""
    for setting, raw, origin, where in given:
        try:
            values[setting.key], origins[setting.key] = setting.kind.parse(raw), origin
        except WrongValueError as error:
            problems.append(f"{where}: {error}")


def search_path(environment: Mapping[str, str]) -> Iterator[str]:
    """Name the places of the file if nobody names one, the first that exists wins."""
    for directory in environment.get("CONFIGURATION_DIRECTORY", "").split(":"):  # systemd.exec(5): may be several
        if directory:
            yield os.path.join(directory, "config.toml")
    yield "lmdiag.toml"
    home = environment.get("XDG_CONFIG_HOME") or _home(environment, ".config")
    yield os.path.join(home, "lmdiag", "config.toml")
    yield "/etc/lmdiag/config.toml"


def _default_state(environment: Mapping[str, str]) -> tuple[str, Origin]:
    if given := environment.get("STATE_DIRECTORY", "").split(":")[0]:
        return given, Origin("environment", "STATE_DIRECTORY")
    if os.geteuid() == 0:
        return BY_KEY["state"].default, Origin("default")
    home = environment.get("XDG_STATE_HOME") or _home(environment, ".local/state")
    return os.path.join(home, "lmdiag"), Origin("default")


def _home(environment: Mapping[str, str], below: str) -> str:
    return os.path.join(environment.get("HOME") or os.path.expanduser("~"), below)


def _read_first(file: str | None, environment: Mapping[str, str], problems: list[str]) -> tuple[str | None, str]:
    """Find the file and read it; a file that is named must exist."""
    named = file if file is not None else environment.get("LMDIAG_CONFIG") or None
    for path in search_path(environment) if named is None else (named,):
        try:
            with open(path, "rb", opener=_without_waiting) as stream:
                return path, stream.read().decode("utf-8-sig")
        except (FileNotFoundError, NotADirectoryError):
            if named is not None:
                how = "--config" if file is not None else "LMDIAG_CONFIG"
                problems.append(f"{path}: {how} names a file that does not exist; correct it, or leave it out")
        except UnicodeDecodeError as error:
            problems.append(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8")
            return path, ""
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or error
            problems.append(f"{path}: cannot be read: {reason}; name another file with --config (/dev/null: none)")
            return path, ""
    return None, ""


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, but no FIFO: it would keep the daemon waiting for whoever writes into it."""
    found = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISFIFO(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is a FIFO, not a file")
    return found


def _table(path: str | None, text: str, problems: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of more than 4300 digits
        line = re.search(r" \(at line (\d+), column \d+\)", str(error))
        where = f"{path}:{line[1]}" if line else path
        what = (
            "it is nested too deeply"
            if isinstance(error, RecursionError)
            else str(error).replace(line[0] if line else "", "")
        )
        problems.append(f'{where}: this is no TOML: {what}; a setting is written as: settle = "1s"')
        return {}


def _from_file(table: Mapping[str, object], places: Places, problems: list[str]) -> Iterator[_Given]:
    for key, raw in table.items():
        if key in IN_FILE:
            yield _Given(IN_FILE[key], raw, Origin("file", places.path), places.of(key))
        elif key != "sinks":
            problems.append(f"{places.of(key)}: {_refusal(key, raw)}")


def _refusal(key: str, raw: object) -> str:
    if key in BY_KEY:
        return f"cannot be set in the file; use the flag {BY_KEY[key].flag}"
    if isinstance(raw, dict):
        return _no_section(key, raw)
    near = did_you_mean(key, IN_FILE)
    return "is not a setting" + (near or "; remove it, or see what there is with: lmdiag config show")


def _no_section(key: str, raw: Mapping[str, object]) -> str:
    if nearest(key, {"sinks": 0}):
        name = next((name for name, section in raw.items() if isinstance(section, dict)), "NAME")
        return f"a section is not known here; did you mean [sinks.{name}]?"
    if "type" in raw:
        return f"a section is not known here; did you mean [sinks.{key}]?"
    return "a section is not known here; write its settings at the top of the file, without sections"


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    """Read LMDIAG_NAME for each setting. An empty one counts as not set, save where empty means off."""
    for setting in IN_FILE.values():
        raw = environment.get(setting.environment)
        if raw or (raw == "" and setting.key == "listen"):
            value = setting.kind.split(raw) if isinstance(setting.kind, ListOf) else raw
            yield _Given(setting, value, Origin("environment", setting.environment), setting.environment)


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Given]:
    for key, raw in flags.items():
        setting = BY_KEY[key]
        yield _Given(setting, _parted(setting, raw), Origin("flag", setting.flag), setting.flag)


def _parted(setting: Setting, raw: Any) -> object:
    """A list's flag may be given several times; between commas stand several values, save of paths."""
    if isinstance(setting.kind, ListOf) and setting.kind.separator == ",":
        return [part for text in raw for part in setting.kind.split(text)]
    return raw
