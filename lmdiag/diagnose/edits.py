"""A card's change in this server's own terms: what the log shows to be set, and what to put in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lmdiag.diagnose.known import mapping_of, unquoted
from lmdiag.model import Edit

UNSET = "unset"
"""The value of a change that takes a setting away."""
_EXTRA = "kv_connector_extra_config"
_KV = "kv_transfer_config"
_BARE = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[\[{].*")
_SHELL_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_NOT_GIVEN = ("None", "")


def edits(change: Sequence[tuple[str, str]], arguments: Sequence[tuple[str, str]]) -> tuple[Edit, ...]:
    """Return the edits of a change. `arguments` are those of the server, values as Python reprs."""
    given = dict(arguments)
    return tuple(edit for key, value in change for edit in _edits(key, value, given))


def is_done(found: Sequence[Edit]) -> bool:
    """Whether the log shows every edit to be made already."""
    return bool(found) and all(edit.before is not None and edit.before == edit.after for edit in found)


def _edits(key: str, value: str, given: Mapping[str, str]) -> Iterator[Edit]:
    if key.startswith("lmcache."):
        yield from _lmcache(key, value, given)
    elif not key.startswith("-"):
        yield Edit("environment", None, None if value == UNSET else f"{key}={quoted(value)}")
    elif "." in key:
        yield _inner(key, value, given)
    else:
        yield _flag(key, value, given)


def _flag(key: str, value: str, given: Mapping[str, str]) -> Edit:
    name = key.lstrip("-").replace("-", "_")
    flag = key
    if name not in given and name.startswith("no_") and name[3:] in given:
        name, flag = name[3:], f"--{key[5:]}"
    return Edit("command line", _written(flag, given.get(name)), _after(key, value))


def _after(key: str, value: str) -> str | None:
    if value == UNSET:
        return None
    return f"{key} {quoted(value)}" if value else key


def _written(flag: str, value: str | None) -> str | None:
    """Write an argument that the log shows as it stands on a command line."""
    if value is None or value in _NOT_GIVEN:
        return None
    plain = unquoted(value)
    if plain == "True":
        return flag
    if plain == "False":
        return f"--no-{flag[2:]}"
    if inner := mapping_of(value):
        return f"{flag} {quoted(_json(inner))}"
    return f"{flag} {quoted(plain)}"


def _inner(key: str, value: str, given: Mapping[str, str]) -> Edit:
    """A key within a configuration; the rest of it stays, and is written `…`."""
    flag, _, path = key.partition(".")
    name = flag.lstrip("-").replace("-", "_")
    whole = given.get(name)
    if whole is None or whole in _NOT_GIVEN:
        return Edit("command line", None, f"{flag} {quoted(_nested(path, value, ''))}" if value != UNSET else None)
    before = _at(whole, path)
    old = None if before is None or before == "None" else f"{flag} {quoted(_nested(path, unquoted(before), '…, '))}"
    return Edit("command line", old, None if value == UNSET else f"{flag} {quoted(_nested(path, value, '…, '))}")


def _at(whole: str, path: str) -> str | None:
    """Return the repr of what stands at a dotted path; keys may hold dots themselves (`lmcache.chunk_size`)."""
    inner = mapping_of(whole)
    if path in inner:
        return inner[path]
    head, _, rest = path.partition(".")
    return _at(inner[head], rest) if rest and head in inner else None


def _nested(path: str, value: str, before: str) -> str:
    head, _, rest = path.partition(".")
    inner = _nested(rest, value, before) if rest else json_value(value)
    return f'{{{before}"{head}": {inner}}}'


def _lmcache(key: str, value: str, given: Mapping[str, str]) -> Iterator[Edit]:
    """LMCache reads a YAML file, the environment, and what vLLM's connector hands it; the last one wins."""
    name = key.removeprefix("lmcache.")
    extra = _at(given.get(_KV, ""), _EXTRA)
    found = _at(extra, key) if extra else None
    if found is not None or name.startswith("mp."):
        before = None if found is None else f'"{key}": {json_value(unquoted(found))}'
        yield Edit(_EXTRA, before, None if value == UNSET else f'"{key}": {json_value(value)}')
        return
    gone = value == UNSET
    yield Edit("LMCache YAML", None, None if gone else f"{name}: {value}")
    if "." not in name:
        yield Edit("environment", None, None if gone else f"LMCACHE_{name.upper()}={quoted(value)}")
    yield Edit(_EXTRA, None, None if gone else f'"{key}": {json_value(value)}')


def _json(inner: Mapping[str, str]) -> str:
    pairs = (f'"{name}": {json_value(unquoted(value))}' for name, value in inner.items() if value != "None")
    return "{" + ", ".join(pairs) + "}"


def json_value(value: str) -> str:
    """Write a value as JSON: numbers, true, false and structures bare, all else in quotes."""
    lowered = value.lower()
    if lowered in ("true", "false"):
        return lowered
    return value if _BARE.fullmatch(value) else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def quoted(text: str) -> str:
    """Quote the text as one word of a POSIX shell; it may carry text from the log."""
    return text if _SHELL_SAFE.fullmatch(text) else "'" + text.replace("'", "'\"'\"'") + "'"
