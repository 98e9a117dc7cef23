"""Walks a whole module, scope by scope: its classes and functions, those inside of others too."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator

from lmdiag.catalog.contexts import Context
from lmdiag.catalog.messages import bind, callee_of
from lmdiag.catalog.modules import Function, Module, Package
from lmdiag.catalog.texts import Texts, has_literal
from lmdiag.catalog.walker import Helpers, Walker


class ModuleWalk(ABC):
    """Sees every statement of a module, with what the names around it hold."""

    def __init__(self, package: Package, module: Module) -> None:
        self.package, self.module = package, module
        self.stack: list[ast.ClassDef | Function] = []
        """The classes and functions around the statement, from the outside."""

    def walk(self) -> None:
        """Walk the whole module."""
        context = Context(self.package, self.module, None, {}, Helpers())
        Walker(context, self).block(self.module.tree.body, {})

    def on_class(self, node: ast.ClassDef, context: Context) -> None:
        """Walk the body of a class."""
        self.stack.append(node)
        Walker(context._replace(owner=node, names={}), self).block(node.body, {})
        self.stack.pop()

    def on_function(self, node: Function, context: Context) -> None:
        """Walk the body of a function; one inside of another sees the names around it."""
        nested = bool(self.stack) and isinstance(self.stack[-1], Function)
        names = dict(context.names) if nested else {}
        names.update(dict.fromkeys(parameters(node)))
        self.stack.append(node)
        Walker(context._replace(names=names), self).block(node.body, names)
        self.stack.pop()

    @abstractmethod
    def on_statement(self, node: ast.stmt, context: Context) -> None:
        """See a statement."""


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters."""
    given = function.args
    found = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [item.arg for item in found if item is not None]


def own_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement without those of the statements inside of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


Parameter = tuple[Function, str]


class Callers(ModuleWalk):
    """What a module hands to parameters of its own functions: the message of `def fail(message): raise X(message)`."""

    def __init__(self, package: Package, module: Module, wanted: set[Parameter]) -> None:
        super().__init__(package, module)
        self._wanted = wanted
        self._names = {function.name for function, _ in wanted}
        self.found: dict[Parameter, Texts] = {}

    def on_statement(self, node: ast.stmt, context: Context) -> None:
        """Note what the calls in the statement hand over."""
        for expression in own_expressions(node):
            for call in ast.walk(expression):
                if isinstance(call, ast.Call) and _last_name(call.func) in self._names:
                    self._call(call, context)

    def _call(self, call: ast.Call, context: Context) -> None:
        callee = callee_of(call, context)
        for parameter in self._wanted:
            if callee is not None and callee.function is parameter[0]:
                given = bind(callee, call, context).get(parameter[1])
                texts = given if isinstance(given, list) else []
                self.found.setdefault(parameter, []).extend(text for text in texts if has_literal([text]))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
