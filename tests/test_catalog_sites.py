from __future__ import annotations

import pytest
from extracting import PLACE, shown, sites_of

from lmdiag.catalog.sites import Site


def only(source: str, **others: str) -> Site:
    (site,) = sites_of(source, **others)
    return site


def test_what_a_site_says() -> None:
    source = "class A:\n    def f(self, x):\n        if x:\n            raise ValueError(\n                f'bad {x}')"
    texts = (("bad ", "x", ""),)
    assert only(source) == Site(PLACE, "A.f", 4, "ValueError", "ValueError", "raise", validator=False, texts=texts)


@pytest.mark.parametrize(
    ("source", "qualname"),
    [
        ("raise ValueError('x')", "<module>"),
        ("if a:\n    raise ValueError('x')", "<module>"),
        ("class A:\n    raise ValueError('x')", "A"),
        ("def f():\n    def g():\n        raise ValueError('x')", "f.g"),
        ("class A:\n    class B:\n        async def f(self):\n            raise ValueError('x')", "A.B.f"),
        ("def f():\n    class A:\n        def g(self):\n            raise ValueError('x')", "f.A.g"),
        ("@decorated\ndef f():\n    raise ValueError('x')", "f"),
        ("def f():\n    def g():\n        pass\n    raise ValueError('x')", "f"),
    ],
)
def test_qualnames(source: str, qualname: str) -> None:
    assert only(source).qualname == qualname


@pytest.mark.parametrize(
    ("statement", "type", "family", "how", "text"),
    [
        ("raise ValueError", "ValueError", "ValueError", "raise", ""),
        ("raise ValueError()", "ValueError", "ValueError", "raise", ""),
        ("raise ValueError('bad') from x", "ValueError", "ValueError", "raise", "bad"),
        ("raise Own('bad')", "Own", "ValueError", "raise", "bad"),
        ("raise Tree('bad')", "Tree", "VLLMError", "raise", "bad"),
        ("raise Free('bad')", "Free", "Exception", "raise", "bad"),
        ("raise json.JSONDecodeError('bad', x, 0)", "JSONDecodeError", "ValueError", "raise", "bad"),
        ("raise UnicodeError('bad')", "UnicodeError", "ValueError", "raise", "bad"),
        ("raise NotImplementedError", "NotImplementedError", "NotImplementedError", "raise", ""),
        ("raise RecursionError('bad')", "RecursionError", "RuntimeError", "raise", "bad"),
        ("raise ModuleNotFoundError('bad')", "ModuleNotFoundError", "ImportError", "raise", "bad"),
        ("raise ConnectionError('bad')", "ConnectionError", "OSError", "raise", "bad"),
        ("raise torch.cuda.Trouble('bad')", "Trouble", "Exception", "raise", "bad"),
        ("raise asyncio.CancelledError", "", "Exception", "again", "{CancelledError}"),
        ("raise x", "", "Exception", "again", "{x}"),
        ("raise self._error", "", "Exception", "again", "{_error}"),
        ("raise type(x)(f'again: {x}')", "", "Exception", "again", "again: {x}"),
        ("raise kind('bad')", "", "Exception", "raise", "bad"),
        ("assert x", "AssertionError", "AssertionError", "assert", ""),
        ("assert x, f'bad {x}'", "AssertionError", "AssertionError", "assert", "bad {x}"),
        ("future.set_exception(ValueError('bad'))", "ValueError", "ValueError", "built", "bad"),
        ("return OwnError(f'bad {x}')", "OwnError", "ValueError", "built", "bad {x}"),
        ("y = [RuntimeError('bad'), 1]", "RuntimeError", "RuntimeError", "built", "bad"),
        ("call(lambda: ValueError('bad'))", "ValueError", "ValueError", "built", "bad"),
        ("with f(ValueError('bad')) as y:\n        pass", "ValueError", "ValueError", "built", "bad"),
    ],
)
def test_kinds_of_sites(statement: str, type: str, family: str, how: str, text: str) -> None:
    source = f"""
import json
class VLLMError(Exception): pass
class Tree(VLLMError): pass
class Own(ValueError): pass
class OwnError(Own): pass
class Free(Exception): pass
def f(self, x, kind):
    {statement}
"""
    site = only(source)
    assert (site.type, site.family, site.how, [shown(each) for each in site.texts]) == (type, family, how, [text])


