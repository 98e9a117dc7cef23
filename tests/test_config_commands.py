from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import pytest

from lmdiag.config_commands import check, show, watch_config
from lmdiag.errors import ConfigError
from lmdiag.settings.table import IN_FILE

NOWHERE = {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration that watches a log."""
    (tmp_path / "a.log").touch()
    path = tmp_path / "config.toml"
    path.write_text(f'paths = ["{tmp_path}/a.log"]\nsettle = "2s"\n', encoding="utf-8")
    return path


def checked(
    file: Path | str | None, environment: dict[str, str] | None = None, flags: dict[str, object] | None = None
) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = check(flags or {}, NOWHERE | (environment or {}), None if file is None else str(file), out, err)
    return code, out.getvalue(), err.getvalue()


def shown(file: Path, style: str) -> str:
    out = io.StringIO()
    environment = NOWHERE | {"LMDIAG_MAX_BEHIND": "1GiB", "STATE_DIRECTORY": "/s"}
    assert show({"poll": "always"}, environment, str(file), style, out) == 0
    return out.getvalue()


def test_a_good_file_is_ok(file: Path) -> None:
    assert checked(file) == (0, f"{file}: ok\n", "")


def test_the_problems_are_printed_one_a_line(file: Path) -> None:
    file.write_text('setle = 1\npoll = "x"\n', encoding="utf-8")
    code, out, err = checked(file, {"LMDIAG_QUIET": "0"})
    assert (code, err) == (2, "")
    assert [line.split(": ")[1] for line in out.splitlines()] == ["setle", "poll", '"0" is out of range; write a value from 1s to 365d']


def test_a_terminal_is_not_commanded(file: Path) -> None:
    file.write_text('"a\\u001b[31m\\nb" = 1\n', encoding="utf-8")
    code, out, _ = checked(file)
    assert (code, out.count("\n"), "\x1b" in out) == (2, 1, False)


def test_no_file_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = checked(None, {"CONFIGURATION_DIRECTORY": "/nowhere/etc"}, {"journal": ["a.service"]})
    assert (code, err) == (0, "")
    assert out.startswith("no file: ok; it was looked for in /nowhere/etc/config.toml, lmdiag.toml")


def test_rules_must_be_there(file: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    assert checked(file, {"LMDIAG_RULES": str(rules)}) == (
        2,
        f"LMDIAG_RULES: rules: {rules} is no directory; create it, or leave it out\n",
        "",
    )
    rules.mkdir()
    assert checked(file, {"LMDIAG_RULES": str(rules)})[0] == 0


@pytest.mark.parametrize(
    ("setting", "warned"),
    [
        ({"LMDIAG_PATHS": "/nowhere/*.log"}, "/nowhere/*.log matches nothing at present"),
        ({"LMDIAG_LISTEN": "0.0.0.0:9477"}, "can be read from other machines"),
        ({"LMDIAG_LISTEN": "[::]:9477"}, "can be read from other machines"),
        ({"LMDIAG_LISTEN": "node7:9477"}, "can be read from other machines"),
        ({"LMDIAG_SETTEL": "1s"}, "LMDIAG_SETTEL: is not a setting; did you mean LMDIAG_SETTLE?"),
    ],
)
def test_what_may_not_be_meant_is_warned_of(setting: dict[str, str], warned: str, file: Path) -> None:
    code, out, err = checked(file, setting)
    assert (code, out, err.count("\n")) == (0, f"{file}: ok\n", 1)
    assert err.startswith("warning: ")
    assert warned in err


@pytest.mark.parametrize(
    "setting",
    [
        {"LMDIAG_LISTEN": "127.1.2.3:1"},
        {"LMDIAG_LISTEN": "[::1]:1"},
        {"LMDIAG_LISTEN": "localhost:1"},
        {"LMDIAG_LISTEN": ""},
        {"LMDIAG_PATHS": "-"},
        {"LMDIAG_SERVICE_HOST": "10.0.0.1", "LMDIAG_PORT": "tcp://10.0.0.1:80", "LMDIAG_PORT_80_TCP": "x"},
    ],
)
def test_what_is_usual_is_not_warned_of(setting: dict[str, str], file: Path) -> None:
    assert checked(file, setting) == (0, f"{file}: ok\n", "")


SINKS = """
[sinks.fleet]
type = "alertmanager"
url = "https://am.example.org:9093/PLANTED?token=PLANTED"
labels = { cluster = "a", team = "b c" }
cooldown = "90s"
cards = []
[sinks.chat]
type = "slack"
url-file = "slack-url"
"""


def test_sinks_are_looked_at(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + SINKS, encoding="utf-8")
    code, out, err = checked(file)
    assert (code, out, err.count("\n")) == (0, f"{file}: ok\n", 1)
    assert err.startswith("warning: sinks.chat: url-file: slack-url cannot be read")
    file.write_text("[sinks.chat]\ntype = 1\n", encoding="utf-8")
    assert checked(file)[:2] == (2, f"{file}:2: sinks.chat.type: 1 is none of webhook, alertmanager, alertmanager-webhook, slack, pagerduty, teams, discord, file, exec, apprise\n")


def test_what_sinks_were_given_is_shown_in_a_table(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + SINKS, encoding="utf-8")
    rows = [line.split("  ") for line in shown(file, "text").splitlines()[len(IN_FILE) :]]
    assert [[part.strip() for part in row if part] for row in rows] == [
        [f"sinks.{key}", value, f"file {file}"]
        for key, value in (
            ("fleet.type", "alertmanager"),
            ("fleet.url", "https://am.example.org:9093/…"),
            ("fleet.labels", "cluster=a,team=b c"),
            ("fleet.cooldown", "90s"),
            ("fleet.cards", "none"),
            ("chat.type", "slack"),
            ("chat.url-file", "slack-url"),
        )
    ]


def test_what_sinks_were_given_is_shown_as_data(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + SINKS, encoding="utf-8")
    rows = [json.loads(line) for line in shown(file, "jsonl").splitlines()[len(IN_FILE) :]]
    assert {row["setting"].removeprefix("sinks."): row["value"] for row in rows} == {
        "fleet.type": "alertmanager",
        "fleet.url": "https://am.example.org:9093/…",
        "fleet.labels": {"cluster": "a", "team": "b c"},
        "fleet.cooldown": 90.0,
        "fleet.cards": [],
        "chat.type": "slack",
        "chat.url-file": "slack-url",
    }
    assert {(row["origin"], row["place"]) for row in rows} == {("file", str(file))}


def test_the_name_of_the_node_is_the_hosts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    rows = {line.split()[0]: line for line in shown(file, "text").splitlines()}
    assert "node7 (the host's name)" in rows["instance"]
    file.write_text('instance = "gpu-1"', encoding="utf-8")
    rows = {line.split()[0]: line for line in shown(file, "text").splitlines()}
    assert rows["instance"].split() == ["instance", "gpu-1", "file", str(file)]


def test_relative_paths_in_a_file_are_warned_of(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_text('paths = ["a.log"]', encoding="utf-8")
    assert "a.log is relative" in checked(file)[2]
    assert checked(file, {}, {"paths": ["a.log"]})[2] == ""


def test_values_and_origins_as_a_table(file: Path) -> None:
    rows = {line.split()[0]: line for line in shown(file, "text").splitlines()}
    assert list(rows) == list(IN_FILE)
    assert rows["settle"].split()[1:] == ["2s", "file", str(file)]
    assert rows["max-behind"].split()[1:] == ["1GiB", "environment", "LMDIAG_MAX_BEHIND"]
    assert rows["state"].split()[1:] == ["/s", "environment", "STATE_DIRECTORY"]
    assert rows["poll"].split()[1:] == ["always", "flag", "--poll"]
    assert rows["journal"].split()[1:] == ["none", "default"]
    assert len({rows["poll"].index("flag"), rows["journal"].index("default"), rows["settle"].index("file")}) == 1


def test_values_and_origins_as_data(file: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in shown(file, "jsonl").splitlines()]
    assert [row["setting"] for row in rows] == list(IN_FILE)
    assert rows[0] == {"setting": "paths", "value": [f"{tmp_path}/a.log"], "origin": "file", "place": str(file)}
    by = {row["setting"]: row for row in rows}
    assert by["max-behind"]["value"] == 1 << 30
    assert (by["quiet"]["origin"], by["quiet"]["place"]) == ("default", None)


def test_nothing_to_watch_says_what_to_write(file: Path) -> None:
    assert watch_config({}, NOWHERE, str(file)).settle == 2
    assert watch_config({"journal": ["a.service"]}, NOWHERE, "/dev/null").journal == ("a.service",)
    file.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf'nothing to watch.*journal = \["vllm.service"\] into {file}'):
        watch_config({}, NOWHERE, str(file))
    code, _, err = checked(file)
    assert (code, err.count("nothing to watch")) == (0, 1)
