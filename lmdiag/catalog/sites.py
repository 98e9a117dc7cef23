"""Every raise site of a parsed package: the exceptions that are raised, asserted, or built to be raised elsewhere."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from lmdiag.catalog.contexts import Context
from lmdiag.catalog.environments import Built, Caught
from lmdiag.catalog.exceptions import message_of
from lmdiag.catalog.messages import callee_of, inside, read
from lmdiag.catalog.modules import ErrorClass, Function, Module, Package
from lmdiag.catalog.scopes import Callers, ModuleWalk, Parameter, own_expressions, parameters
from lmdiag.catalog.texts import EMPTY, Text, Texts, dotted, hole, is_hole, name_of, unique
from lmdiag.catalog.walker import is_error, returned

_ERROR_NAME = re.compile(r"(Error|Exception|Fault|Timeout|Exhausted|Unavailable)$")
_PYDANTIC_HOOKS = ("__post_init__", "model_post_init")
# The builtin that stands for a class in reports and statistics: the first of these that it derives from.
FAMILIES = (
    "ValueError",
    "VLLMError",
    "NotImplementedError",
    "RuntimeError",
    "TypeError",
    "ImportError",
    "AssertionError",
    "KeyError",
    "AttributeError",
    "IndexError",
    "TimeoutError",
    "OSError",
)


class Site(NamedTuple):
    """A place in one release that raises an exception."""

    file: str
    """Path from the root of the package, like vllm/config/model.py."""
    qualname: str
    """`Class.method`, or `<module>`: the function's name in a traceback is its last part."""
    line: int
    """Of the statement that raises, counted from 1: the line that a traceback shows."""
    type: str
    """Name of the class without its module; "" where it is known only at run time."""
    family: str
    """One of FAMILIES, or Exception."""
    how: str
    """raise, assert, built (handed to something else), again (a caught exception)."""
    validator: bool
    """Raised in a validator of pydantic, which hides the frame and the type."""
    texts: tuple[Text, ...]
    """The alternatives of the message."""


def family_of(error: ErrorClass) -> str:
    """Return the family of a class."""
    return next((name for name in FAMILIES if name in error.bases), "Exception")


def module_sites(package: Package, module: Module) -> list[Site]:
    """Return all sites of a module, in the order of its lines, each once."""
    collector = _Collector(package, module)
    collector.walk()
    return sorted(dict.fromkeys(collector.sites), key=lambda site: site.line)


