"""The message of an exception from the call that builds it, through the constructors of a release's own classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lmdiag.catalog.contexts import MAX_DEPTH, Callee, Context
from lmdiag.catalog.formats import quoted
from lmdiag.catalog.messages import inside, is_string, method_of, read
from lmdiag.catalog.modules import Module
from lmdiag.catalog.texts import Texts, dotted, hole, name_of, product, unique

_MAX_BASES = 4
_FIRST_ARGUMENT = ("JSONDecodeError", "HTTPException", "NVMLError")
_LAST_ARGUMENT = ("ArgumentError", "PydanticCustomError")
_MESSAGE_KEYWORDS = ("message", "msg", "detail", "reason")
_SUFFIX_KEYWORDS = ("parameter", "value")


def message_of(call: ast.Call, context: Context) -> Texts:
    """Return what `str()` of the exception that the call builds may be."""
    name = dotted(call.func)
    found = context.package.lookup(context.module, name) if name else None
    if found and isinstance(found.node, ast.ClassDef) and context.depth < MAX_DEPTH:
        texts = _through_class(found.module, found.node, call, context)
        if texts is not None:
            return texts
    return _plain(call, name.rpartition(".")[2], context)


def _plain(call: ast.Call, name: str, context: Context) -> Texts:
    """Return the message of a class without a constructor of its own."""
    arguments = list(call.args)
    if not arguments:
        keyword = next((item.value for item in call.keywords if item.arg in _MESSAGE_KEYWORDS), None)
        return read(keyword, context)
    if len(arguments) > 1 and isinstance(arguments[-1], ast.Starred):
        arguments.pop()
    if any(isinstance(item, ast.Starred) for item in arguments):
        return hole(name_of(call))
    bases = context.package.error_class(context.module, dotted(call.func)).bases
    if len(arguments) == 1 or name in _FIRST_ARGUMENT:
        texts = read(arguments[0], context)
        return [quoted(text) for text in texts] if "KeyError" in bases and is_string(arguments[0], texts) else texts
    if "OSError" in bases:
        return product([("[Errno ",)], hole(name_of(arguments[0])), [("] ",)], *_strerror(arguments[1:3], context))
    if name in _LAST_ARGUMENT:
        return read(arguments[1] if name == "PydanticCustomError" else arguments[-1], context)
    pieces: list[Texts] = [[("(",)]]  # str(E(a, b)) is the repr of the tuple
    for index, argument in enumerate(arguments):
        texts = read(argument, context)
        shown = [quoted(text) for text in texts] if is_string(argument, texts) else texts
        pieces += [[(", " if index else "",)], shown]
    return product(*pieces, [(")",)])


def _strerror(arguments: list[ast.expr], context: Context) -> Iterator[Texts]:
    """Yield the pieces of an OSError's message behind its number: the words, and the file's name."""
    yield read(arguments[0], context)
    if len(arguments) > 1:
        yield product([(": ",)], hole(name_of(arguments[1])))


def _through_class(
    owner_module: Module, owner: ast.ClassDef, call: ast.Call, context: Context, depth: int = 0
) -> Texts | None:
    """Follow `__init__` to `super().__init__(message)`, and `__str__`; None: nothing there but a plain constructor."""
    init = method_of(owner, "__init__")
    if init is not None:
        inner = inside(Callee(owner_module, owner, init, bound=True), call, context)
        texts = inner.helpers.constructed(init, inner)
    else:
        texts = through_bases(owner_module, owner, call, context, depth)
    own_str = method_of(owner, "__str__")
    if own_str is not None and texts:
        return _with_suffix(texts, own_str, call)
    return texts


def through_bases(
    owner_module: Module, owner: ast.ClassDef, call: ast.Call, context: Context, depth: int = 0
) -> Texts | None:
    """Return the message that the constructor of a class above this one makes, or None if all are plain."""
    for base in map(dotted, owner.bases) if depth < _MAX_BASES else ():
        found = context.package.lookup(owner_module, base) if base else None
        if found and isinstance(found.node, ast.ClassDef) and found.node is not owner:
            texts = _through_class(found.module, found.node, call, context, depth + 1)
            if texts is not None:
                return texts
    return None


def super_message(call: ast.Call, context: Context) -> Texts:
    """Return what `super().__init__(…)` makes the message, where the context is a constructor's."""
    if context.owner is not None and context.depth < MAX_DEPTH:
        texts = through_bases(context.module, context.owner, call, context)
        if texts is not None:
            return texts
    plain = ast.Call(func=_base_of(context.owner), args=call.args, keywords=call.keywords)
    return _plain(plain, dotted(plain.func).rpartition(".")[2], context)


def _base_of(owner: ast.ClassDef | None) -> ast.expr:
    return owner.bases[0] if owner is not None and owner.bases else ast.Name(id="Exception")


def _with_suffix(texts: Texts, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> Texts:
    """Add what VLLMValidationError.__str__ puts behind the message: ` (parameter=…, value=…)`."""
    values = {item.arg: item.value for item in call.keywords if item.arg in _SUFFIX_KEYWORDS}
    given = [name for name, value in values.items() if not (isinstance(value, ast.Constant) and value.value is None)]
    if not given or "super().__str__()" not in ast.unparse(function):
        return texts
    first = "parameter" if "parameter" in given else "value"
    suffixed = product(texts, [(f" ({first}=",)], hole(first), [(")",)])
    is_certain = any(isinstance(values[name], ast.Constant) for name in given)
    return suffixed if is_certain else unique([*suffixed, *texts])  # a variable may be None
