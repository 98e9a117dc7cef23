from __future__ import annotations

import ast
import warnings

import pytest

from lmdiag.catalog.modules import Found, Package


def package(**modules: str) -> Package:
    """Modules of pkg; `sub__inner` is pkg/sub/inner.py, and pkg/sub has Thing from there."""
    sources = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "from .inner import Thing"}
    return Package(sources | {f"pkg/{name.replace('__', '/')}.py": text for name, text in modules.items()})


def bases(found: Package, name: str, module: str = "pkg.mod") -> tuple[str, ...]:
    return found.error_class(found.modules[module], name).bases


def test_names_of_modules() -> None:
    found = Package({"pkg/__init__.py": "", "pkg/a/__init__.py": "", "pkg/a/b.py": ""})
    assert list(found.modules) == ["pkg", "pkg.a", "pkg.a.b"]


@pytest.mark.parametrize(
    "source",
    ["def f(:", "print 'python 2'", "x = '\0'", "f" + "(" * 500, "x = " + "-" * 100_000 + "1", "\tx\n  y"],
    ids=["syntax", "python2", "nul", "open", "deep", "tabs"],
)
def test_what_cannot_be_parsed_is_named(source: str) -> None:
    found = package(mod=source, other="x = 1")
    assert found.unparsable == ["pkg/mod.py"]
    assert "pkg.other" in found.modules


def test_warnings_of_the_parser_are_kept_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert package(mod="x = '\\d' is 3\nassert (x, 'always')").unparsable == []


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from pkg.sub.inner import Thing", "Thing"),
        ("from pkg.sub.inner import Thing as Other", "Other"),
        ("from .sub.inner import Thing", "Thing"),
        ("from .sub import inner", "inner.Thing"),
        ("from . import sub", "sub.Thing"),
        ("from .sub import Thing", "Thing"),
        ("import pkg.sub.inner", "pkg.sub.inner.Thing"),
        ("import pkg.sub.inner as i", "i.Thing"),
        ("def f():\n    from .sub.inner import Thing", "Thing"),
        ("try:\n    from .sub.inner import Thing\nexcept ImportError:\n    pass", "Thing"),
    ],
)
def test_lookup_through_imports(statement: str, name: str) -> None:
    found = package(mod=statement, sub__inner="class Thing: pass")
    result = found.lookup(found.modules["pkg.mod"], name)
    assert result is not None
    assert result.module.name == "pkg.sub.inner"
    assert isinstance(result.node, ast.ClassDef)


@pytest.mark.parametrize(
    ("statement", "module"),
    [
        ("from .inner import X", "pkg.sub.low.inner"),
        ("from ..inner import X", "pkg.sub.inner"),
        ("from ...inner import X", "pkg.inner"),
        ("from ....inner import X", None),
        ("from .. import inner", None),
    ],
)
def test_relative_imports_of_several_levels(statement: str, module: str | None) -> None:
    found = package(inner="X = 1", sub__inner="X = 1", sub__low__inner="X = 1", sub__low__mod=statement)
    result = found.lookup(found.modules["pkg.sub.low.mod"], "X")
    assert (result and result.module.name) == module


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("X = 1", ast.Constant),
        ("X: int = 1", ast.Constant),
        ("if a:\n    X = 1\nelse:\n    X = 2", ast.Constant),
        ("try:\n    import a\nexcept ImportError:\n    X = 1", ast.Constant),
        ("try:\n    import a\nfinally:\n    X = 1", ast.Constant),
        ("with a:\n    def X(): pass", ast.FunctionDef),
        ("async def X(): pass", ast.AsyncFunctionDef),
        ("try:\n    pass\nexcept* OSError:\n    class X: pass", ast.ClassDef),
        ("X: int", None),
        ("X.y = 1", None),
        ("def f():\n    X = 1", None),
        ("X = 1\ndef f():\n    global X\n    X = 2", None),
    ],
)
def test_what_a_module_defines(source: str, kind: type[ast.AST] | None) -> None:
    found = package(mod=source)
    result = found.lookup(found.modules["pkg.mod"], "X")
    assert isinstance(result, Found) == (kind is not None)
    assert result is None or (kind is not None and isinstance(result.node, kind))


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("", "ValueError", "ValueError"),
        ("", "UnicodeDecodeError", "ValueError"),
        ("class E(ValueError): pass", "E", "ValueError"),
        ("class E(Base): pass\nclass Base(RuntimeError): pass", "E", "RuntimeError"),
        ("class E(Mixin, KeyError): pass\nclass Mixin: pass", "E", "KeyError"),
        ("from json import JSONDecodeError", "JSONDecodeError", "ValueError"),
        ("import json", "json.JSONDecodeError", "ValueError"),
        ("from pydantic import ValidationError as V\nclass E(ValidationError): pass", "E", "ValueError"),
        ("from .errors import Own", "Own", "VLLMError"),
        ("from .errors import Own as Mine", "Mine", "VLLMError"),
        ("from .facade import Own", "Own", "VLLMError"),
        ("from . import errors", "errors.Own", "VLLMError"),
        ("from .star import *", "Own", "VLLMError"),
        ("class ValueError(RuntimeError): pass", "ValueError", "RuntimeError"),
        ("def f():\n    class Inner(TypeError): pass", "Inner", "TypeError"),
        ("class E(ValueError): pass\nclass E2(E): pass\nclass E3(E2): pass", "E3", "ValueError"),
    ],
)
def test_what_an_exception_derives_from(source: str, name: str, expected: str) -> None:
    found = package(
        mod=source,
        errors="class VLLMError(Exception): pass\nclass Own(VLLMError): pass",
        facade="from .errors import Own",
    )
    assert expected in bases(found, name)
    assert "BaseException" in bases(found, name)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("class A(B): pass\nclass B(A): pass", "A"),
        ("class A(A): pass", "A"),
        ("from .other import A", "A"),
        ("class A: pass", "A"),
        ("A = ValueError", "A"),
        ("import torch", "torch.Anything"),
        ("", "unknown"),
        ("def A(): pass", "A"),
    ],
)
def test_what_is_no_exception_as_far_as_is_known(source: str, name: str) -> None:
    found = package(mod=source, other="from .mod import A")
    assert "BaseException" not in bases(found, name)


def test_bases_are_named_once_and_in_order() -> None:
    found = package(mod="class A(ValueError): pass\nclass B(A, ValueError): pass")
    assert bases(found, "B") == ("B", "A", "ValueError", "Exception", "BaseException")


def test_an_exception_of_another_name_is_found_where_it_is_imported_from() -> None:
    found = package(mod="from .a import E", a="class E(TypeError): pass", b="class E(ValueError): pass")
    assert "TypeError" in bases(found, "E")
    assert found.error_class(found.modules["pkg.mod"], "E").name == "E"
