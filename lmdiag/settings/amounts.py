"""Settings that are amounts: times, sizes and numbers, each read strictly and written so that it reads back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from lmdiag.errors import LmdiagError

_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([a-z]*)", re.IGNORECASE)
_SECONDS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BINARY = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
_DECIMAL = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES = {"": 1} | _DECIMAL | {unit.lower(): size for unit, size in _BINARY.items()}
_MAX_SHOWN = 60


class WrongValueError(LmdiagError):
    """A setting cannot have this value. Says what is wrong and what to write; who catches it adds place and key."""


class _Bounded(Protocol):
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    def text(self, value: Any) -> str: ...


class Duration(NamedTuple):
    """Seconds, between two bounds; exact to the microsecond."""

    least: float
    most: float

    def parse(self, raw: object) -> float:
        """Read "500ms", "1s", "30m", "24h", "7d", or a number of seconds."""
        value = _amount(raw, _SECONDS, 'a duration; write for example "500ms", "1s", "30m", "24h" or "7d"')
        return round(float(_within(value, self, raw)), 6)

    def text(self, value: float) -> str:
        """Write with the greatest unit that needs no fraction."""
        for unit in ("d", "h", "m", "s"):
            if value and value % _SECONDS[unit] == 0:
                return f"{int(value / _SECONDS[unit])}{unit}"
        if round(value * 1000) / 1000 == value:
            return f"{round(value * 1000)}ms" if value else "0s"
        return f"{value:.6f}".rstrip("0") + "s"


class Size(NamedTuple):
    """Bytes, between two bounds."""

    least: int
    most: int

    def parse(self, raw: object) -> int:
        """Read "64MiB", "1GB" or a number of bytes: kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024."""
        value = _amount(raw, _BYTES, 'a size; write for example "64MiB", "1GB" or a number of bytes')
        return round(_within(value, self, raw))

    def text(self, value: int) -> str:
        """Write with the greatest binary unit that needs no fraction."""
        for unit, size in _BINARY.items():
            if value and value % size == 0:
                return f"{value // size}{unit}"
        return str(value)


class Number(NamedTuple):
    """A number between two bounds."""

    least: float
    most: float

    def parse(self, raw: object) -> float:
        """Read 0.5 or "0.5"."""
        value = _amount(raw, {"": 1.0}, f"a number from {self.text(self.least)} to {self.text(self.most)}")
        return float(_within(value, self, raw))

    def text(self, value: float) -> str:
        """Write without a fraction where there is none."""
        return f"{value:.9f}".rstrip("0").rstrip(".")


class Count(NamedTuple):
    """A whole number between two bounds."""

    least: int
    most: int

    def parse(self, raw: object) -> int:
        """Read 10 or "10"."""
        return _whole(raw, self, "a whole number")

    def text(self, value: float) -> str:
        """Write the number."""
        return str(int(value))


class Columns(NamedTuple):
    """The width of a terminal, or None where nobody said."""

    least: int = 20
    most: int = 1000

    def parse(self, raw: object) -> int:
        """Read a whole number."""
        return _whole(raw, self, "a number of columns")

    def text(self, value: int | None) -> str:
        """Write the number; None cannot be written and is shown as what it means."""
        return "the terminal's" if value is None else str(value)


def _amount(raw: object, units: Mapping[str, float], what: str) -> float:
    """Read a number, or a text of a number and a unit."""
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return raw
    hit = _AMOUNT.fullmatch(raw.strip()) if isinstance(raw, str) else None
    factor = units.get(hit[2].lower()) if hit else None
    if hit is None or factor is None:
        raise WrongValueError(f"{shown(raw)} is not {what}")
    return float(hit[1]) * factor


def _whole(raw: object, kind: _Bounded, what: str) -> int:
    value = _amount(raw, {"": 1.0}, f"{what} from {kind.text(kind.least)} to {kind.text(kind.most)}")
    if value != int(_within(value, kind, raw)):
        raise WrongValueError(f"{shown(raw)} is not a whole number")
    return int(value)


def _within(value: float, kind: _Bounded, raw: object) -> float:
    """Check the bounds; TOML's nan and inf, and numbers too great for a float, are outside."""
    if not kind.least <= value <= kind.most:
        bounds = f"{kind.text(kind.least)} to {kind.text(kind.most)}"
        raise WrongValueError(f"{shown(raw)} is out of range; write a value from {bounds}")
    return value


def shown(raw: object) -> str:
    """Write a value nearly as the file does."""
    from lmdiag.report.control import clip

    if isinstance(raw, bool):
        return str(raw).lower()
    try:
        return clip(f'"{raw}"' if isinstance(raw, str) else str(raw), _MAX_SHOWN)
    except ValueError:  # an integer of more than 4300 digits
        return "this number"
