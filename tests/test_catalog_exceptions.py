from __future__ import annotations

import pytest
from extracting import messages, said, sites_of

VALIDATION = """
class VLLMError(Exception):
    pass

class VLLMValidationError(VLLMError):
    def __init__(self, message: str, *, parameter=None, value=None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.value = value

    def __str__(self):
        base = super().__str__()
        extras = []
        if self.parameter is not None:
            extras.append(f"parameter={self.parameter}")
        if self.value is not None:
            extras.append(f"value={self.value}")
        return f"{base} ({', '.join(extras)})" if extras else base

class Inherited(VLLMValidationError):
    pass

class Fixed(VLLMValidationError):
    def __init__(self, size):
        super().__init__(f"size {size} is too big", parameter="size", value=size)
"""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        ("'bad value'", "bad value"),
        ("'bad value', 'and more'", "('bad value', 'and more')"),
        ("'bad value: ', value", "('bad value: ', {value})"),
        ("'no \\'key\\' in it', 3, None", "(\"no 'key' in it\", 3, None)"),
        ("f'bad {value}', name", "('bad {value}', {name})"),
        ("'bad value', *value", "bad value"),
        ("*value", "{ValueError}"),
        ("*value, 'bad'", "{ValueError}"),
    ],
)
def test_arguments_of_a_plain_exception(arguments: str, text: str) -> None:
    assert said(arguments) == [text]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("KeyError('no such key')", "'no such key'"),
        ("KeyError(f\"no parser '{value}'\")", "\"no parser '{value}'\""),
        ("KeyError(value)", "{value}"),
        ("Missing('no such key')", "'no such key'"),
        ("OSError('cannot open it')", "cannot open it"),
        ("OSError(value, 'cannot open it')", "[Errno {value}] cannot open it"),
        ("FileNotFoundError(errno.ENOENT, 'no file', path)", "[Errno {ENOENT}] no file: {path}"),
        ("json.JSONDecodeError('not JSON', value, 0)", "not JSON"),
        ("HTTPException(status_code=404, detail='no such model')", "no such model"),
        ("PydanticCustomError('kind', 'the message')", "the message"),
        ("argparse.ArgumentError(None, 'bad flag')", "bad flag"),
    ],
)
def test_exceptions_that_show_their_arguments_in_their_own_way(call: str, text: str) -> None:
    assert messages(f"class Missing(KeyError): pass\ndef f(value, path):\n    raise {call}") == [text]


@pytest.mark.parametrize(
    ("body", "call", "text"),
    [
        ("def __init__(self, size):\n        super().__init__(f'size {size} is bad')", "E(value)", "size {size} is bad"),
        ("def __init__(self, size):\n        super(E, self).__init__(f'size {size} is bad')", "E(3)", "size 3 is bad"),
        ("def __init__(self, size=''):\n        m = 'no size'\n        super().__init__(m)", "E()", "no size"),
        ("def __init__(self):\n        super().__init__('fixed text')", "E", "fixed text"),
        ("def __init__(self, message='some default'):\n        super().__init__(message)", "E()", "some default"),
        ("def __init__(self, message='some default'):\n        super().__init__(message)", "E('given')", "given"),
        ("def __init__(self, size):\n        self.message = f'size {size} is bad'", "E(value)", "size {size} is bad"),
        ("def __init__(self, code, text):\n        super().__init__('bad', text)", "E(1, 'x')", "('bad', 'x')"),
        ("def __init__(self, code, text):\n        self.code = code", "E(value, 'x')", "({value}, 'x')"),
        ("pass", "E('plain text')", "plain text"),
    ],
)
def test_constructors_of_custom_exceptions(body: str, call: str, text: str) -> None:
    assert messages(f"class E(Exception):\n    {body}\ndef f(value):\n    raise {call}") == [text]


def test_a_constructor_with_branches_has_alternatives() -> None:
    source = """
        class E(Exception):
            def __init__(self, size=None):
                if size:
                    super().__init__(f"too big: {size}")
                else:
                    super().__init__("too big")
        def f(value):
            raise E(value)
    """
    assert messages(source) == ["too big: {size}", "too big"]


@pytest.mark.parametrize(
    ("call", "texts"),
    [
        ("VLLMValidationError('bad value')", ["bad value"]),
        ("VLLMValidationError('bad value', parameter='top_k')", ["bad value (parameter={parameter})"]),
        ("VLLMValidationError('bad value', parameter='top_k', value=x)", ["bad value (parameter={parameter})"]),
        ("VLLMValidationError('bad value', value=3)", ["bad value (value={value})"]),
        ("VLLMValidationError('bad value', value=x)", ["bad value (value={value})", "bad value"]),
        ("VLLMValidationError('bad value', parameter=None)", ["bad value"]),
        ("VLLMValidationError(message='bad value', parameter='n')", ["bad value (parameter={parameter})"]),
        ("Inherited('bad value', parameter='n')", ["bad value (parameter={parameter})"]),
        ("Fixed(x)", ["size {size} is too big (parameter={parameter})"]),
    ],
)
def test_the_suffix_of_a_validation_error(call: str, texts: list[str]) -> None:
    source = f"from .errors import *\nfrom pkg.errors import VLLMValidationError, Inherited, Fixed\ndef f(x):\n    raise {call}"
    assert messages(source, errors=VALIDATION) == texts
    assert sites_of(source, errors=VALIDATION)[-1].family == "VLLMError"


def test_a_constructor_that_hands_to_the_constructor_above_it() -> None:
    source = """
        class Base(Exception):
            def __init__(self, message, status):
                super().__init__(message)
                self.status = status
        class Busy(Base):
            def __init__(self):
                super().__init__("The engine is busy.", 503)
        class Busier(Busy):
            pass
        def f():
            raise Busier()
    """
    assert messages(source) == ["The engine is busy."]


@pytest.mark.parametrize(
    "source",
    [
        "class A(B): pass\nclass B(A): pass\ndef f():\n    raise A('some text')",
        "class A(A): pass\ndef f():\n    raise A('some text')",
        "class A(Exception):\n    def __init__(self, m):\n        super().__init__(str(A(m)))\ndef f():\n    raise A('some text')",
        "def f():\n    try:\n        pass\n    except OSError as e:\n        e = ValueError(e)\n        raise ValueError(e)",
        "def f(e):\n    for x in e:\n        e = ValueError(e)\n    raise e",
    ],
)
def test_what_refers_to_itself_ends(source: str) -> None:
    assert sites_of(source)
