"""Walks the statements of a function and knows, at each of them, what texts its local names may hold.

A small abstract interpreter: branches are walked apart and joined, loops are walked once, and what cannot be known is a
hole. Dead code is walked too, since every `raise` must be found.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

from lmdiag.catalog.contexts import MAX_DEPTH, Context, Returned
from lmdiag.catalog.environments import MAX_LINES, Built, Caught, Environment, Lines, Value, forget, join_ends
from lmdiag.catalog.exceptions import message_of, super_message
from lmdiag.catalog.messages import callee_of, inside, read
from lmdiag.catalog.modules import Function
from lmdiag.catalog.texts import Texts, dotted, either, has_literal, hole, is_hole, name_of, unique

_WORDY = 5
"""Characters from which a text that a helper returns beside other values counts as a message."""


class Visitor(Protocol):
    """What wants to see the statements on the way."""

    def on_statement(self, node: ast.stmt, context: Context) -> None:
        """See a statement with what its names hold before it."""

    def on_function(self, node: Function, context: Context) -> None:
        """See a function that is defined here."""

    def on_class(self, node: ast.ClassDef, context: Context) -> None:
        """See a class that is defined here."""


class Walker:
    """Walks blocks in a context whose names it changes."""

    def __init__(self, context: Context, visitor: Visitor | None = None) -> None:
        self.context = context
        self.visitor = visitor
        self.returns: list[tuple[ast.expr, Environment]] = []
        self.supers: Texts = []
        """What was handed to `super().__init__`."""
        self._exits: list[list[Environment]] = []
        """For each loop around: what the names hold where it is left, or begun again."""
        self.own: Texts = []
        """What was kept as `self.message`."""

    def block(self, statements: Sequence[ast.stmt], names: Environment) -> bool:
        """Walk statements; the names are changed. Returns whether what follows them is reached."""
        reached = True
        for node in statements:
            if reached:
                reached = self.statement(node, names)
            else:
                self.statement(node, dict(names))
        return reached

    def statement(self, node: ast.stmt, names: Environment) -> bool:
        """Walk one statement. Returns whether what follows it is reached."""
        if isinstance(node, Function):
            if self.visitor:
                self.visitor.on_function(node, self.at(names))
            names[node.name] = node
            return True
        if isinstance(node, ast.ClassDef):
            if self.visitor:
                self.visitor.on_class(node, self.at(names))
            return True
        if self.visitor:
            self.visitor.on_statement(node, self.at(names))
        walk = self._walks.get(type(node))
        return walk(self, node, names) if walk else True

    def at(self, names: Environment) -> Context:
        """Return the context with these names."""
        return self.context._replace(names=names)

    def branches(self, blocks: Iterable[Sequence[ast.stmt]], names: Environment, *, skip: bool) -> bool:
        """Walk blocks of which one runs (or none, with `skip`) and join what they leave."""
        ends: list[Environment] = [dict(names)] if skip else []
        for block in blocks:
            mine = dict(names)
            if self.block(block, mine):
                ends.append(mine)
        join_ends(names, ends)
        return bool(ends)

    # -- the kinds of statements -----------------------------------------------------------------------------------

    def _raise(self, _node: ast.Raise, _names: Environment) -> bool:
        return False

    def _leave_loop(self, _node: ast.stmt, names: Environment) -> bool:
        if self._exits:
            self._exits[-1].append(dict(names))
        return False

    def _return(self, node: ast.Return, names: Environment) -> bool:
        if node.value is not None and self.context.depth:
            self.returns.append((node.value, dict(names)))
        return False

    def _assign(self, node: ast.Assign, names: Environment) -> bool:
        for target in node.targets:
            self._store(target, node.value, names)
        return True

    def _annotated(self, node: ast.AnnAssign, names: Environment) -> bool:
        if node.value is not None:
            self._store(node.target, node.value, names)
        return True

    def _augmented(self, node: ast.AugAssign, names: Environment) -> bool:
        if not isinstance(node.target, ast.Name):
            return True
        name, value = node.target.id, names.get(node.target.id)
        if isinstance(value, Lines):
            names[name] = self._longer(value, node.value, names)
        elif name in names:
            names[name] = self._value(ast.BinOp(node.target, node.op, node.value), names)
        return True

    def _longer(self, lines: Lines, more: ast.expr, names: Environment) -> Lines:
        """Return a list with the items of another behind it."""
        value = names.get(more.id) if isinstance(more, ast.Name) else self._value(more, names)
        if isinstance(more, ast.Tuple):
            value = Lines(tuple(read(item, self.at(names)) for item in more.elts))
        items = value.items if isinstance(value, Lines) else (hole(name_of(more)),)
        return Lines((*lines.items, *items)[:MAX_LINES])

    def _expression(self, node: ast.Expr, names: Environment) -> bool:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return True
        holder = call.func.value
        if call.func.attr in ("append", "insert") and isinstance(holder, ast.Name) and call.args:
            value = names.get(holder.id)
            if isinstance(value, Lines) and len(value.items) < MAX_LINES:
                names[holder.id] = Lines((*value.items, read(call.args[-1], self.at(names))))
        elif call.func.attr == "extend" and isinstance(holder, ast.Name) and call.args:
            if isinstance(value := names.get(holder.id), Lines):
                names[holder.id] = self._longer(value, call.args[0], names)
        elif call.func.attr == "__init__" and isinstance(holder, ast.Call) and dotted(holder.func) == "super":
            self.supers = unique(self.supers + super_message(call, self.at(names)))
        return True

    def _if(self, node: ast.If, names: Environment) -> bool:
        self._bind(node.test, names)
        return self.branches([node.body, node.orelse], names, skip=False)

    def _bind(self, test: ast.expr, names: Environment) -> None:
        """Store what `:=` in a condition stores."""
        for item in ast.walk(test):
            if isinstance(item, ast.NamedExpr):
                self._store(item.target, item.value, names)

    def _for(self, node: ast.For | ast.AsyncFor, names: Environment) -> bool:
        inside = dict(names)
        forget(node.target, inside)
        return self._loop(node.body, node.orelse, inside, names)

    def _while(self, node: ast.While, names: Environment) -> bool:
        self._bind(node.test, names)
        return self._loop(node.body, node.orelse, dict(names), names)

    def _loop(self, body: list[ast.stmt], otherwise: list[ast.stmt], inside: Environment, names: Environment) -> bool:
        ends = [dict(names)]
        self._exits.append([])
        if self.block(body, inside):
            ends.append(inside)
        join_ends(names, ends + self._exits.pop())
        self.block(otherwise, names)
        return True

    def _with(self, node: ast.With | ast.AsyncWith, names: Environment) -> bool:
        for item in node.items:
            if item.optional_vars is not None:
                forget(item.optional_vars, names)
        return self.block(node.body, names)

    def _try(self, node: ast.Try | ast.TryStar, names: Environment) -> bool:
        before, ends = dict(names), list[Environment]()
        through = self.block(node.body, names)
        join_ends(before, [dict(before), dict(names)])  # the body may have stopped anywhere
        if self.block(node.orelse, names) and through:
            ends.append(dict(names))
        for handler in node.handlers:
            mine = dict(before)
            if handler.name:
                mine[handler.name] = Caught()
            if self.block(handler.body, mine):
                ends.append(mine)
        join_ends(names, ends)
        return self.block(node.finalbody, names) and bool(ends)

    def _match(self, node: ast.Match, names: Environment) -> bool:
        return self.branches([case.body for case in node.cases], names, skip=True)

    # -- assignments -----------------------------------------------------------------------------------------------

    def _store(self, target: ast.expr, value: ast.expr, names: Environment) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = self._value(value, names)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, names)
        elif isinstance(target, ast.Attribute) and dotted(target) in ("self.message", "self.msg"):
            self.own = read(value, self.at(names))

    def _unpack(self, targets: list[ast.expr], value: ast.expr, names: Environment) -> None:
        if isinstance(value, ast.Tuple) and len(value.elts) == len(targets):
            values = [self._value(item, names) for item in value.elts]
        else:
            values = [_messages(item) for item in zip(*self._tuples(value, len(targets), names), strict=True)]
            values = values or [None] * len(targets)
        for target, each in zip(targets, values, strict=True):
            forget(target, names)
            if isinstance(target, ast.Name):
                names[target.id] = each

    def _tuples(self, value: ast.expr, length: int, names: Environment) -> list[list[Texts]]:
        """Return what a helper such as `ok, message = check(…)` may return."""
        context = self.at(names)
        callee = callee_of(value, context) if isinstance(value, ast.Call) and context.depth < MAX_DEPTH else None
        if callee is None or not isinstance(value, ast.Call) or not isinstance(callee.function, ast.FunctionDef):
            return []
        found = returned(callee.function, inside(callee, value, context)).tuples
        return [item for item in found if len(item) == length]

    def held(self, node: ast.expr, names: Environment) -> Built | Lines | None:
        """Return the exception or the list that an expression is."""
        context = self.at(names)
        if isinstance(node, ast.Call) and is_error(node, context):
            return Built(((dotted(node.func), message_of(node, context)),))
        if isinstance(node, ast.List):
            return Lines(tuple(read(item, context) for item in node.elts[:MAX_LINES]))
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        return value if isinstance(value, Built | Lines) else None

    def _value(self, node: ast.expr, names: Environment) -> Value:
        context = self.at(names)
        if value := self.held(node, names):
            return value
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return None
        texts = read(node, context)
        if has_literal(texts) or texts == [("",)]:
            return texts
        return self._lines(node, context) if isinstance(node, ast.Call) else None

    def _lines(self, node: ast.Call, context: Context) -> Lines | None:
        """Return the list of texts that a helper such as `errors = self._validate()` builds."""
        callee = callee_of(node, context) if context.depth < MAX_DEPTH else None
        if callee is None or not isinstance(callee.function, ast.FunctionDef):
            return None
        lines = returned(callee.function, inside(callee, node, context)).lines
        return Lines(lines[:MAX_LINES]) if lines else None

    _walks: ClassVar[Mapping[type[ast.stmt], Callable[..., bool]]] = {
        ast.Raise: _raise,
        ast.Continue: _leave_loop,
        ast.Break: _leave_loop,
        ast.Return: _return,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.Expr: _expression,
        ast.If: _if,
        ast.For: _for,
        ast.AsyncFor: _for,
        ast.While: _while,
        ast.With: _with,
        ast.AsyncWith: _with,
        ast.Try: _try,
        ast.TryStar: _try,
        ast.Match: _match,
    }


def is_error(call: ast.Call, context: Context) -> bool:
    """Whether a call builds an exception."""
    name = dotted(call.func)
    return bool(name) and "BaseException" in context.package.error_class(context.module, name).bases


class Helpers:
    """What the helpers of a package give, found by walking them; see messages.Interpreter."""

    def returned(self, function: Function, context: Context) -> Returned:
        """Return what a function may return in this context."""
        return returned(function, context)

    def constructed(self, init: Function, context: Context) -> Texts | None:
        """Return the message that an `__init__` gives itself, or None if it gives none that can be read."""
        return constructed(init, context)


def returned(function: Function, context: Context) -> Returned:
    """Return what a function may return in this context."""
    walker = Walker(context)
    walker.block(function.body, dict(context.names))
    found = Returned([], [], (), [])
    for node, names in walker.returns:
        here = context._replace(names=names)
        value = walker.held(node, names)
        if isinstance(value, Built):
            found.errors.extend(value.errors)
        if isinstance(value, Lines):
            found = found._replace(lines=(*found.lines, *(item for item in value.items if item not in found.lines)))
        if isinstance(node, ast.Tuple):
            found.tuples.append([[] if _is_none(item) else read(item, here) for item in node.elts])
        elif not isinstance(node, ast.Constant) or isinstance(node.value, str):  # None and False say: no message
            found = found._replace(texts=unique(found.texts + read(node, here)))
    return found


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def constructed(init: Function, context: Context) -> Texts | None:
    """Return the message that a class's `__init__` gives itself, or None if it gives none that can be read."""
    walker = Walker(context)
    walker.block(init.body, dict(context.names))
    return unique(walker.supers) or walker.own or None


def _messages(alternatives: Iterable[Texts]) -> Value:
    """Return those texts at one place of the tuples that may be messages."""
    found = [
        text
        for texts in alternatives
        for text in texts
        if is_hole(text) or any(len(literal.strip()) > _WORDY for literal in text[::2])
    ]
    return either(found) if has_literal(found) else None
