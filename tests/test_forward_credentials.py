"""Credentials come from files, are checked, and never show."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import CREDENTIALS

from lmdiag.forward.credentials import (
    MASK,
    MAX_SIZE,
    CredentialError,
    credential,
    credential_line,
    locate,
    masked,
    token,
)

SECRET = CREDENTIALS[0]


@pytest.fixture(autouse=True)
def _in_its_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def test_white_space_at_the_ends_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"\n {SECRET}\r\n\n")
    assert credential(str(path), "token-file") == credential("token", "token-file") == SECRET


def test_a_name_is_looked_for_among_the_units_credentials_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = tmp_path / "unit"
    unit.mkdir()
    Path("token").write_text("mine")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(unit))
    assert credential("token", "token-file") == "mine"
    (unit / "token").write_text("the unit's")
    assert credential("token", "token-file") == "the unit's"
    assert credential("./token", "token-file") == "mine", "a path is a path"
    assert locate("token") == unit / "token"


def test_a_rotation_needs_no_restart() -> None:
    for content in ("old", "new"):
        Path("token").write_text(content)
        assert token("token", "token-file") == content


@pytest.mark.parametrize(
    ("read", "content", "why"),
    [
        (credential, b"", "is empty"),
        (credential, b" \n", "is empty"),
        (credential, b"PLANTED\xff\xfe", "is not UTF-8"),
        (credential, b"PLANTED\0x", "NUL"),
        (credential, b"PLANTED" * MAX_SIZE, "larger than 64 KiB"),
        (credential_line, b"PLANTED\nX-Header: x", "one line"),
        (credential_line, b"PLANTED\rx", "one line"),
        (credential_line, b"PLANTED\x1b[0m", "one line"),
        (credential_line, "PLANTED\u2028x".encode(), "one line"),
        (token, b"PLANTED\nX-Header: x", "one line"),
        (token, b"Bearer PLANTED", "no `Bearer`"),
        (token, "PLANTEDé".encode(), "ASCII"),
    ],
)
def test_what_is_no_credential(read: Callable[[str, str], str], content: bytes, why: str) -> None:
    Path("secret").write_bytes(content)
    with pytest.raises(CredentialError, match=why) as caught:
        read("secret", "token-file")
    text = f"{caught.value}{caught.value.__cause__}"
    assert text.startswith("token-file: secret "), "it names the key and the file"
    assert "PLANTED" not in text


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(CredentialError, match=r"^url-file: nowhere cannot be read: No such file or directory; "):
        credential("nowhere", "url-file")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(make: Callable[[str], None]) -> None:
    make("token")
    with pytest.raises(CredentialError, match="token-file: token is not a file"):
        credential("token", "token-file")


def test_several_lines_are_several_secrets() -> None:
    Path("secrets").write_text("one\ntwo\n")
    assert credential("secrets", "secret-file") == "one\ntwo"


@pytest.mark.parametrize("name", ["password with blanks", "pässwörd"])
def test_a_password_may_have_blanks_and_letters_of_all_scripts(name: str) -> None:
    Path("password").write_text(name)
    assert credential_line("password", "password-file") == name


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-8", exclude_characters=MASK)), st.text())
def test_a_secret_is_masked_however_it_is_written(secret: str, around: str) -> None:
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret)):
        shown = masked(f"{around}{form}{around}", [secret])
        assert MASK in shown
        assert all(form not in piece for piece in shown.split(MASK))


def test_of_two_secrets_the_longer_one_is_masked_whole() -> None:
    assert masked("abcdef abc", ["abc", "abcdef"]) == f"{MASK} {MASK}"


def test_what_is_empty_is_no_secret() -> None:
    assert masked("abc", ["", ""]) == "abc"
