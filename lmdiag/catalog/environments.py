"""What the local names of a function may hold at one point of it, and how branches that meet are joined."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.catalog.modules import Function
from lmdiag.catalog.texts import Texts, either, hole

MAX_LINES = 12
"""Kept of a list of texts."""


class Built(NamedTuple):
    """The value of a name that holds an exception which was built and not yet raised."""

    errors: tuple[tuple[str, Texts], ...]
    """Name of the class and message of each that it may be."""


class Lines(NamedTuple):
    """The value of a name that holds a list of texts."""

    items: tuple[Texts, ...]


class Caught(NamedTuple):
    """The value of the name in `except … as name`."""


Value = Texts | Built | Lines | Caught | Function | None
Environment = dict[str, Value]
"""What each local name may hold at one point of a function; None: unknown."""


def forget(target: ast.expr, names: Environment) -> None:
    """Note that names are given values which are not known."""
    names.update({item.id: None for item in ast.walk(target) if isinstance(item, ast.Name)})


def join_ends(names: Environment, ends: Sequence[Environment]) -> None:
    """Make the names what any of the ends of the branches leaves."""
    if not ends:
        return
    joined = ends[0]
    for other in ends[1:]:
        joined = {
            name: _join(name, joined, other) for name in (*joined, *(item for item in other if item not in joined))
        }
    names.clear()
    names.update(joined)


def _join(name: str, left: Environment, right: Environment) -> Value:
    one, other = left.get(name), right.get(name)
    if one is other or one == other:
        return one
    if isinstance(one, Built) and isinstance(other, Built):
        return Built((*one.errors, *(item for item in other.errors if item not in one.errors)))
    if isinstance(one, Built) or isinstance(other, Built):
        return one if isinstance(one, Built) else other
    if isinstance(one, list) and isinstance(other, list):
        return either(one + other)
    if isinstance(one, Lines) and isinstance(other, Lines):
        return Lines((*one.items, *(item for item in other.items if item not in one.items))[:MAX_LINES])
    known, unknown_in = (one, right) if isinstance(one, list) else (other, left)
    if isinstance(known, list) and name in unknown_in and unknown_in[name] is None:
        return either([*hole(name), *known])
    return one if isinstance(one, list | Lines) else other if other is not None else one
