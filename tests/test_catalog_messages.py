from __future__ import annotations

import pytest
from extracting import messages, raised, said, sites_of

from lmdiag.catalog.texts import MAX_ALTERNATIVES


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'bad value'", "bad value"),
        ("'bad ' 'value'", "bad value"),
        ("f'bad {value}'", "bad {value}"),
        ("'bad ' f'{value} ' 'here'", "bad {value} here"),
        ("f'bad {self.config.dtype!r}: {value!s}, {name:>10}'", "bad {dtype}: {value}, {name}"),
        ("f'{value:{self.width}} is bad'", "{value} is bad"),
        ("f'bad {f\"inner {value}\"} here'", "bad inner {value} here"),
        ("f'bad {\"half\"} and {\"half\"!r} and {3}'", "bad half and 'half' and 3"),
        ("f'bad {\"half\":>9}'", "bad {}"),
        ("f'bad {value=}'", "bad value={value}"),
        ("f'{{{value}}}'", "{{value}}"),
        ("f'{value}{name} is bad'", "{value} is bad"),
        ("f'{len(value)} of {name[0]} or {self.sizes[\"k\"]}'", "{value} of {name} or {k}"),
        ("f'expected {value + 1} or {1 + value}, {value * 2}, {-value}'", "expected {} or {}, {}, {}"),
        ("f'got {value % 8} and {7 % value}'", "got {} and {}"),
        ("'bad ' + value", "bad {value}"),
        ("'bad ' + str(value) + ' here'", "bad {value} here"),
        ("name + ': ' + 'bad'", "{name}: bad"),
        ("'-' * 3", "---"),
        ("'-' * value", "{}"),
        ("'-' * 1000", "{}"),
        ("value", "{value}"),
        ("str(value)", "{value}"),
        ("self.reason", "{reason}"),
        ("value + name", "{}"),
        ("value and 'bad'", "{}"),
        ("b'bad'", "{}"),
        ("42", "42"),
        ("(said := 'bad value')", "bad value"),
        ("'half \\ud800 a pair'", "half ? a pair"),
        ("lambda: 'bad'", "{}"),
    ],
)
def test_expressions(expression: str, text: str) -> None:
    assert said(expression) == [text]


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("'bad value' if value else 'bad name'", ["bad value", "bad name"]),
        ("f\"bad {'key' if value else 'name'} here\"", ["bad key here", "bad name here"]),
        ("'bad' + (f' {value}' if value else '')", ["bad {value}", "bad"]),
        ("value or 'no reason given'", ["{value}", "no reason given"]),
        ("f\"bad {value or 'auto'}\"", ["bad {}"]),
    ],
)
def test_choices(expression: str, texts: list[str]) -> None:
    assert said(expression) == texts


def test_alternatives_are_bounded() -> None:
    choice = "('x' if value else 'y')"
    assert len(said(f"'bad value ' + {' + '.join([choice] * 30)}")) == MAX_ALTERNATIVES


def test_a_very_long_sum_is_read() -> None:
    assert said(" + ".join(["'a'"] * 900)) == ["a" * 900]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("REASON = 'not today'\ndef f():\n    raise ValueError(REASON)", "not today"),
        ("REASON: str = 'not today'\ndef f():\n    raise ValueError(f'no: {REASON}')", "no: not today"),
        ("REASON = 'not %s'\ndef f(day):\n    raise ValueError(REASON % day)", "not {day}"),
        ("REASON = 'not {}'\ndef f(day):\n    raise ValueError(REASON.format(day))", "not {day}"),
        ("DAY = 'today'\nREASON = f'not {DAY}'\ndef f():\n    raise ValueError(REASON)", "not today"),
        ("try:\n    import x\nexcept ImportError:\n    REASON = 'no x'\ndef f():\n    raise ValueError(REASON)", "no x"),
        ("from .words import REASON\ndef f():\n    raise ValueError(REASON)", "from words"),
        ("from pkg.words import REASON as WHY\ndef f():\n    raise ValueError(WHY)", "from words"),
        ("from . import words\ndef f():\n    raise ValueError(words.REASON)", "from words"),
        ("import pkg.words\ndef f():\n    raise ValueError(pkg.words.REASON)", "from words"),
        ("import pkg.words as w\ndef f():\n    raise ValueError(w.REASON)", "from words"),
        ("from .again import REASON\ndef f():\n    raise ValueError(REASON)", "from words"),
        ("from .missing import REASON\ndef f():\n    raise ValueError(REASON)", "{REASON}"),
        ("REASON = 'not today'\ndef f(REASON):\n    raise ValueError(REASON)", "{REASON}"),
        ("REASON = 'not today'\ndef f(x):\n    REASON = x.reason\n    raise ValueError(f'no: {REASON}')", "no: {REASON}"),
        ("REASON = 'not today'\ndef f():\n    REASON = 'another'\n    raise ValueError(REASON)", "another"),
        ("state = 'idle'\ndef g():\n    global state\n    state = 'x'\ndef f():\n    raise ValueError(f'is {state}')", "is {state}"),
        ("LIMIT = 3\ndef f():\n    raise ValueError(f'above {LIMIT}')", "above {LIMIT}"),
        ("A = B\nB = A\ndef f():\n    raise ValueError(f'bad {A}')", "bad {A}"),
        ("A = 'x' + A\ndef f():\n    raise ValueError(f'bad {A}')", None),
    ],
)
def test_module_constants(source: str, text: str | None) -> None:
    found = messages(source, words="REASON = 'from words'", again="from .words import *\nfrom .words import REASON")
    assert text is None or found == [text]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("self.REASON", "not today"),
        ("f'no: {cls.TYPED}'", "no: typed"),
        ("f'no: {Thing.REASON}'", "no: not today"),
        ("f'no: {Colour.RED}'", "no: {RED}"),
        ("f'no: {self.state}'", "no: {state}"),
        ("f'no: {self.MISSING}'", "no: {MISSING}"),
        ("f'no: {self.other.REASON}'", "no: {REASON}"),
    ],
)
def test_class_constants(expression: str, text: str) -> None:
    source = f"""
        class Colour(Enum):
            RED = "red"
        class Thing:
            REASON = "not today"
            TYPED: str = "typed"
            state = "changes"
            def f(self):
                raise ValueError({expression})
    """
    assert messages(source) == [text]


