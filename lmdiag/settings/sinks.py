"""The sections [sinks.NAME] of the file: each becomes one SinkConfig, or all that is wrong with it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lmdiag.config import SinkConfig
from lmdiag.settings.amounts import WrongValueError
from lmdiag.settings.places import Places
from lmdiag.settings.sink_table import BY_SINK_KEY, NEEDS, SECRET_URL, TYPES, SinkSetting, keys_of
from lmdiag.settings.table import BY_KEY
from lmdiag.settings.values import did_you_mean, nearest

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_SECRET = re.compile(r"token|passw|passphrase|pwd|secret|credential|bearer|auth|keys?$")
_SECTION = 'write a section for each: [sinks.NAME], and below it type = "webhook" and what that needs'


def read_sinks(raw: object, places: Places, problems: list[str]) -> tuple[SinkConfig, ...]:
    """Read what stands in the file under `sinks`, in its order; problems are added to the list."""
    if not isinstance(raw, dict):
        problems.append(f"{places.of('sinks')}: is no section; {_SECTION}")
        return ()
    found = []
    for name, section in raw.items():
        where = places.of("sinks", name)
        if not isinstance(section, dict):
            problems.append(f"{where}: {_no_section(name, section)}")
            continue
        if not _NAME.fullmatch(name):
            problems.append(f"{where}: a sink's name has up to 63 of a-z, 0-9, _ and -, a letter or a digit first")
        if sink := _read_sink(name, section, places, problems):
            found.append(sink)
    return tuple(found)


def given_keys(raw: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Name all that is given of sinks that were read without problems, each as sinks.NAME.KEY."""
    yield from (f"sinks.{name}.{key}" for name, section in raw.items() for key in section)


def _no_section(name: str, raw: object) -> str:
    if isinstance(raw, list) and any(isinstance(entry, dict) for entry in raw):
        return f"is a list; write [sinks.{name}] in single brackets, and each sink under a name of its own"
    return f"is no section; {_SECTION}"


def _read_sink(name: str, section: Mapping[str, object], places: Places, problems: list[str]) -> SinkConfig | None:
    type_ = str(section.get("type"))
    known, values, before = keys_of(type_), dict[str, Any](), len(problems)
    for key, raw in section.items():
        try:
            values[key] = _setting(key, type_, known).kind.parse(raw)
        except WrongValueError as error:
            problems.append(f"{places.of('sinks', name, key)}: {error}")
    if type_ in TYPES or "type" not in section:
        where = places.of("sinks", name)
        problems.extend(f"{where}: {problem}" for problem in _contradictions(type_, section, values))
    if len(problems) > before:
        return None
    filled = {setting.field: values.get(key, setting.default(type_)) for key, setting in known.items()}
    return SinkConfig(name=name, **filled)


def _setting(key: str, type_: str, known: Mapping[str, SinkSetting]) -> SinkSetting:
    """Find the setting. Raises WrongValueError that says what it should have been, and never repeats the value."""
    if key in known:
        return known[key]
    word = key.lower().replace("_", "-")
    sort = f"a {type_} sink" if type_ in TYPES else "a sink"
    if type_ in SECRET_URL and re.search("ur[il]|webhook", word) and word != "url-file":
        raise WrongValueError(
            f"the URL of {sort} is a secret: put it into a file and name that with url-file, as a path or as a systemd"
            f' credential: url-file = "{type_}-url" with LoadCredential={type_}-url:/etc/lmdiag/{type_}-url in the unit'
        )
    if key in BY_SINK_KEY:
        raise WrongValueError(f"is not a setting of {sort}, only of: {', '.join(BY_SINK_KEY[key].types)}")
    if _SECRET.search(word) and not word.endswith("file"):
        raise WrongValueError(f"is a secret, which has no place here; {_instead(word, known)}")
    if key in BY_KEY:
        near = nearest(key, known, cutoff=0.8)
        also = f"; or did you mean {near}?" if near else ""
        raise WrongValueError(f"is not a setting of {sort}; lmdiag's own settings stand above the first section{also}")
    near = did_you_mean(key, known)
    raise WrongValueError(f"is not a setting of {sort}" + (near or f"; remove it: there are {', '.join(known)}"))


def _instead(word: str, known: Mapping[str, SinkSetting]) -> str:
    """Say which setting of this sink names the file of a secret."""
    wanted = (f"{word}-file", "password-file" if "pass" in word else "", "routing-key-file", "token-file", "url-file")
    best = next((key for key in wanted if key in known), "")
    return f"put it into a file and name that with {best}" if best else "this sink needs none: remove it"


def _contradictions(type_: str, given: Mapping[str, object], values: Mapping[str, Any]) -> Iterator[str]:
    """Find what is missing, and what does not go together."""
    if "type" not in given:
        yield f"type is missing; write one of: {', '.join(TYPES)}"
        return
    needed = NEEDS[type_]
    count = sum(key in given for key in needed)
    if count != 1:
        how = f"one of {' and '.join(needed)} only" if count else " or ".join(needed)
        yield f"a {type_} sink needs {how}"
    if ("username" in given) != ("password-file" in given):
        yield "username and password-file go together; write both, or none"
    if "token-file" in given and "username" in given:
        yield "token-file and username exclude each other: a request has one Authorization; leave one of them out"
    if "key-file" in given and "cert-file" not in given:
        yield "key-file needs cert-file, the certificate that it is the key of"
    if type_ == "alertmanager":
        yield from _too_slow(values)


def _too_slow(values: Mapping[str, Any]) -> Iterator[str]:
    """An alert must be sent again twice before it would end, or one lost request resolves it."""
    hold, resend = (values.get(key, BY_SINK_KEY[key].default("alertmanager")) for key in ("hold", "resend"))
    if resend >= hold / 2:
        texts = [BY_SINK_KEY[key].kind.text(value) for key, value in (("resend", resend), ("hold", hold))]
        yield f"resend ({texts[0]}) must be less than half of hold ({texts[1]}), or alerts end while they are active"
