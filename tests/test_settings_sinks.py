# ruff: noqa: S106 - the name of a file is no secret
from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import CREDENTIALS, assert_clean

from lmdiag.config import SinkConfig
from lmdiag.errors import ConfigError
from lmdiag.settings.file import Loaded, Origin, load
from lmdiag.settings.sink_table import BY_SINK_KEY, NEEDS, TYPES

NOWHERE = {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"}
VALUES = {
    "url": '"https://host.example.org/hook"',
    "path": '"/srv/reports.jsonl"',
    "command": '["page"]',
}
LEAST = {type_: f"{keys[0]} = " + VALUES.get(keys[0], '"a-file"') for type_, keys in NEEDS.items()}
"""Of each type, the one setting that it needs."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(text: str) -> Loaded:
    Path("c.toml").write_text(text, encoding="utf-8")
    return load({}, NOWHERE, "c.toml")


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(text)
    return list(caught.value.problems)


def sink(body: str, type_: str = "webhook") -> SinkConfig:
    (found,) = loaded(f'[sinks.x]\ntype = "{type_}"\n{body}\n').config.sinks
    return found


def wrong(body: str, type_: str = "webhook", *, at: str = "c.toml:3: sinks.x.") -> str:
    """The one problem of a sink, behind its place."""
    told = problems(f'[sinks.x]\ntype = "{type_}"\n{body}\n')
    assert len(told) == 1, told
    assert told[0].startswith(at), told
    return told[0].removeprefix(at)


def test_everything_that_a_sink_may_be_given() -> None:
    text = """
        settle = "2s"
        [sinks.oncall]
        type = "pagerduty"
        routing-key-file = "pagerduty-key"
        url = "https://events.example.org/v2"
        severity = "error"
        scopes = ["startup"]
        cards = ["lmcache-*", "!lmcache-x"]
        tags = ["memory"]
        sources = ["vllm@*"]
        states = ["opened", "resolved"]
        cooldown = 60
        burst = "3"
        timeout = "500ms"
        [sinks.a_2-b]
        type = "webhook"
        url-file = "/etc/lmdiag/url"
        username = "me"
        password-file = "pw"
        ca-file = "/ca"
        cert-file = "/cert"
        key-file = "/key"
        secret-file = "s"
        form = "cloudevents"
        [sinks.fleet]
        type = "alertmanager"
        url = "http://[::1]:9093"
        token-file = "t"
        hold = "2h"
        resend = "30s"
        labels = { cluster = "a b", _x1 = "é" }
        [sinks.lines]
        type = "file"
        path = "/srv/x"
        max-size = "1MiB"
        keep = 0
        [sinks.run]
        type = "exec"
        command = ["/bin/page", "", "-v"]
    """
    config = loaded(text).config
    assert config.settle == 2
    assert config.sinks == (
        SinkConfig(
            "oncall", "pagerduty", "error", ("startup",), ("lmcache-*", "!lmcache-x"), ("memory",), ("vllm@*",),
            ("opened", "resolved"), 60, 3, 0.5, url="https://events.example.org/v2", routing_key_file="pagerduty-key",
        ),
        SinkConfig(
            "a_2-b", "webhook", url_file="/etc/lmdiag/url", username="me", password_file="pw", ca_file="/ca",
            cert_file="/cert", key_file="/key", secret_file="s", form="cloudevents",
        ),
        SinkConfig(
            "fleet", "alertmanager", url="http://[::1]:9093", token_file="t", hold=7200, resend=30,
            labels=(("cluster", "a b"), ("_x1", "é")),
        ),
        SinkConfig("lines", "file", path="/srv/x", max_size=1 << 20, keep=0),
        SinkConfig("run", "exec", command=("/bin/page", "", "-v")),
    )  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
def test_what_nobody_says_is_the_default(type_: str) -> None:
    found = sink(LEAST[type_], type_)
    field = NEEDS[type_][0].replace("-", "_")
    people = type_ in ("slack", "pagerduty", "teams", "discord", "apprise")
    assert found._replace(**{field: SinkConfig._field_defaults[field]}) == SinkConfig("x", type_, burst=10 if people else 0)


@pytest.mark.parametrize("type_", TYPES)
def test_what_a_type_needs_must_be_there(type_: str) -> None:
    assert wrong("", type_, at="c.toml:1: sinks.x: ") == f"a {type_} sink needs {' or '.join(NEEDS[type_])}"


@pytest.mark.parametrize("key", BY_SINK_KEY)
def test_a_setting_of_other_types_is_refused(key: str) -> None:
    for type_ in TYPES:
        told = "\n".join(problems(f'[sinks.x]\ntype = "{type_}"\n{key} = []\n[sinks.y]\n'))
        refused = "is not a setting of" in told or "is a secret: put it" in told
        assert refused == (type_ not in BY_SINK_KEY[key].types)


def test_there_need_be_no_sinks() -> None:
    assert loaded("").config.sinks == loaded("[sinks]\n").config.sinks == ()


def test_the_origins_name_what_was_given() -> None:
    origins = loaded('settle = "2s"\n[sinks.x]\ntype = "exec"\ncommand = ["a"]\n').origins
    assert {key for key in origins if key.startswith("sinks")} == {"sinks.x.type", "sinks.x.command"}
    assert origins["sinks.x.type"] == origins["settle"] == Origin("file", "c.toml")


def test_all_problems_are_told_at_once_with_their_places() -> None:
    text = """max-cpu = true
[sinks.oncall]
type = "pagerduty"
urll = "http://x"
settle = "1s"

[sinks.B]
type = "file"
path = "/x"
keep = -1
zzz = 1

[sinks.c]
type = "slak"
"""
    assert problems(text) == [
        "c.toml:1: max-cpu: true is not a number from 0.01 to 64",
        "c.toml:4: sinks.oncall.urll: is not a setting of a pagerduty sink; did you mean url?",
        "c.toml:5: sinks.oncall.settle: is not a setting of a pagerduty sink; lmdiag's own settings stand above the first section",
        "c.toml:2: sinks.oncall: a pagerduty sink needs routing-key-file",
        "c.toml:7: sinks.B: a sink's name has up to 63 of a-z, 0-9, _ and -, a letter or a digit first",
        "c.toml:10: sinks.B.keep: -1 is out of range; write a value from 0 to 1000",
        "c.toml:11: sinks.B.zzz: is not a setting of a file sink; remove it: there are type, path, severity, scopes, states, cards, tags, sources, cooldown, burst, timeout, max-size, keep",
        'c.toml:14: sinks.c.type: "slak" is none of webhook, alertmanager, alertmanager-webhook, slack, pagerduty, teams, discord, file, exec, apprise; did you mean slack?',
    ]  # fmt: skip


def test_a_setting_of_lmdiag_may_be_a_misspelt_one_of_the_sink() -> None:
    assert wrong('url = "http://h"\nstate = []', at="c.toml:4: sinks.x.state: ").endswith(
        "stand above the first section; or did you mean states?"
    )


@pytest.mark.parametrize("name", ["", "A", "-a", "_a", "a.b", "a b", "a" * 64, "é", "a\n"])
def test_what_is_no_name_is_refused(name: str) -> None:
    (told,) = problems(f'[sinks.{json.dumps(name)}]\ntype = "exec"\ncommand = ["a"]\n')
    assert "a sink's name has" in told


@pytest.mark.parametrize("name", ["a", "0", "a_-0", "a" * 63])
def test_names(name: str) -> None:
    assert [sink.name for sink in loaded(f'[sinks.{name}]\ntype = "exec"\ncommand = ["a"]\n').config.sinks] == [name]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[sink.x]\ntype = "exec"', "c.toml:1: sink: a section is not known here; did you mean [sinks.x]?"),
        ('[Sinks]\ntype = "exec"', "c.toml:1: Sinks: a section is not known here; did you mean [sinks.NAME]?"),
        ('[oncall]\ntype = "exec"', "c.toml:1: oncall: a section is not known here; did you mean [sinks.oncall]?"),
        ("sinks = 3", "c.toml:1: sinks: is no section; write a section for each: [sinks.NAME], and below it"),
        ('[[sinks]]\ntype = "exec"', "c.toml:1: sinks: is no section; write a section for each: [sinks.NAME], and"),
        ('[sinks]\ntype = "exec"', "c.toml:2: sinks.type: is no section; write a section for each: [sinks.NAME], and"),
        ('[[sinks.x]]\ntype = "exec"', "c.toml:1: sinks.x: is a list; write [sinks.x] in single brackets"),
        ('[sinks.x]\ncommand = ["a"]', "c.toml:1: sinks.x: type is missing; write one of: webhook, alertmanager, "),
    ],
)
def test_sections_that_are_wrong(text: str, told: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(told)


@pytest.mark.parametrize(
    ("type_", "body", "told"),
    [
        ("webhook", 'url = "http://h"\nurl-file = "f"', "a webhook sink needs one of url and url-file only"),
        ("webhook", 'url = "http://h"\nusername = "u"', "username and password-file go together"),
        ("slack", 'url-file = "f"\npassword-file = "u"', "username and password-file go together"),
        ("webhook", 'url = "http://h"\nusername = "u"\npassword-file = "p"\ntoken-file = "t"', "token-file and username"),
        ("teams", 'url-file = "f"\nkey-file = "k"', "key-file needs cert-file"),
        ("alertmanager", 'url = "http://h"\nhold = "2m"', "resend (1m) must be less than half of hold (2m)"),
        ("alertmanager", 'url = "http://h"\nresend = "30m"', "resend (30m) must be less than half of hold (1h)"),
    ],
)
def test_what_does_not_go_together(type_: str, body: str, told: str) -> None:
    assert wrong(body, type_, at="c.toml:1: sinks.x: ").startswith(told)


@pytest.mark.parametrize(
    "body",
    [
        "timeout = 0.09", 'timeout = "301s"', "cooldown = -1", 'cooldown = "366d"', 'hold = "59s"', 'hold = "8d"', "resend = 4.9",
        'resend = "61m"', "burst = -1", "burst = 1.5", "scopes = []", "states = []", 'scopes = ["start"]', 'states = ["open"]',
        'severity = "fatal"', 'cards = ["!"]', 'cards = "a"', 'labels = "a"', 'labels = { card = "a" }', "labels = { a = 1 }",
        'labels = { a = "" }', 'labels = { "a-b" = "x" }', 'labels = { __a = "x" }', 'username = "a\\nb"', 'token-file = ""',
    ],
)  # fmt: skip
def test_values_out_of_range(body: str) -> None:
    told = problems(f'[sinks.x]\ntype = "alertmanager"\nurl = "http://h"\n{body}\n')
    assert told[0].startswith(f"c.toml:4: sinks.x.{body.partition(' ')[0]}: ")


# Under which names somebody may write a secret into the file, and what the message names instead.
LITERAL = [
    ("webhook", "token", "token-file"),
    ("webhook", "secret", "secret-file"),
    ("webhook", "password", "password-file"),
    ("webhook", "api-key", "token-file"),
    ("webhook", "apikey", "token-file"),
    ("webhook", "bearer", "token-file"),
    ("alertmanager", "auth_token", "token-file"),
    ("alertmanager", "basic-auth-password", "password-file"),
    ("pagerduty", "routing-key", "routing-key-file"),
    ("pagerduty", "routing_key", "routing-key-file"),
    ("pagerduty", "integrationKey", "routing-key-file"),
    ("slack", "url", "url-file"),
    ("teams", "webhook-url", "url-file"),
    ("discord", "webhook", "url-file"),
    ("apprise", "urls", "url-file"),
    ("exec", "password", "remove it"),
    ("webhook", "token-file", "put it into a file"),
    ("slack", "url-file", "put it into a file"),
    ("webhook", "url", "use username and password-file"),
    ("exec", "command", "is not a list"),
]
SECRETS = (CREDENTIALS[2], f"https://me:{CREDENTIALS[1]}@hooks.example.org/{CREDENTIALS[4]}", f"Bearer {CREDENTIALS[0]}")


@pytest.mark.parametrize(("type_", "key", "instead"), LITERAL)
def test_a_secret_in_the_file_is_refused_and_not_repeated(type_: str, key: str, instead: str) -> None:
    for value in SECRETS[1:2] if key == "url" and type_ == "webhook" else SECRETS:
        told = problems(f'[sinks.x]\ntype = "{type_}"\n{key} = "{value}"\n')
        assert told[0].startswith(f"c.toml:3: sinks.x.{key}: ")
        assert instead in told[0]
        assert_clean("\n".join(told), "the message")


def test_a_url_that_is_a_secret_becomes_a_credential() -> None:
    told = problems('[sinks.x]\ntype = "slack"\nurl = "https://hooks.example.org/x"\n')[0]
    assert 'url-file = "slack-url" with LoadCredential=slack-url:/etc/lmdiag/slack-url in the unit' in told


def test_a_misspelt_name_of_a_file_is_no_secret() -> None:
    assert problems('[sinks.x]\ntype = "webhook"\ntoken_file = "a"\n')[0].endswith("; did you mean token-file?")


# What TOML can say, and what nearly is a configuration.
PLAIN = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.booleans()
    | st.datetimes()
    | st.dates()
    | st.sampled_from([*TYPES, "1s", "1h", "opened", "http://h", "http://[::1", "http://h:x", "//", "!", "\x00", "\x7f", "whsec_"])
)
VALUE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.\"'\n-", max_size=3), inner, max_size=3), max_leaves=6
)
SECTION = st.dictionaries(st.sampled_from([*BY_SINK_KEY, "settle", "token", "zzz"]) | st.text("ab.\"\\\n]", max_size=4), VALUE, max_size=6)
SINKS = st.dictionaries(st.sampled_from(["a", "b"]) | st.text("aB.\"'\n]", max_size=4), SECTION | VALUE, max_size=3) | VALUE


def toml(value: Any) -> str:
    """Write a value as TOML does inline."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml(key)} = {toml(inner)}' for key, inner in value.items())}}}"
    return repr(value)


@given(sinks=SINKS, as_sections=st.booleans())
def test_whatever_stands_there_is_read_or_refused(sinks: Any, *, as_sections: bool) -> None:
    text = f"sinks = {toml(sinks)}\n"
    if as_sections and isinstance(sinks, dict):
        sections = ((name, section) for name, section in sinks.items() if isinstance(section, dict))
        text = "".join(
            f"[sinks.{toml(name)}]\n" + "".join(f"{toml(key)} = {toml(value)}\n" for key, value in section.items())
            for name, section in sections
        )
    with suppress(ConfigError):
        assert all(sink.type in TYPES for sink in loaded(text).config.sinks)
    tomllib.loads(text)  # or it would be refused as a whole, and nothing tested


@given(type_=st.sampled_from(TYPES), section=SECTION)
def test_what_is_read_has_what_its_type_needs(type_: str, section: dict[str, Any]) -> None:
    section["type"] = type_
    try:
        (found,) = loaded(f"sinks.x = {toml(section)}\n").config.sinks
    except ConfigError:
        return
    assert sum(bool(getattr(found, key.replace("-", "_"))) for key in NEEDS[type_]) == 1
