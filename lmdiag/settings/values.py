"""Settings that are words, names, addresses and lists, and what all kinds of values have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from lmdiag.settings.amounts import WrongValueError, shown

_MAX_NAME = 200
_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


class Kind(Protocol):
    """How the values of a setting are read and written."""

    def parse(self, raw: object) -> Any:
        """Read what a file, the environment or a flag gives. Raises WrongValueError: what is wrong, and what to write."""

    def text(self, value: Any) -> str:
        """Write a value as it may stand in the environment; `parse` reads it back."""


class Choice(NamedTuple):
    """One of some words, each with the value that it stands for."""

    options: Mapping[str, Any]

    def parse(self, raw: object) -> Any:
        """Read one of the words."""
        if isinstance(raw, str) and raw in self.options:
            return self.options[raw]
        near = did_you_mean(raw, self.options) if isinstance(raw, str) else ""
        raise WrongValueError(f"{shown(raw)} is none of {', '.join(self.options)}{near}")

    def text(self, value: Any) -> str:
        """Write the word that stands for the value."""
        return next(word for word, meant in self.options.items() if meant == value)


def words(*options: str) -> Choice:
    """Words that stand for themselves."""
    return Choice({option: option for option in options})


class Text(NamedTuple):
    """A name or a path."""

    what: str

    def parse(self, raw: object) -> str:
        """Read a text that is not empty."""
        if not isinstance(raw, str):
            raise WrongValueError(f"{shown(raw)} is not {self.what} in quotation marks")
        if not raw.strip() or "\0" in raw:
            raise WrongValueError(f"{shown(raw)} is not {self.what}")
        return raw

    def text(self, value: str) -> str:
        """Write it as it is."""
        return value


class Name(NamedTuple):
    """A short text of one line."""

    what: str
    empty: bool = False
    """It may be empty, and then stands for something else."""

    def parse(self, raw: object) -> str:
        """Read up to 200 characters that can be seen."""
        if not isinstance(raw, str):
            raise WrongValueError(f"{shown(raw)} is not {self.what} in quotation marks")
        if not self.empty and not raw:
            raise WrongValueError(f"{shown(raw)} is not {self.what}")
        if raw != raw.strip() or not raw.isprintable() or len(raw) > _MAX_NAME:
            raise WrongValueError(
                f"{shown(raw)} is not {self.what}; write at most {_MAX_NAME} characters on one line, no blank at the ends"
            )
        return raw

    def text(self, value: str) -> str:
        """Write it as it is."""
        return value


class Listen(NamedTuple):
    """HOST:PORT to listen on, or nothing."""

    def parse(self, raw: object) -> str:
        """Read "127.0.0.1:9477", "[::1]:9477", "localhost:9477", or "" for none; port 0 takes a free one."""
        if raw == "" or (isinstance(raw, str) and address(raw)):
            return str(raw)
        raise WrongValueError(
            f'{shown(raw)} is not HOST:PORT; write for example "127.0.0.1:9477", "[::1]:9477", or "" for off'
        )

    def text(self, value: str) -> str:
        """Write it as it is."""
        return value


class ListOf(NamedTuple):
    """Some values of one kind; in one text they are separated."""

    item: Kind
    separator: str
    """Beside the newline: ":" for paths, "," for the rest. Where there is a newline, it alone separates."""
    rising: bool = False
    least: int = 0
    """So many entries."""

    def split(self, text: str) -> list[str]:
        """Take one text apart, as the environment gives it."""
        parts = text.split("\n" if "\n" in text else self.separator)
        return [part.strip() for part in parts if part.strip()]

    def parse(self, raw: object) -> tuple[Any, ...]:
        """Read a list."""
        if not isinstance(raw, (list, tuple)):
            raise WrongValueError(f"{shown(raw)} is not a list; write it in brackets: [{shown(raw)}]")
        values = tuple(self.item.parse(entry) for entry in raw)
        if len(values) < self.least:
            raise WrongValueError("the list is empty, which nothing fits; leave it out, or write what you want")
        if self.rising and any(later <= earlier for earlier, later in pairwise(values)):
            raise WrongValueError(f"{shown(raw)} does not rise; write the shortest first, and each once")
        return values

    def text(self, value: Sequence[Any]) -> str:
        """Write the entries with the separator between; with newlines if one of them holds it."""
        parts = [self.item.text(entry) for entry in value]
        return ("\n" if any(self.separator in part for part in parts) else self.separator).join(parts)


class Switch(NamedTuple):
    """Yes, no, or None where nobody said."""

    def parse(self, raw: object) -> bool:
        """Read true or false."""
        if not isinstance(raw, bool):
            raise WrongValueError(f"{shown(raw)} is neither true nor false")
        return raw

    def text(self, value: bool | None) -> str:
        """Write true or false."""
        return {None: "auto", True: "true", False: "false"}[value]


def address(listen: str) -> tuple[str, int] | None:
    """Take HOST:PORT apart, an IPv6 address without its brackets; None: it is no address, or "" (off)."""
    hit = _LISTEN.fullmatch(listen)
    if hit is None or int(hit[3]) > 65535:
        return None
    return hit[1] or hit[2], int(hit[3])


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine is behind a host."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def nearest(word: str, known: Mapping[str, Any], cutoff: float = 0.6) -> str:
    """Find what was probably meant, or nothing: "". The cutoff is difflib's: 1 for equal words."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower().replace("_", "-"), known, n=1, cutoff=cutoff)), "")


def did_you_mean(word: str, known: Mapping[str, Any]) -> str:
    """Write "; did you mean X?" for what was probably meant, or nothing."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""
