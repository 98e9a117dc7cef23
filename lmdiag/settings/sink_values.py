"""Kinds of values that only sinks have. What may hold a secret is never repeated in a message."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import NamedTuple
from urllib.parse import urlsplit

from lmdiag.settings.amounts import WrongValueError, shown
from lmdiag.settings.values import Name

_NETLOC = re.compile(
    r"(?:\[([0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._-]+)?)\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?)(?::([0-9]{1,5}))?"
)
_BEGINNING = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)  # RFC 3986, appendix B
_BRACKETS = "holds brackets that are no IPv6 address"
_MAX_PORT = 65535
_MAX_PART = 255  # of a path, between two slashes: NAME_MAX
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OWN_LABELS = frozenset({"alertname", "card", "severity", "instance", "source", "fingerprint"})
_SECRET = re.compile(r"[a-z][a-z0-9+.-]*://|whsec_|bearer |xox[a-z]-|-----begin", re.IGNORECASE)


class Url(NamedTuple):
    """An http or https URL. Its path and query may be secret."""

    def parse(self, raw: object) -> str:
        """Read a URL with a host, as urllib3 takes it as well."""
        if not isinstance(raw, str):
            raise WrongValueError('this is not a URL in quotation marks; write for example "https://host.example/hook"')
        if not re.fullmatch(r"[!-~]*", raw):
            raise WrongValueError("the URL holds a blank or what is not ASCII; write such a character as %20 or %C3%A4")
        if problem := _problem(raw):
            raise WrongValueError(f"the URL {problem}")
        return raw

    def text(self, value: str) -> str:
        """Write it without its path and query."""
        return shortened_url(value)


def _problem(raw: str) -> str:
    """Say what keeps a URL from being posted to, or "". Patch releases of Python differ in what urlsplit refuses."""
    begins = _BEGINNING.match(raw)
    if begins is None:
        return "does not begin with https:// or http://"
    netloc = begins[1]
    if "@" in netloc:
        return "holds a user or a password; use username and password-file for them"
    if "#" in raw:
        return "holds a #; what stands behind it is never sent: leave it out"
    if ("[" in netloc) != ("]" in netloc):
        return _BRACKETS
    hit = _NETLOC.fullmatch(netloc)
    if hit is None or (hit[2] and not 0 < int(hit[2]) <= _MAX_PORT):
        return "has no host or a wrong port; write https://HOST/ or https://HOST:PORT/, the port from 1 to 65535"
    return "" if hit[1] is None or _is_ipv6(hit[1]) else _BRACKETS


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def shortened_url(url: str) -> str:
    """Write scheme://host[:port] of a URL that was read, and /… where more follows."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{'/…' if parts.path.strip('/') or parts.query else ''}"


class File(NamedTuple):
    """The name of a file. Whoever mistakes the key writes the secret itself here, so it is never repeated."""

    def parse(self, raw: object) -> str:
        """Read a path, or the name of a systemd credential."""
        if not isinstance(raw, str):
            raise WrongValueError("this is not the name of a file in quotation marks")
        if _SECRET.match(raw.strip()):
            raise WrongValueError(
                "this seems to be the secret itself; put it into a file, and write the file's name here"
            )
        if not raw.strip() or not raw.isprintable() or any(len(part.encode()) > _MAX_PART for part in raw.split("/")):
            raise WrongValueError("this is not the name of a file; write a path, or the name of a systemd credential")
        return raw

    def text(self, value: str) -> str:
        """Write it as it is."""
        return value


class Glob(NamedTuple):
    """A glob, or with ! in front one that excludes."""

    what: str

    def parse(self, raw: object) -> str:
        """Read a text that is not empty, behind its ! neither."""
        if not isinstance(raw, str):
            raise WrongValueError(f"{shown(raw)} is not {self.what} in quotation marks")
        if not raw.removeprefix("!").strip() or not raw.isprintable():
            raise WrongValueError(f"{shown(raw)} is not {self.what}")
        return raw

    def text(self, value: str) -> str:
        """Write it as it is."""
        return value


class Labels(NamedTuple):
    """Labels of an alert: names as Prometheus has them, with texts."""

    def parse(self, raw: object) -> tuple[tuple[str, str], ...]:
        """Read a table; its order is kept."""
        if not isinstance(raw, dict):
            raise WrongValueError(f'{shown(raw)} is not a table; write for example {{ cluster = "a" }}')
        return tuple((_label(name), _label_value(name, value)) for name, value in raw.items())

    def text(self, value: Sequence[tuple[str, str]]) -> str:
        """Write name=value, with commas between."""
        return ",".join(f"{name}={text}" for name, text in value)


def _label(name: str) -> str:
    if name in _OWN_LABELS:
        raise WrongValueError(f"{name} is a label that lmdiag sets itself; take another name")
    if not _LABEL.fullmatch(name) or name.startswith("__"):  # those are Prometheus' own
        raise WrongValueError(f"{shown(name)} is not the name of a label; it has letters, digits and _, a letter first")
    return name


def _label_value(name: str, raw: object) -> str:
    try:
        return Name("a label's text").parse(raw)
    except WrongValueError as error:
        raise WrongValueError(f"{name}: {error}") from None


class Command(NamedTuple):
    """A program and its arguments."""

    def parse(self, raw: object) -> tuple[str, ...]:
        """Read a list of texts; the program is looked for in PATH if it is named without a slash."""
        if not isinstance(raw, list) or not raw or not all(isinstance(part, str) and "\0" not in part for part in raw):
            raise WrongValueError(
                'this is not a list of a program and its arguments; write for example ["/usr/bin/page", "-v"]'
            )
        program = raw[0]
        if not program.strip() or ("/" in program and not os.path.isabs(program)):
            raise WrongValueError("the first is neither an absolute path nor the name of a program")
        return tuple(raw)

    def text(self, value: Sequence[str]) -> str:
        """Write it as a shell would take it."""
        from shlex import join

        return join(value)
