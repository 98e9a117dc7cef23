"""Reads the expressions that make messages: from an AST node to the texts that it may give."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial

from lmdiag.catalog import formats
from lmdiag.catalog.contexts import MAX_DEPTH, Callee, Context
from lmdiag.catalog.environments import Built, Environment, Lines
from lmdiag.catalog.modules import Function, Module
from lmdiag.catalog.texts import (
    EMPTY,
    Texts,
    dotted,
    either,
    has_literal,
    hole,
    name_of,
    product,
    unique,
)

_MAX_REPEAT = 200


def read(node: ast.expr | None, context: Context) -> Texts:
    """Return what `str()` of the expression may be; an unknown value is a lone hole."""
    if node is None:
        return [EMPTY]
    reader = _READERS.get(type(node))
    return reader(node, context) if reader else hole(name_of(node))


def _constant(node: ast.Constant, _: Context) -> Texts:
    if isinstance(node.value, bytes) or node.value is Ellipsis:
        return hole()
    text = str(node.value)
    return [(text if text.isascii() else text.encode(errors="replace").decode(),)]  # half a surrogate pair is no text


def _fstring(node: ast.JoinedStr, context: Context) -> Texts:
    return product(*[read(value, context) for value in node.values])


def _field(node: ast.FormattedValue, context: Context) -> Texts:
    conversion = chr(node.conversion) if node.conversion > 0 else ""
    if node.format_spec is None and conversion in ("", "s"):
        texts = read(node.value, context)
        if has_literal(texts):
            return texts
    if node.format_spec is None and conversion == "r" and isinstance(node.value, ast.Constant):
        return [(repr(node.value.value),)]
    return hole(name_of(node.value))


def _operation(node: ast.BinOp, context: Context) -> Texts:
    left = read(node.left, context)
    if isinstance(node.op, ast.Add):
        right = read(node.right, context)
        if is_string(node.left, left) or is_string(node.right, right):
            return product(left, right)
    elif isinstance(node.op, ast.Mod) and is_string(node.left, left):
        return unique(
            text
            for template in left
            for text in formats.percent(template, node.right, lambda item: read(item, context))
        )
    elif isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
        text, times = node.left.value, node.right.value
        if isinstance(text, str) and isinstance(times, int) and times < _MAX_REPEAT:
            return [(text * times,)]
    return hole()


def is_string(node: ast.expr, texts: Texts) -> bool:
    """Whether an expression with these texts is a string of which something is known, not a number."""
    return has_literal(texts) and not (isinstance(node, ast.Constant) and not isinstance(node.value, str))


def _conditional(node: ast.IfExp, context: Context) -> Texts:
    return either(read(node.body, context) + read(node.orelse, context))


def _or(node: ast.BoolOp, context: Context) -> Texts:
    if isinstance(node.op, ast.And):
        return hole()
    return either(text for value in node.values for text in read(value, context))


def _walrus(node: ast.NamedExpr, context: Context) -> Texts:
    return read(node.value, context)


def _name(node: ast.Name, context: Context) -> Texts:
    value = context.names.get(node.id)
    if isinstance(value, list):
        return value
    if isinstance(value, Built):
        return unique(text for _, texts in value.errors for text in texts)
    if node.id not in context.names and (texts := _module_constant(node.id, context)):
        return texts
    return hole(node.id)


def _attribute(node: ast.Attribute, context: Context) -> Texts:
    name = dotted(node)
    if name.startswith(("self.", "cls.")):
        constant = _class_constant(context.owner, node.attr) if name.count(".") == 1 else None
        texts = _constant_text(constant, context.module, context) if constant else []
    else:
        texts = _module_constant(name, context) or _constant_of_class(name, context) if name else []
    return texts or hole(node.attr)


def _constant_of_class(name: str, context: Context) -> Texts:
    """Return the texts of `Class.NAME`; a member of an Enum is not its value."""
    head, _, last = name.rpartition(".")
    found = context.package.lookup(context.module, head) if last.isupper() and head not in context.names else None
    if (
        found is None
        or not isinstance(found.node, ast.ClassDef)
        or any("Enum" in dotted(base) for base in found.node.bases)
    ):
        return []
    constant = _class_constant(found.node, last)
    return _constant_text(constant, found.module, context) if constant else []


def _class_constant(owner: ast.ClassDef | None, name: str) -> ast.expr | None:
    """Only names in capitals: others are changed at run time."""
    if owner is None or not name.isupper():
        return None
    for node in owner.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == name and isinstance(node, ast.Assign | ast.AnnAssign):
            return node.value
    return None


def _module_constant(name: str, context: Context) -> Texts:
    found = context.package.lookup(context.module, name)
    if found is None or isinstance(found.node, ast.ClassDef | Function):
        return []
    return _constant_text(found.node, found.module, context)


def _constant_text(node: ast.expr, module: Module, context: Context) -> Texts:
    """Return the texts of a constant of a module or class, or nothing if it holds none."""
    if context.depth >= MAX_DEPTH or (isinstance(node, ast.Constant) and not isinstance(node.value, str)):
        return []
    texts = read(node, Context(context.package, module, None, {}, context.helpers, context.depth + 1))
    return texts if has_literal(texts) else []


def _call(node: ast.Call, context: Context) -> Texts:
    if isinstance(node.func, ast.Attribute) and (texts := _method(node, node.func, context)):
        return texts
    if isinstance(node.func, ast.Name) and node.args:
        if node.func.id == "str":
            return read(node.args[0], context)
        if node.func.id == "dedent":
            return [formats.dedented(text) for text in read(node.args[0], context)]
    return _inlined(node, context) or hole(name_of(node))


def _method(node: ast.Call, function: ast.Attribute, context: Context) -> Texts:
    """Return the texts of a method of a string, or nothing if it is none or the string is unknown."""
    name = function.attr
    if name == "join" and node.args:
        return _join(node.args[0], read(function.value, context), context)
    if name in ("dedent", "fill", "indent") and node.args:
        texts = read(node.args[0], context)
        return [formats.dedented(text) for text in texts] if name == "dedent" else texts
    if name not in ("format", "strip", "lstrip", "rstrip", "replace"):
        return []
    base = read(function.value, context)
    if not has_literal(base):
        return []
    if name == "format":
        return unique(
            text for template in base for text in formats.str_format(template, node, lambda item: read(item, context))
        )
    given = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if len(given) != len(node.args):
        return []
    edit = formats.replaced if name == "replace" else partial(formats.stripped, method=name)
    return [edit(text, *given) for text in base]


def _join(items: ast.expr, separator: Texts, context: Context) -> Texts:
    if isinstance(items, ast.List | ast.Tuple) and items.elts:
        texts = [read(item, context) for item in items.elts]
        starred = any(isinstance(item, ast.Starred) for item in items.elts)
        return formats.joined_lines(separator, texts, "") if starred else formats.joined(separator, texts)
    value = context.names.get(items.id) if isinstance(items, ast.Name) else None
    if isinstance(value, Lines) and value.items:
        return formats.joined_lines(separator, list(value.items), name_of(items))
    return hole(name_of(items))


def _inlined(node: ast.Call, context: Context) -> Texts:
    """Return the texts that a helper of the package returns for these arguments."""
    callee = callee_of(node, context)
    if callee is None or context.depth >= MAX_DEPTH or isinstance(callee.function, ast.AsyncFunctionDef):
        return []
    texts = context.helpers.returned(callee.function, inside(callee, node, context)).texts
    return unique(texts) if has_literal(texts) else []


_READERS: Mapping[type[ast.expr], Callable[..., Texts]] = {
    ast.Constant: _constant,
    ast.JoinedStr: _fstring,
    ast.FormattedValue: _field,
    ast.BinOp: _operation,
    ast.IfExp: _conditional,
    ast.BoolOp: _or,
    ast.NamedExpr: _walrus,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
}


def callee_of(call: ast.Call, context: Context) -> Callee | None:
    """Return the function of the package that is called, if it can be told."""
    name = dotted(call.func)
    head, _, method = name.rpartition(".")
    if not head:
        local = context.names.get(name)
        if isinstance(local, Function):
            return Callee(context.module, context.owner, local, bound=False)
        if name in context.names:  # a parameter or local that hides the module's name
            return None
    if head in ("self", "cls") and context.owner is not None and (found := method_of(context.owner, method)):
        return Callee(context.module, context.owner, found, bound=not _is_static(found))
    found_here = context.package.lookup(context.module, name) if name else None
    if found_here and isinstance(found_here.node, Function):
        return Callee(found_here.module, None, found_here.node, bound=False)
    holder = context.package.lookup(context.module, head) if head else None
    if holder and isinstance(holder.node, ast.ClassDef) and (found := method_of(holder.node, method)):
        return Callee(holder.module, holder.node, found, bound=not _is_static(found))
    return None


def method_of(owner: ast.ClassDef, name: str) -> Function | None:
    """Return a method that the class itself defines."""
    return next((node for node in owner.body if isinstance(node, Function) and node.name == name), None)


def _is_static(function: Function) -> bool:
    return any(dotted(item) == "staticmethod" for item in function.decorator_list)


def inside(callee: Callee, call: ast.Call, context: Context) -> Context:
    """Return the context at the start of a function that is called in a context."""
    names = bind(callee, call, context)
    return Context(context.package, callee.module, callee.owner, names, context.helpers, context.depth + 1)


def bind(callee: Callee, call: ast.Call, context: Context) -> Environment:
    """Return the parameters of a function with the texts of a call's arguments."""
    arguments = callee.function.args
    positional = [item.arg for item in arguments.posonlyargs + arguments.args]
    defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    defaults |= {item.arg: default for item, default in keyword_only if default is not None}
    names: Environment = {}
    for name in (*positional[callee.bound :], *(item.arg for item in arguments.kwonlyargs)):
        default = defaults.get(name)
        is_text = isinstance(default, ast.Constant) and isinstance(default.value, str)
        names[name] = read(default, context) if is_text else hole(name)
    for name, value in zip(positional[callee.bound :], call.args, strict=False):
        if not isinstance(value, ast.Starred):
            names[name] = read(value, context)
    names.update({item.arg: read(item.value, context) for item in call.keywords if item.arg})
    return names
