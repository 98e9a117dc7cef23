"""What the log says about the server: versions, model, arguments, platform. Shapes from 0.2 to 0.33."""

from __future__ import annotations

import re
from functools import lru_cache

from lmdiag.diagnose.redact import redact, redacted
from lmdiag.lazy_pattern import lazy
from lmdiag.model import Facts, Record

_VERSION = r"(\d+\.\d+(?:\.\d+)?[\w.+-]*)"
# Anchored, since a client's text can hold such words, but never begins a record.
_VLLM = lazy(
    rf"vLLM (?:API )?server version:? {_VERSION}|Initializing an? (?:V[01] )?LLM engine \(v{_VERSION}\)|"
    rf"[ ▄▀█\n]*+version {_VERSION}(?:$|\n)"
)
_LMCACHE = lazy(rf"LMCache initialized for role \S+ with version {_VERSION}, vllm version {_VERSION}")
_LMCACHE_BANNER = lazy(rf"[ |_/\\<>]*+LMCache v{_VERSION}")
_MODEL = lazy(
    r"[ ▄▀█\n]*+(?:version \S+\n[ ▄▀█]*+)?model   (\S.*)|vLLM server version \S+, serving model (\S+)|"
    r"Initializing an? (?:V[01] )?LLM engine (?:\(\S+\) )?with config: model=(?:'([^']*)'|\"([^\"]*)\")"
)
_ARCHITECTURE = lazy(r"Resolved architecture: (\w+)")
_PLATFORM = lazy(r"Automatically detected platform (\w+)")
_ARGUMENTS = lazy(r"(?:non-default args: \{|args: Namespace\()(.*)[})]$", re.DOTALL)
_MAX_ARGUMENTS = 80
_MAX_VALUE = 400


def update(facts: Facts, record: Record) -> Facts:
    """Return the facts with what one record adds. What the server says later about itself replaces what it said before."""
    text = record.text
    if hit := _VLLM.match(text):
        facts = facts._replace(vllm_version=_only(hit).rstrip(",."))
    if record.logger == "lmcache" and (hit := _LMCACHE.match(text)):
        facts = facts._replace(lmcache_version=hit.group(1), vllm_version=facts.vllm_version or hit.group(2))
    elif hit := _LMCACHE_BANNER.match(text):
        facts = facts._replace(lmcache_version=hit.group(1))
    if hit := _MODEL.match(text):
        facts = facts._replace(model=redact(_only(hit).strip()))
    if hit := _ARCHITECTURE.match(text):
        facts = facts._replace(architecture=hit.group(1))
    if hit := _PLATFORM.match(text):
        facts = facts._replace(platform=hit.group(1))
    if hit := _ARGUMENTS.match(text):
        facts = _with_arguments(facts, hit.group(1))
    return facts


def _only(hit: re.Match[str]) -> str:
    return next(group for group in hit.groups() if group)


def _with_arguments(facts: Facts, text: str) -> Facts:
    arguments, model = _arguments(text)
    return facts._replace(arguments=arguments, model=model or facts.model)


@lru_cache(maxsize=16)
def _arguments(text: str) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Return the arguments and the model, redacted. A server in a crash loop says the same again and again."""
    pairs = split_arguments(text)[:_MAX_ARGUMENTS]
    model = dict(pairs).get("model") or dict(pairs).get("model_tag")
    return tuple((name, _hide(name, value)) for name, value in pairs), redact(model.strip("'\"")) if model else None


def _hide(name: str, value: str) -> str:
    return redacted(f"{name}={value}", len(name) + 1 + _MAX_VALUE).partition("=")[2]


def split_arguments(text: str) -> list[tuple[str, str]]:
    """Split `'a': 1, 'b': KVTransferConfig(x='y')` or `a=1, b='c, d'` at the commas of the outermost level.

    The text is a Python repr and not a literal (it holds config objects and `<Enum: 1>`), so it is split, not evaluated.
    """
    pairs = []
    for part in _split(text):
        separator = ":" if part[:1] in "'\"" else "="
        name, found, value = part.partition(separator)
        if found and _is_name(name := name.strip().strip("'\"")):
            pairs.append((name, value.strip()))
    return pairs


def _is_name(text: str) -> bool:
    """Whether it is an argument's name, or a key like `lmcache.chunk_size`."""
    return all(part.isidentifier() for part in text.split("."))


def _split(text: str) -> list[str]:
    parts, depth, quote, start, position = [], 0, "", 0, 0
    while position < len(text):
        char = text[position]
        if quote:
            position += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:position].strip())
            start = position + 1
        position += 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
