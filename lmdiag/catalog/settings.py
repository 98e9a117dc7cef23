"""The settings that a release knows: command-line flags, environment variables, keys of its configurations.

They are read from the sources like the raise sites, so that a card's advice can be compared with what was released.
A setting is written `flag --max-model-len`, `env VLLM_PORT`, `field KVTransferConfig.kv_role`, `key chunk_size`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from lmdiag.match.settings import NEGATABLE

_COMMAND_LINE = re.compile(r"vllm/(?:engine/arg_utils|entrypoints/.*)\.py|lmcache/.*\.py")
_CONFIG = re.compile(r"vllm/(?:config(?:/.*)?|pooling_params|engine/arg_utils)\.py|lmcache/.*config.*\.py")
_FLAG = re.compile(r"--[a-z][\w.-]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_READ = re.compile(
    r"(?:environ(?:\.get|\.setdefault|\.pop)?|getenv)\s*[\[(]\s*[\"']([A-Z][A-Z0-9_]+)[\"']|"
    r"[\"']([A-Z][A-Z0-9]*_[A-Z0-9_]+)[\"'] in os\.environ"
)
_EXTRA = re.compile(r"[\"']lmcache\.(mp\.[a-z]\w*(?:\.\w+)*)[\"']")
_FRONTEND = re.compile(r"(?:Base)?FrontendArgs")
_DEFINITIONS = "_CONFIG_DEFINITIONS"
_ENVIRONMENT = "environment_variables"
"""The table in vllm/envs.py."""


def settings(sources: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings of a release, sorted. Files that cannot be parsed give what can be read off their text."""
    found: set[str] = set()
    for path, text in sources.items():
        found.update(f"env {one or two}" for one, two in _READ.findall(text))
        found.update(f"key {name}" for name in _EXTRA.findall(text))
        if _COMMAND_LINE.fullmatch(path) or _CONFIG.fullmatch(path) or path.endswith("/envs.py"):
            found.update(_declared(path, text))
    if any("BooleanOptionalAction" in text for path, text in sources.items() if path.endswith("/arg_utils.py")):
        found.add(NEGATABLE)
    return tuple(sorted(found))


def _declared(path: str, text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _COMMAND_LINE.fullmatch(path):
            yield from _flags(node)
        elif isinstance(node, ast.ClassDef):
            yield from _fields(node, config=bool(_CONFIG.fullmatch(path)))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from _table(node)


def _flags(call: ast.Call) -> Iterator[str]:
    """`parser.add_argument("-tp", "--tensor-parallel-size", …)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
        for text in _strings(call.args):
            if _FLAG.fullmatch(text):
                yield f"flag {text.replace('_', '-')}"


def _fields(node: ast.ClassDef, *, config: bool) -> Iterator[str]:
    """The annotated fields of a configuration; vLLM makes flags of those of its frontend's."""
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name = statement.target.id
        if _FRONTEND.fullmatch(node.name):
            yield f"flag --{name.replace('_', '-')}"
        if config and node.name == "LMCacheEngineConfig":
            yield f"key {name}"
        elif config and node.name.endswith(("Config", "Params", "Args")):
            yield f"field {node.name}.{name}"


def _table(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """The keys of vLLM's table of variables and of LMCache's table of settings."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    if not isinstance(node.value, ast.Dict):
        return
    keys = _strings([key for key in node.value.keys if key is not None])
    if _ENVIRONMENT in names:
        yield from (f"env {key}" for key in keys if _VARIABLE.fullmatch(key))
    if _DEFINITIONS in names:
        yield from (f"key {key}" for key in keys)


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