class _Collector(ModuleWalk):
    """Sees every statement of a module and notes what raises."""

    def __init__(self, package: Package, module: Module) -> None:
        super().__init__(package, module)
        self.sites: list[Site] = []
        self._handed: dict[int, Parameter] = {}
        """Number of a site -> the parameter that is its whole message."""

    def walk(self) -> None:
        """Walk the module; once more for messages that functions get from their callers."""
        super().walk()
        if not self._handed:
            return
        callers = Callers(self.package, self.module, set(self._handed.values()))
        callers.walk()
        for number, parameter in self._handed.items():
            site = self.sites[number]
            texts = unique([*callers.found.get(parameter, ()), *site.texts])
            self.sites[number] = site._replace(texts=tuple(texts))

    def on_statement(self, node: ast.stmt, context: Context) -> None:
        """Note what the statement raises, asserts or builds."""
        if isinstance(node, ast.Raise):
            self._raise(node, context)
            return
        if isinstance(node, ast.Assert):
            texts = read(node.msg, context) if node.msg is not None else [EMPTY]
            self._add(node.test, "AssertionError", texts, "assert")  # Python 3.11 shows the line of the test
        for expression in own_expressions(node):
            self._built(expression, context)

    def _raise(self, node: ast.Raise, context: Context) -> None:
        for error in _alternatives(node.exc):
            if isinstance(error, ast.Call):
                self._raise_call(node, error, context)
            elif isinstance(error, ast.Name):
                self._raise_name(node, error, context)
            elif error is not None:
                name = dotted(error)
                known = name and self.package.error_class(self.module, name).bases
                texts = message_of(_call_of(error), context) if known else hole(name_of(error))
                self._add(node, name if known else "", texts, "raise" if known else "again")

    def _raise_call(self, node: ast.Raise, call: ast.Call, context: Context) -> None:
        if not is_error(call, context):
            built = _built_by_helper(call, context)
            for module, name, texts in built:
                self._add(node, name, texts, "raise", module)
            if built:
                return
            if isinstance(call.func, ast.Call) and dotted(call.func.func) == "type":  # raise type(error)(f"…{error}")
                self._add(node, "", read(call.args[0] if call.args else None, context), "again")
                return
        name = dotted(call.func)
        known = name.rpartition(".")[2].lstrip("_")[:1].isupper()  # a class, not a variable or a helper
        self._add(node, name if known or is_error(call, context) else "", message_of(call, context), "raise")

    def _raise_name(self, node: ast.Raise, error: ast.Name, context: Context) -> None:
        value = context.names.get(error.id)
        if isinstance(value, Built):
            for name, texts in value.errors:
                self._add(node, name, texts, "raise")
        elif not isinstance(value, Caught) and self.package.error_class(self.module, error.id).bases:
            self._add(node, error.id, message_of(_call_of(error), context), "raise")
        else:
            self._add(node, "", hole(error.id), "again")

    def _built(self, expression: ast.expr, context: Context) -> None:
        """Exceptions that are built here and raised elsewhere: `future.set_exception(ValueError(…))`."""
        for call in ast.walk(expression):
            if isinstance(call, ast.Call) and _ERROR_NAME.search(dotted(call.func)) and is_error(call, context):
                self._add(call, dotted(call.func), message_of(call, context), "built")

    def _add(self, node: ast.stmt | ast.expr, name: str, texts: Texts, how: str, module: Module | None = None) -> None:
        error = self.package.error_class(module or self.module, name) if name else ErrorClass("", ())
        if how == "raise" and (parameter := self._parameter(texts)):
            self._handed[len(self.sites)] = parameter
        self.sites.append(
            Site(
                self.module.path,
                ".".join(item.name for item in self.stack) or "<module>",
                node.lineno,
                error.name.rpartition(".")[2],
                family_of(error),
                how,
                self._in_validator(),
                tuple(unique(texts)),
            )
        )

    def _parameter(self, texts: Texts) -> Parameter | None:
        """Return the parameter of the function around that is the whole message, if it is one."""
        function = self.stack[-1] if self.stack else None
        if len(texts) != 1 or not is_hole(texts[0]) or not isinstance(function, Function):
            return None
        return (function, texts[0][1]) if texts[0][1] in parameters(function) else None

    def _in_validator(self) -> bool:
        function = next((item for item in reversed(self.stack) if isinstance(item, Function)), None)
        if function is None:
            return False
        if any("validator" in _decorator(item) for item in function.decorator_list):
            return True
        classes = [item for item in self.stack if isinstance(item, ast.ClassDef)]
        decorators = " ".join(_decorator(item) for owner in classes for item in owner.decorator_list)
        return function.name in _PYDANTIC_HOOKS and re.search(r"\bconfig\b|pydantic", decorators) is not None


def _decorator(node: ast.expr) -> str:
    return dotted(node.func if isinstance(node, ast.Call) else node)


def _alternatives(node: ast.expr | None) -> tuple[ast.expr | None, ...]:
    return (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)


def _call_of(error: ast.expr) -> ast.Call:
    """Return what Python makes of `raise Class`."""
    return ast.copy_location(ast.Call(func=error, args=[], keywords=[]), error)


def _built_by_helper(call: ast.Call, context: Context) -> list[tuple[Module, str, Texts]]:
    """Return the exceptions that a helper returns: `raise self._error(…)`."""
    callee = callee_of(call, context)
    if callee is None:
        return []
    built = returned(callee.function, inside(callee, call, context)).errors
    return [(callee.module, name, texts) for name, texts in built]
