# ruff: noqa: S106 - the name of a file is no secret
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted import CREDENTIALS, assert_clean

from lmdiag.config import SinkConfig
from lmdiag.sink_checks import warnings


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a secret that only its owner can read, and no unit around."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    write(tmp_path / "secret", CREDENTIALS[0])
    return tmp_path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def warned(**settings: Any) -> list[str]:
    sink = SinkConfig("x", "webhook", url="https://h")._replace(**settings)
    told = list(warnings((sink,)))
    assert_clean("\n".join(told), "a warning")
    return told


def test_what_is_right_is_not_warned_of() -> None:
    assert warned() == warned(token_file="secret") == warned(token_file="./secret", cert_file="secret") == []
    assert list(warnings(())) == []


FILES = [
    ("webhook", "url_file"),
    ("webhook", "token_file"),
    ("webhook", "password_file"),
    ("webhook", "secret_file"),
    ("webhook", "ca_file"),
    ("webhook", "cert_file"),
    ("webhook", "key_file"),
    ("pagerduty", "routing_key_file"),
    ("slack", "url_file"),
    ("apprise", "url_file"),
]


@pytest.mark.parametrize(("type_", "field"), FILES)
def test_a_file_that_cannot_be_read(type_: str, field: str, directory: Path) -> None:
    (told,) = warned(type=type_, url="", **{field: "missing"})
    key = field.replace("_", "-")
    assert told.startswith(f"sinks.x: {key}: missing cannot be read: No such file or directory")
    assert told.endswith("; the service gets it by LoadCredential=missing:FILE in its unit")
    (told,) = warned(type=type_, url="", **{field: f"{directory}/missing"})
    assert "LoadCredential" not in told
    (told,) = warned(type=type_, url="", **{field: str(directory)})
    assert f"{key}: {directory}" in told


def test_a_credential_is_found_where_the_unit_has_it(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(directory / "unit" / "token", CREDENTIALS[0], 0o440)
    assert len(warned(token_file="token")) == 1
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", f"{directory}/unit/")
    assert warned(token_file="token") == warned(token_file="secret") == []
    write(directory / "other", CREDENTIALS[0], 0o640)
    assert len(warned(token_file="other")) == 1


@pytest.mark.parametrize(("type_", "field"), [pair for pair in FILES if pair[1] != "ca_file"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_is_open_to_others(type_: str, field: str, mode: int, directory: Path) -> None:
    write(directory / "secret", "https://h", mode)
    (told,) = warned(type=type_, url="", **{field: "secret"})
    assert told.startswith(f"sinks.x: {field.replace('_', '-')}: secret is open to other users (mode {mode:04o}); chmod 600")


def test_certificates_are_no_secrets(directory: Path) -> None:
    write(directory / "bundle", "x" * 100_000, 0o644)
    assert warned(ca_file="bundle") == warned(cert_file="bundle", key_file="secret") == []


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"url": "http://h/x", "token_file": "secret"}, "token-file"),
        ({"url": "http://10.0.0.1", "username": "u", "password_file": "secret"}, "password-file"),
        ({"type": "pagerduty", "url": "http://h", "routing_key_file": "secret"}, "routing-key-file"),
        ({"type": "slack", "url": "", "url_file": "http"}, "url-file"),
    ],
)
def test_a_secret_that_everybody_on_the_way_reads(settings: dict[str, Any], key: str, directory: Path) -> None:
    write(directory / "http", f"http://h/{CREDENTIALS[4]}\n")
    (told,) = warned(**settings)
    assert told.startswith(f"sinks.x: {key}: the secret is sent over http://")


@pytest.mark.parametrize("host", ["localhost:1", "127.1.2.3", "[::1]:80"])
def test_loopback_is_not_on_the_way(host: str, directory: Path) -> None:
    write(directory / "url", f"http://{host}/{CREDENTIALS[4]}")
    assert warned(url=f"http://{host}", token_file="secret") == warned(url="", url_file="url") == []


def test_without_a_secret_http_is_no_matter() -> None:
    assert warned(url="http://h") == warned(url="http://h", secret_file="secret") == []


def test_a_file_that_holds_no_url(directory: Path) -> None:
    write(directory / "url", f"hooks.example.org/{CREDENTIALS[4]}")
    assert warned(url="", url_file="url") == ["sinks.x: url-file: the URL does not begin with https:// or http://"]
    assert warned(type="apprise", url="", url_file="url") == []


@pytest.mark.parametrize("type_", ["alertmanager", "pagerduty"])
def test_what_is_never_resolved(type_: str) -> None:
    (told,) = warned(type=type_, states=("opened", "repeated"))
    assert told.startswith('sinks.x: states: without "resolved" an alert')
    assert warned(states=("opened",)) == warned(type=type_) == []


def test_programs_and_paths(directory: Path) -> None:
    assert warned(type="exec", url="", command=("sh", "-c")) == []
    (told,) = warned(type="exec", url="", command=(f"{directory}/secret",))
    assert "there is no program" in told
    (told,) = warned(type="file", url="", path="lines.jsonl")
    assert "path: lines.jsonl is relative" in told
    assert warned(type="file", url="", path="/lines.jsonl") == []
