from __future__ import annotations

import re
import tomllib
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from lmdiag.config import SinkConfig
from lmdiag.forward import sinks
from lmdiag.settings.file import load
from lmdiag.settings.places import Places
from lmdiag.settings.sink_table import BY_SINK_KEY, NEEDS, SINK_SETTINGS, TYPES, SinkSetting, keys_of
from lmdiag.settings.sink_values import File
from lmdiag.settings.sinks import read_sinks

SYSTEMD = Path(__file__).parent.parent / "systemd"
EXAMPLE = re.sub(r"(?m)^# (?=\[sinks\.|[a-z-]+ = )", "", (SYSTEMD / "config.toml").read_text(encoding="utf-8"))
"""The shipped file with every # removed that stands in front of a setting or a section."""
SINKS: dict[str, dict[str, Any]] = tomllib.loads(EXAMPLE)["sinks"]


def test_the_types_are_those_that_there_are() -> None:
    assert sorted(TYPES) == sorted(one.name.replace("_", "-") for one in iter_modules(sinks.__path__))
    assert set(NEEDS) == set(TYPES)


def test_each_field_has_one_setting() -> None:
    assert sorted(setting.field for setting in SINK_SETTINGS) == sorted({*SinkConfig._fields} - {"name"})


@pytest.mark.parametrize("setting", SINK_SETTINGS, ids=lambda setting: setting.key)
def test_each_setting_is_described(setting: SinkSetting) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", setting.key)
    assert setting.help
    assert not setting.help.endswith(".")
    assert set(setting.types) <= set(TYPES)


@pytest.mark.parametrize("type_", TYPES)
def test_what_a_type_needs_it_knows(type_: str) -> None:
    assert set(NEEDS[type_]) <= set(keys_of(type_))


def test_a_key_that_names_a_file_is_read_as_one() -> None:
    for key, setting in BY_SINK_KEY.items():
        assert key.endswith("-file") == isinstance(setting.kind, File), key


def test_the_example_is_valid_with_all_of_it_in_force(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    assert len(load({}, {"HOME": "/nowhere"}, str(path)).config.sinks) == len(SINKS)


def test_the_example_shows_each_type_and_each_key_once() -> None:
    assert sorted(section["type"] for section in SINKS.values()) == sorted(TYPES)
    shown = [key for section in SINKS.values() for key in section if key not in ("type", "url", "url-file")]
    alternative = re.findall(r"# or ([a-z-]+) = ", EXAMPLE)
    assert sorted(shown + alternative) == sorted({*BY_SINK_KEY} - {"type", "url", "url-file"})


def test_the_example_shows_the_defaults_of_what_each_sink_may_have() -> None:
    shared = {key for key, setting in BY_SINK_KEY.items() if setting.types == TYPES and key != "type"}
    for section in SINKS.values():
        for key in section.keys() & (shared | {"hold", "resend", "form", "max-size", "keep"}):
            assert BY_SINK_KEY[key].kind.parse(section[key]) == BY_SINK_KEY[key].default(section["type"]), key
    assert shared <= SINKS["oncall"].keys()


def test_each_receiver_of_the_example_stands_alone() -> None:
    for name, section in SINKS.items():
        problems: list[str] = []
        assert read_sinks({name: section}, Places("", ""), problems)
        assert problems == []