@pytest.mark.parametrize(
    ("helper", "call", "texts"),
    [
        ("def why(x):\n    return f'since {x}'", "why(value)", ["since {x}"]),
        ("def why(x):\n    return f'since {x}'", "why('monday')", ["since monday"]),
        ("def why(x='monday'):\n    return f'since {x}'", "why()", ["since monday"]),
        ("def why(x='monday'):\n    return f'since {x}'", "why(x=name)", ["since {x}"]),
        ("def why(*, x='monday', y=3):\n    return f'since {x} {y}'", "why()", ["since monday {y}"]),
        ("def why(x):\n    return f'since {x}'", "why(*value)", ["since {x}"]),
        ("def why(x):\n    if x:\n        return 'it is'\n    return 'it is not'", "why(value)", ["it is", "it is not"]),
        ("def why(x):\n    day = 'monday'\n    return 'since ' + day", "why(value)", ["since monday"]),
        ("def why(x):\n    if x:\n        return None\n    return 'it is not'", "why(value)", ["it is not"]),
        ("def why(x):\n    return inner(x)\ndef inner(y):\n    return f'inner {y}'", "why(value)", ["inner {y}"]),
        ("def why(x):\n    return f'{x} ' + why(x)", "why(value)", ["{x} {x} {x} {x}"]),
        ("async def why(x):\n    return 'it is'", "why(value)", ["{value}"]),
        ("def why(x):\n    return x.reason", "why(value)", ["{value}"]),
        ("why = 3", "why(value)", ["{value}"]),
    ],
)
def test_helper_functions(helper: str, call: str, texts: list[str]) -> None:
    assert messages(f"{helper}\ndef f(value, name):\n    raise ValueError({call})") == texts


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("self.why(value)", "method {x}"),
        ("cls.made('x')", "made x"),
        ("self.static(value)", "static {x}"),
        ("Thing.static(value)", "static {x}"),
        ("Other.made(value)", "other {x}"),
        ("words.why(value)", "words {x}"),
        ("imported(value)", "words {x}"),
        ("inner(value)", "inner {x}"),
        ("name(value)", "{value}"),
        ("unknown(value)", "{value}"),
        ("self.missing()", "{missing}"),
    ],
)
def test_helpers_of_all_kinds(call: str, text: str) -> None:
    source = f"""
        from . import words
        from .words import why as imported
        def name(x):
            return "hidden by the parameter"
        class Other:
            @classmethod
            def made(cls, x):
                return f"other {{x}}"
        class Thing:
            def why(self, x):
                return f"method {{x}}"
            @classmethod
            def made(cls, x):
                return f"made {{x}}"
            @staticmethod
            def static(x):
                return f"static {{x}}"
            def f(self, value, name):
                def inner(x):
                    return f"inner {{x}}"
                raise ValueError({call})
    """
    assert messages(source, words="def why(x):\n    return f'words {x}'") == [text]


def test_a_helper_may_return_whether_and_why() -> None:
    source = """
        def check(x):
            if x:
                return True, None
            if x is None:
                return False, "nothing was given"
            return False, f"cannot use {x}"
        def f(value):
            ok, message = check(value)
            if not ok:
                raise ValueError(f"Refused: {message}")
    """
    assert messages(source) == ["Refused: nothing was given", "Refused: cannot use {x}"]


def test_a_helper_may_return_a_list_of_lines() -> None:
    source = """
        class Config:
            def _problems(self):
                errors = []
                if self.a:
                    errors.append("first thing is wrong")
                if self.b:
                    errors.append(f"second thing is {self.b}")
                return errors
            def check(self):
                errors = self._problems()
                if errors:
                    raise ValueError("\\n".join(errors))
    """
    assert messages(source)[:3] == [
        "first thing is wrong\nsecond thing is {b}",
        "first thing is wrong",
        "second thing is {b}",
    ]


def test_helpers_that_call_each_other_end() -> None:
    source = """
        def even(x):
            return "even " + odd(x) + odd(x)
        def odd(x):
            return "odd " + even(x) + even(x)
        def f(value):
            raise ValueError(even(value))
    """
    assert messages(source)[0].startswith("even odd even ")


def test_an_unknown_name_in_a_helper_is_not_the_callers() -> None:
    source = "def why(x):\n    return f'{day} {x}'\ndef f(value):\n    day = 'monday'\n    raise ValueError(why(value))"
    assert messages(source) == ["{day} {x}"]


def test_every_site_of_a_function_is_read_with_its_own_names() -> None:
    source = "def f(x):\n    m = 'one'\n    if x:\n        raise ValueError(m)\n    m = 'two'\n    raise ValueError(m)"
    assert [site.texts for site in sites_of(source)] == [(("one",),), (("two",),)]


def test_a_caught_error_is_unknown() -> None:
    assert raised("try:\n    pass\nexcept OSError as e:\n    raise ValueError(f'failed: {e}') from e") == ["failed: {e}"]
