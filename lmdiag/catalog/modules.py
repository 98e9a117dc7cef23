"""The parsed modules of one release, and what a name in them stands for."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lmdiag.catalog.texts import dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_REEXPORTS = 6
_BUILTIN = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
# Classes of other packages, by their last name: the builtin that they derive from.
_FOREIGN = {
    "JSONDecodeError": "ValueError",
    "ValidationError": "ValueError",
    "PydanticCustomError": "ValueError",
    "AddressValueError": "ValueError",
    "UnidentifiedImageError": "OSError",
    "PydanticUserError": "RuntimeError",
    "HTTPException": "Exception",
    "RequestValidationError": "Exception",
    "ArgumentTypeError": "Exception",
    "ArgumentError": "Exception",
}


class Module:
    """One file of a package, and the names that it defines."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree
        self.imports: dict[str, str] = {}
        """Local name -> dotted target."""
        self.constants: dict[str, ast.expr] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.all_classes: list[ast.ClassDef] = []
        self.raises: list[ast.Raise] = []
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        changed: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.all_classes.append(node)
            elif isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(node, package)
            elif isinstance(node, ast.Raise):
                self.raises.append(node)
            elif isinstance(node, ast.Global):
                changed.update(node.names)
        for statement in _flat(tree.body):
            self._define(statement)
        for variable in changed:  # by a function, so that it is no constant
            self.constants.pop(variable, None)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.split(".")[0]
            self.imports[alias.asname or first] = alias.name if alias.asname else first

    def _import_from(self, node: ast.ImportFrom, package: str) -> None:
        base = node.module or ""
        if node.level:
            above = package.split(".")
            above = above[: len(above) - (node.level - 1)]
            base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            self.imports[alias.asname or alias.name] = f"{base}.{alias.name}"

    def _define(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.constants.setdefault(node.targets[0].id, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            self.constants.setdefault(node.target.id, node.value)
        elif isinstance(node, Function):
            self.functions.setdefault(node.name, node)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, node)


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():  # about the release's own code: invalid escapes, `is` with a literal
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those under its `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With):
            for block in (node, *getattr(node, "handlers", ())):
                for field in ("body", "orelse", "finalbody"):
                    yield from _flat(getattr(block, field, ()))


class Found(NamedTuple):
    """What a name stands for, and the module that defines it."""

    module: Module
    node: ast.ClassDef | Function | ast.expr


class ErrorClass(NamedTuple):
    """An exception's class."""

    name: str
    bases: tuple[str, ...]
    """Its own name and those of all classes above it as far as they are known; empty if it is no known exception."""


class Package:
    """All modules of one package of a release. Modules that cannot be parsed are in `unparsable`."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        self.unparsable: list[str] = []
        for path, source in sorted(sources.items()):
            name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            try:
                self.modules[name] = Module(name, path, _parsed(source))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.unparsable.append(path)
        self._by_name: dict[str, Found] = {}
        for module in self.modules.values():
            for node in module.all_classes:
                self._by_name.setdefault(node.name, Found(module, node))
        self._errors: dict[tuple[str, str], ErrorClass] = {}

    def lookup(self, module: Module, name: str) -> Found | None:
        """Return what `name` or `package.name`, as written in the module, stands for, through imports and re-exports."""
        head, _, rest = name.partition(".")
        if not rest and (node := _own(module, head)):
            return Found(module, node)
        if head in module.imports:
            return self._follow(module.imports[head] + (f".{rest}" if rest else ""))
        return None

    def _follow(self, target: str, depth: int = 0) -> Found | None:
        where, _, last = target.rpartition(".")
        module = self.modules.get(where)
        if module is None or depth > _MAX_REEXPORTS:
            return None
        if node := _own(module, last):
            return Found(module, node)
        onward = module.imports.get(last)
        return self._follow(onward, depth + 1) if onward and onward != target else None

    def error_class(self, module: Module, name: str) -> ErrorClass:
        """Return the class of an exception by its name in a module, with what it derives from."""
        key = (module.name, name)
        if key not in self._errors:
            self._errors[key] = ErrorClass(name, ())  # a class that derives from itself ends here
            self._errors[key] = self._error_class(module, name)
        return self._errors[key]

    def _error_class(self, module: Module, name: str) -> ErrorClass:
        found, last = self.lookup(module, name), name.rpartition(".")[2]
        if found is None and name in _BUILTIN:
            return ErrorClass(name, _builtin_bases(name))
        if found is None and last in _FOREIGN:
            return ErrorClass(last, (last, *_builtin_bases(_FOREIGN[last])))
        if found is None:
            head = name.partition(".")[0]
            found = self._by_name.get(last) if module.imports.get(head, head).count(".") < 2 else None
        if found is None or not isinstance(found.node, ast.ClassDef):
            return ErrorClass(last, ())
        bases = [found.node.name]
        for base in map(dotted, found.node.bases):
            if base and not (found.module is module and base == name):
                above = self.error_class(found.module, base)
                bases += [*above.bases, above.name]
        return ErrorClass(found.node.name, tuple(dict.fromkeys(bases)))


def _own(module: Module, name: str) -> ast.ClassDef | Function | ast.expr | None:
    return module.classes.get(name) or module.functions.get(name) or module.constants.get(name)


def _builtin_bases(name: str) -> tuple[str, ...]:
    return tuple(item.__name__ for item in _BUILTIN[name].__mro__ if issubclass(item, BaseException))
