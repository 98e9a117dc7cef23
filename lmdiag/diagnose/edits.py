"""A card's change in this server's own terms: what the log shows to be set, and what to put in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote as quoted  # values may carry text from the log

from lmdiag.diagnose.known import mapping_of, unquoted
from lmdiag.lazy_pattern import lazy
from lmdiag.model import Edit

UNSET = "unset"
"""The value of a change that takes a setting away."""
_EXTRA = "kv_connector_extra_config"
_KV = "kv_transfer_config"
_BARE = lazy(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[\[{].*")
_NOT_GIVEN = ("None", "")
_MAX_JSON = 120
"""Characters of a whole configuration that are shown as what is there now."""


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
        yield Edit("environment", *_set_or_not(f"{key}=", quoted(value), value))
    elif "." in key:
        yield _inner(key, value, given)
    else:
        yield _flag(key, value, given)


def _flag(key: str, value: str, given: Mapping[str, str]) -> Edit:
    name, flag = _name(key), key
    if name not in given and name.startswith("no_") and name[3:] in given:
        name, flag = name[3:], f"--{key[5:]}"
    before = _written(flag, given.get(name))
    if value == UNSET:  # where the log shows the arguments and it is none of them, nothing is to be taken away
        return Edit("command line", before or (None if given else key), None)
    return Edit("command line", before, f"{key} {quoted(value)}" if value else key)


def _name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _set_or_not(head: str, written: str, value: str) -> tuple[str | None, str | None]:
    """(before, after) of a setting of which the log does not show the value; `…` stands for it where it is taken away."""
    return (f"{head}…", None) if value == UNSET else (None, head + written)


def _written(flag: str, value: str | None) -> str | None:
    """Write an argument that the log shows as it stands on a command line."""
    if value is None or value in _NOT_GIVEN:
        return None
    plain = unquoted(value)
    if plain == "True":
        return flag
    if plain == "False":
        return f"--no-{flag[2:]}"
    if mapping_of(value):
        text = _json(value)
        return f"{flag} {quoted(text if len(text) <= _MAX_JSON else '{…}')}"
    return f"{flag} {quoted(plain)}"


def _inner(key: str, value: str, given: Mapping[str, str]) -> Edit:
    """A key within a configuration; the rest of it stays, and is written `…`."""
    flag, _, path = key.partition(".")
    whole = given.get(_name(flag))
    alone = bool(given) and (whole is None or whole in _NOT_GIVEN)  # the log shows the arguments without it
    before = _at(whole or "", path)
    old: str | None = None
    if before is not None and before not in _NOT_GIVEN:
        old = f"{flag} {quoted(_nested(path, unquoted(before)))}"
    elif value == UNSET and not given:
        old = f"{flag} {quoted(_nested(path, '…'))}"
    return Edit("command line", old, None if value == UNSET else f"{flag} {quoted(_nested(path, value, alone=alone))}")


def _at(whole: str, path: str) -> str | None:
    """Return the repr of what stands at a dotted path; keys may hold dots themselves (`lmcache.chunk_size`)."""
    inner = mapping_of(whole)
    if path in inner:
        return inner[path]
    head, _, rest = path.partition(".")
    return _at(inner[head], rest) if rest and head in inner else None


def _nested(path: str, value: str, *, alone: bool = False) -> str:
    """Write a key within a JSON object, `…` for the rest of it. The keys of the connector's own settings hold dots."""
    head, rest = (path, "") if path.startswith("lmcache.") else (path.partition(".")[0], path.partition(".")[2])
    inner = _nested(rest, value, alone=alone) if rest else json_value(value)
    return f'{{{"" if alone else "…, "}"{head}": {inner}}}'


def _lmcache(key: str, value: str, given: Mapping[str, str]) -> Iterator[Edit]:
    """LMCache reads a YAML file, the environment, and what vLLM's connector hands it; the last one wins."""
    name = key.removeprefix("lmcache.")
    extra = _at(given.get(_KV, ""), _EXTRA)
    found = _at(extra, key) if extra else None
    if found is not None or name.startswith("mp."):
        before, after = _set_or_not(f'"{key}": ', json_value(value), value)
        yield Edit(_EXTRA, before if found is None else f'"{key}": {json_value(unquoted(found))}', after)
        return
    yield Edit("LMCache YAML", *_set_or_not(f"{name}: ", value, value))
    if "." not in name:
        yield Edit("environment", *_set_or_not(f"LMCACHE_{name.upper()}=", quoted(value), value))
    yield Edit(_EXTRA, *_set_or_not(f'"{key}": ', json_value(value), value))


def _json(value: str) -> str:
    """Write a repr as JSON; settings that are None are left out."""
    inner = mapping_of(value)
    if not inner:
        return json_value(unquoted(value))
    return "{" + ", ".join(f'"{name}": {_json(one)}' for name, one in inner.items() if one != "None") + "}"


def json_value(value: str) -> str:
    """Write a value as JSON: numbers, true, false and structures bare, all else in quotes."""
    lowered = value.lower()
    if lowered in ("true", "false"):
        return lowered
    return value if _BARE.fullmatch(value) else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
