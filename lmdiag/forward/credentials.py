"""Secrets, read from files at every use and kept out of all that is shown.

A file that is changed needs no restart; one of the unit's credentials does, for systemd copies them when it starts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from lmdiag.errors import LmdiagError

MAX_SIZE = 64 << 10
MASK = "[secret]"


class CredentialError(LmdiagError):
    """A credential cannot be read. Says file, key and what to do; never the content."""


def locate(name: str) -> Path:
    """Find a file of the configuration: a name without a slash may be one of the unit's credentials.

    systemd puts those of `LoadCredential=` into the directory $CREDENTIALS_DIRECTORY (systemd.exec(5)).
    """
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    if directory and "/" not in name and (inside := Path(directory, name)).exists():
        return inside
    return Path(name)


def credential(name: str, key: str) -> str:
    """Read a credential: the content of the file, without white space at its ends. `key` is the setting that names it.

    It is UTF-8 without NUL, not empty and at most MAX_SIZE bytes. Raises CredentialError.
    """
    path = locate(name)
    try:
        content = _content(path, key)
    except OSError as error:
        raise CredentialError(
            f"{key}: {path} cannot be read: {error.strerror}; it must be readable for the user that lmdiag runs as"
        ) from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # Without the cause: its text quotes the bytes.
        raise CredentialError(f"{key}: {path} is not UTF-8 text") from None
    text = text.strip()
    if not text or "\0" in text:
        raise CredentialError(
            f"{key}: {path} {'holds a NUL character' if text else 'is empty'}; write the secret alone"
        )
    return text


def credential_line(name: str, key: str) -> str:
    """Read a credential that is one line of printable text: a second one could smuggle a header in."""
    text = credential(name, key)
    if not text.isprintable():
        raise CredentialError(f"{key}: {locate(name)} must hold one line without control characters")
    return text


def token(name: str, key: str) -> str:
    """Read a credential that stands in a header as it is: printable ASCII without blanks (RFC 6750, section 2.1)."""
    text = credential_line(name, key)
    if not text.isascii() or " " in text:
        raise CredentialError(f"{key}: {locate(name)} must hold the token alone: ASCII, no blanks, no `Bearer`")
    return text


def masked(text: str, secrets: Iterable[str]) -> str:
    """Replace the secrets in a text, also where they are escaped as in JSON or in a URL."""
    forms = {form for secret in secrets if secret for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):  # one may be a part of another
        text = text.replace(form, MASK)
    return text


def _content(path: Path, key: str) -> bytes:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise CredentialError(f"{key}: {path} is not a file")
    with path.open("rb") as file:
        content = file.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise CredentialError(f"{key}: {path} is larger than {MAX_SIZE >> 10} KiB, which no credential is")
    return content


def _forms(secret: str) -> tuple[str, ...]:
    return (
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret),
        quote(secret, safe=""),
    )