def kinds(source: str, **others: str) -> list[tuple[str, str, str]]:
    return [(site.type, site.how, " | ".join(map(shown, site.texts))) for site in sites_of(source, **others)]


def test_a_conditional_raise_has_two_sites_on_one_line() -> None:
    source = "def f(x):\n    raise ValueError('bad') if x else TypeError('worse')"
    assert kinds(source) == [("ValueError", "raise", "bad"), ("TypeError", "raise", "worse")]


def test_an_exception_that_is_built_first() -> None:
    source = "def f(x):\n    m = 'one'\n    e = ValueError(m)\n    m = 'two'\n    raise e"
    assert kinds(source) == [("ValueError", "built", "one"), ("ValueError", "raise", "one")]


def test_an_exception_that_is_built_in_one_of_two_branches() -> None:
    source = "def f(x):\n    if x:\n        e = ValueError('bad')\n    else:\n        e = TypeError('worse')\n    raise e"
    assert kinds(source)[2:] == [("ValueError", "raise", "bad"), ("TypeError", "raise", "worse")]


def test_an_exception_that_is_caught_and_raised_again() -> None:
    source = "def f(x):\n    try:\n        x()\n    except ValueError as e:\n        if x:\n            raise\n        raise e"
    assert kinds(source) == [("", "again", "{e}")]  # `raise` alone has no message of its own


@pytest.mark.parametrize(
    "helper",
    [
        "return ValueError(f'bad {what}')",
        "error = ValueError(f'bad {what}')\n    error.code = 3\n    return error",
        "message = f'bad {what}'\n    return ValueError(message)",
    ],
)
def test_an_exception_that_a_helper_makes(helper: str) -> None:
    source = f"def made(what):\n    {helper}\ndef f(x):\n    raise made('thing')"
    assert kinds(source)[-1] == ("ValueError", "raise", "bad thing")


def test_the_class_of_a_helpers_exception_is_known_where_the_helper_is() -> None:
    other = "from .errors import Own as Mine\ndef made(x):\n    return Mine(f'bad {x}')"
    source = "from .other import made\ndef f(x):\n    raise made(x)"
    (site,) = sites_of(source, other=other, errors="class Own(ValueError): pass")
    assert (site.type, site.family) == ("Own", "ValueError")


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("class A:\n    @field_validator('x')\n    def f(cls): raise ValueError('x')", True),
        ("class A:\n    @pydantic.model_validator(mode='after')\n    def f(self): raise ValueError('x')", True),
        ("class A:\n    @validator\n    def f(self):\n        assert self, 'x'", True),
        ("@config\nclass A:\n    def __post_init__(self): raise ValueError('x')", True),
        ("@pydantic.dataclasses.dataclass\nclass A:\n    def __post_init__(self): raise ValueError('x')", True),
        ("@dataclass\nclass A:\n    def __post_init__(self): raise ValueError('x')", False),
        ("@config\nclass A:\n    def verify(self): raise ValueError('x')", False),
        ("class A:\n    @property\n    def f(self): raise ValueError('x')", False),
        ("raise ValueError('x')", False),
    ],
)
def test_validators_of_pydantic(source: str, hidden: bool) -> None:
    assert only(source).validator is hidden


def test_sites_stand_in_the_order_of_lines_and_once() -> None:
    source = "def f(x):\n    try:\n        raise ValueError('a')\n    finally:\n        raise ValueError('b')\nraise ValueError('c')"
    assert [site.line for site in sites_of(source)] == [3, 5, 6]
