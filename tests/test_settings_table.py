from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lmdiag.config import WatchConfig
from lmdiag.settings.table import IN_FILE, SETTINGS, Setting

EXAMPLE = (Path(__file__).parent.parent / "systemd" / "config.toml").read_text(encoding="utf-8")
LINES = re.findall(r"^# ([a-z-]+) = (.+)$", EXAMPLE.partition("# [sinks.")[0], re.MULTILINE)
"""The settings; below them come sinks."""


def test_each_field_has_one_setting() -> None:
    assert sorted(setting.field for setting in SETTINGS) == sorted({*WatchConfig._fields} - {"sinks"})


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_each_setting_is_described(setting: Setting) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", setting.key)
    assert setting.help
    assert not setting.help.endswith(".")


@pytest.mark.parametrize("setting", IN_FILE.values(), ids=IN_FILE)
def test_each_default_is_a_value_that_may_be_given(setting: Setting) -> None:
    text = setting.kind.text(setting.default)
    split = getattr(setting.kind, "split", str)
    assert setting.kind.parse(split(text)) == setting.default


def test_the_example_shows_each_setting_once_in_the_order_of_the_table() -> None:
    assert [key for key, _ in LINES] == list(IN_FILE)


@pytest.mark.parametrize("setting", IN_FILE.values(), ids=IN_FILE)
def test_the_example_shows_the_defaults(setting: Setting) -> None:
    raw = tomllib.loads(f"it = {dict(LINES)[setting.key]}")["it"]
    assert setting.kind.parse(raw) == setting.default


@pytest.mark.parametrize("setting", IN_FILE.values(), ids=IN_FILE)
def test_the_example_says_what_each_is_for(setting: Setting) -> None:
    assert setting.help.lower() in EXAMPLE.replace("\n# ", " ").lower()


def test_the_example_changes_nothing() -> None:
    assert tomllib.loads(EXAMPLE) == {}
