"""`lmdiag config`: checks the configuration of `lmdiag watch`, and shows what holds and why."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from lmdiag import sink_checks
from lmdiag.config import WatchConfig
from lmdiag.errors import ConfigError
from lmdiag.read import globs
from lmdiag.report.control import one_line
from lmdiag.report.jsonl import dumps
from lmdiag.settings.file import Loaded, load, search_path
from lmdiag.settings.sink_table import BY_SINK_KEY
from lmdiag.settings.sink_values import Labels, Url
from lmdiag.settings.table import BY_KEY, IN_FILE, SETTINGS
from lmdiag.settings.values import Kind, address, is_loopback, nearest

NOTHING = (
    "there is nothing to watch: name logs (lmdiag watch PATH...) or units (--journal vllm.service), or write"
    ' paths = ["/var/log/vllm"] or journal = ["vllm.service"] into {file}'
)


def watch_config(flags: Mapping[str, object], environment: Mapping[str, str], file: str | None) -> WatchConfig:
    """Read what `lmdiag watch` is to do. Raises ConfigError: with all problems; if there is nothing to watch."""
    loaded = load(flags, environment, file)
    if not loaded.config.paths and not loaded.config.journal:
        raise ConfigError((NOTHING.format(file=loaded.file or "/etc/lmdiag/config.toml"),))
    return loaded.config


def check(
    flags: Mapping[str, object], environment: Mapping[str, str], file: str | None, out: TextIO, err: TextIO
) -> int:
    """Print "FILE: ok" or the problems, and warnings to `err`. Returns 0, or 2 if there are problems."""
    try:
        loaded = _load_and_look(flags, environment, file)
    except ConfigError as error:
        for problem in error.problems:
            print(one_line(problem), file=out)
        return 2
    for warning in _warnings(loaded, environment):
        print(f"warning: {one_line(warning)}", file=err)
    if loaded.file is None:
        print(f"no file: ok; it was looked for in {one_line(', '.join(search_path(environment)))}", file=out)
    else:
        print(f"{one_line(loaded.file)}: ok", file=out)
    return 0


def show(flags: Mapping[str, object], environment: Mapping[str, str], file: str | None, style: str, out: TextIO) -> int:
    """Print each setting, its value and its origin; `style` is text or jsonl. Of sinks, what was given. Returns 0."""
    loaded = load(flags, environment, file)
    told = {key: origin for key, origin in loaded.origins.items() if key in IN_FILE or key not in BY_KEY}
    if style == "jsonl":
        for key, origin in told.items():
            row = {"setting": key, "value": _data(loaded, key), "origin": origin.kind, "place": origin.place or None}
            print(dumps(row), file=out)
        return 0
    rows = [(key, _shown(loaded, key), str(origin)) for key, origin in told.items()]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for key, value, place in rows:
        print(f"{key:<{first}}  {value:<{second}}  {place}", file=out)
    return 0


def _held(loaded: Loaded, key: str) -> tuple[Kind, Any]:
    """Find the value of a setting, or of a sink's as sinks.NAME.KEY, and its kind."""
    if key in IN_FILE:
        return IN_FILE[key].kind, getattr(loaded.config, IN_FILE[key].field)
    _, name, inner = key.split(".")
    sink = next(sink for sink in loaded.config.sinks if sink.name == name)
    return BY_SINK_KEY[inner].kind, getattr(sink, BY_SINK_KEY[inner].field)


def _data(loaded: Loaded, key: str) -> Any:
    kind, value = _held(loaded, key)
    if isinstance(kind, Labels):
        return dict(value)
    return kind.text(value) if isinstance(kind, Url) else value


def _shown(loaded: Loaded, key: str) -> str:
    kind, value = _held(loaded, key)
    if key == "instance" and not value:
        return f"{one_line(socket.gethostname())} (the host's name)"
    return one_line(kind.text(value)) or ("off" if key == "listen" else "none")


def _load_and_look(flags: Mapping[str, object], environment: Mapping[str, str], file: str | None) -> Loaded:
    """Load, and see whether the directories of cards are there."""
    loaded = load(flags, environment, file)
    place = loaded.origins["rules"].place
    if missing := [directory for directory in loaded.config.rules if not os.path.isdir(directory)]:
        raise ConfigError(
            tuple(f"{place}: rules: {name} is no directory; create it, or leave it out" for name in missing)
        )
    return loaded


def _warnings(loaded: Loaded, environment: Mapping[str, str]) -> Iterator[str]:
    """Find what is allowed and yet may not be meant."""
    config = loaded.config
    if not config.paths and not config.journal:
        yield NOTHING.format(file=loaded.file or "/etc/lmdiag/config.toml")
    for path in config.paths:
        if path != "-" and not os.path.lexists(path) and not any(globs.find(path)):
            yield f"paths: {path} matches nothing at present; it is watched for as soon as it appears"
        if path != "-" and not os.path.isabs(path) and loaded.origins["paths"].kind == "file":
            yield f"paths: {path} is relative to the directory in which lmdiag is started; write it from / on"
    host = (address(config.listen) or ("localhost", 0))[0]
    if not is_loopback(host):
        yield f"listen: {config.listen} can be read from other machines, without a password; 127.0.0.1 only from this one"
    yield from sink_checks.warnings(config.sinks)
    yield from _misspelt(environment)


def _misspelt(environment: Mapping[str, str]) -> Iterator[str]:
    """Find variables that look like a setting's; no more than that, for Kubernetes sets LMDIAG_PORT and the like."""
    names = {setting.environment for setting in SETTINGS} | {"LMDIAG_CONFIG"}
    for name in sorted(environment):
        if name.startswith("LMDIAG_") and name not in names:
            near = nearest(name.removeprefix("LMDIAG_"), IN_FILE, cutoff=0.75)
            if near:
                yield f"{name}: is not a setting; did you mean {IN_FILE[near].environment}?"
