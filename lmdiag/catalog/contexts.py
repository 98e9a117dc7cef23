"""Where an expression stands: its module and class, what the names around it hold, and who interprets its helpers."""

from __future__ import annotations

import ast
from typing import NamedTuple, Protocol

from lmdiag.catalog.environments import Environment
from lmdiag.catalog.modules import Function, Module, Package
from lmdiag.catalog.texts import Texts

MAX_DEPTH = 3
"""How deep calls of helpers are followed."""


class Callee(NamedTuple):
    """The function of the package that a call calls."""

    module: Module
    owner: ast.ClassDef | None
    function: Function
    bound: bool
    """Its first parameter is the object."""


class Returned(NamedTuple):
    """What a function may return."""

    texts: Texts
    tuples: list[list[Texts]]
    lines: tuple[Texts, ...]
    errors: list[tuple[str, Texts]]
    """Exceptions: name of the class, and message."""


class Interpreter(Protocol):
    """Walks helpers for the reader of expressions: the two need each other."""

    def returned(self, function: Function, context: Context) -> Returned:
        """Return what a function may return in this context."""

    def constructed(self, init: Function, context: Context) -> Texts | None:
        """Return the message that an `__init__` gives itself, or None."""


class Context(NamedTuple):
    """Where an expression stands."""

    package: Package
    module: Module
    owner: ast.ClassDef | None
    names: Environment
    helpers: Interpreter
    depth: int = 0
