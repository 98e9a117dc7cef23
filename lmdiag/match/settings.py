"""Which flags, variables and keys the releases know: `rules/catalog/settings.json`, made by `lmdiag catalog build`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lmdiag.errors import CatalogError
from lmdiag.match.versions import release_name, release_order

NEGATABLE = "flag --no-*"
"""Stands for the releases in which `--no-x` takes `--x` back."""
_ANYTHING = ("kwargs", "overrides", "extra_config", "additional_config", "generation_config", "hf_config")
"""Settings whose inner keys other projects define end like these."""


class Table(NamedTuple):
    """The settings of one project."""

    releases: tuple[str, ...]
    """Oldest first."""
    runs: Mapping[str, tuple[tuple[str, str], ...]]
    """`flag --x`, `env X`, `field Config.x` or `key x` -> (first, last release) of each run of releases that know it."""


Settings = Mapping[str, Table]
"""Project -> its table."""


def read_settings(path: str) -> Settings:
    """Read the table; an absent file is an empty one. Raises CatalogError if it is damaged."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return {
            project: Table(
                tuple(map(str, found["releases"])), {name: _runs(text) for name, text in found["settings"].items()}
            )
            for project, found in data.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CatalogError(f"{path}: cannot be read as a table of settings: {error!r}; build it again") from None


def _runs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [run.split("-") for run in text.split(",")]
    return tuple((first, last) for first, last in pairs)


def names_of(key: str) -> tuple[tuple[str, str], ...]:
    """Return (project, setting) of what a card's change may mean: a flag is vLLM's, or one of LMCache's own server."""
    if key.startswith("lmcache."):
        name = key.removeprefix("lmcache.")
        return ("lmcache", f"key {name}"), ("lmcache", f"key {name.partition('.')[0]}"), ("vllm", f"key {name}")
    if key.startswith("LMCACHE_"):
        return (
            ("lmcache", f"env {key}"),
            ("lmcache", f"key {key.removeprefix('LMCACHE_').lower()}"),
            ("vllm", f"env {key}"),
        )
    if not key.startswith("-"):  # other variables are read by other projects too
        return (("vllm", f"env {key}"),) if key.startswith("VLLM_") else ()
    flag = key.partition(".")[0]
    return ("vllm", f"flag {flag}"), ("lmcache", f"flag {flag}")


def known_in(settings: Settings, key: str, versions: Mapping[str, str | None]) -> bool | None:
    """Whether the releases that run know a change's key; None if the table or the log cannot tell.

    A project's version counts if it is in `versions`; the table is silent on variables and keys of other projects.
    """
    answers = [
        answer
        for project, setting in names_of(key)
        if project in settings and (version := versions.get(project))
        for answer in [_known(settings[project], setting, version)]
        if answer is not None
    ]
    if not answers:
        return None
    inner = key.partition(".")[2] if key.startswith("-") else ""
    if True in answers and inner and (version := versions.get("vllm")) and "vllm" in settings:
        return _knows_inner(settings["vllm"], key.partition(".")[0], inner.partition(".")[0], version)
    return True in answers


def _known(table: Table, setting: str, version: str) -> bool | None:
    """None for a setting that no release of the project has."""
    if setting in table.runs:
        return knows(table, setting, version)
    positive = _positive(setting)
    return knows(table, positive, version) and knows(table, NEGATABLE, version) if positive in table.runs else None


def _positive(setting: str) -> str:
    """`flag --x` for `flag --no-x`; anything else as it is."""
    return setting.replace("flag --no-", "flag --", 1)


def _knows_inner(table: Table, flag: str, name: str, version: str) -> bool:
    """Whether the configuration behind a flag has a field: `--kv-transfer-config` is KVTransferConfig."""
    if flag.replace("-", "_").endswith(_ANYTHING):
        return True
    wanted = flag.strip("-").replace("-", "")
    classes = {field.split()[1].partition(".")[0] for field in table.runs if field.startswith("field ")}
    mine = [one for one in classes if wanted.endswith(one.lower()) or one.lower().endswith(wanted)]
    return not mine or any(knows(table, f"field {one}.{name}", version) for one in mine)


def knows(table: Table, setting: str, version: str) -> bool:
    """Whether a release knows a setting. A build between two releases is taken for the older one."""
    order = release_order(release_name(version))
    earlier = [release for release in table.releases if release_order(release) <= order]
    if not earlier:
        return False
    mine = release_order(earlier[-1])
    return any(release_order(first) <= mine <= release_order(last) for first, last in table.runs.get(setting, ()))


def exists(settings: Settings, key: str) -> bool:
    """Whether any release of any project knows the key."""
    return any(
        setting in table.runs or _positive(setting) in table.runs
        for project, setting in names_of(key)
        for table in [settings.get(project, Table((), {}))]
    )
