from __future__ import annotations

import ast
import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmdiag.catalog.extract import extract
from lmdiag.catalog.texts import Text

VALUES = {"name": "gpt-7", "limit": 37, "size": "4 GiB", "flag": True}
WORDS = st.sampled_from(["bad value ", "is not allowed, ", "{odd} braces ", "100% of ", "it's ", "got: ", "\n  line ", "é "])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    """An expression of one string, built in one of the ways in which messages are."""
    name, word, other = draw(st.sampled_from(["name", "limit", "size"])), draw(WORDS), draw(WORDS)
    kinds = ["literal", "fstring", "percent", "mapping", "format", "named", "join", "sum"]
    kind = draw(st.sampled_from(kinds + (["nested", "choice", "add", "strip", "helper", "constant"] if depth else [])))
    inner = draw(expressions(depth - 1)) if depth else ""
    braced, percented = word.replace("{", "{{").replace("}", "}}"), word.replace("%", "%%")
    spec = draw(st.sampled_from(["", "!r", "!s", ":>9", "=", "!r:>12"]))
    return {
        "literal": f"{word!r} {other!r}",
        "fstring": f"f{braced + '{' + name + spec + '}'!r}",
        "percent": f"{percented + '%s and %-6s|'!r} % ({name}, limit)",
        "mapping": f"{percented + '%(a)s of %(b)r'!r} % {{'a': {name}, 'b': limit}}",
        "format": f"{braced + '{} then {!r} {:>5}'!r}.format({name}, name, limit)",
        "named": f"{braced + '{b} then {a}'!r}.format(a={name}, b=limit + 1)",
        "join": f"', '.join([{word!r}, str({name}), {other!r}])",
        "sum": f"{word!r} + str({name}) + {other!r}",
        "nested": f"f{braced!r} f'{{({name})}}' + ({inner})",
        "choice": f"(({inner}) if flag else {other!r})",
        "add": f"({inner}) + {other!r}",
        "strip": f"({inner}).strip()",
        "helper": f"told({word!r}, {name}) + ({inner})",
        "constant": f"WORDS + ({inner}) + Words.MORE",
    }[kind]


@st.composite
def bodies(draw: st.DrawFn, depth: int = 2) -> list[str]:
    """The statements of a function, with `raise` at random places of random nesting."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        error = draw(st.sampled_from(["ValueError", "ValueError", "TypeError", "Own"]))
        message = draw(expressions(1))
        inner = [f"    {line}" for line in draw(bodies(depth - 1))] if depth else ["    pass"]
        other = [f"    {line}" for line in draw(bodies(depth - 1))] if depth else ["    pass"]
        lines += draw(
            st.sampled_from(
                [
                    [f"raise {error}({message})"],
                    [f"m = {message}", f"raise {error}(m)"],
                    ["if flag:", *inner, "else:", *other],
                    ["for name in size:", *inner, "else:", *other],
                    ["while flag:", *inner, "    break"],
                    ["try:", *inner, "except OSError as e:", *other, "finally:", *inner],
                    ["try:", *inner, "except* OSError:", *other],
                    ["with name as size, flag:", *inner],
                    ["match size:", "    case 1 if flag:", *(f"    {line}" for line in inner)],
                    ["def inner(name):", *inner, "inner(limit)"],
                    ["class Inner:", *inner],
                    ["async def inner():", *inner],
                    ["return name"],
                    ["raise ValueError"],
                ]
            )
        )
    return lines


def module(body: list[str]) -> str:
    head = [
        "WORDS = 'as is known, '",
        "class Words:",
        "    MORE = 'and so on'",
        "class Own(ValueError):",
        "    pass",
        "def told(what, whom='them'):",
        "    text = f'told {whom} '",
        "    return text + what",
        "def check(name, limit, size, flag):",
    ]
    return "\n".join([*head, *(f"    {line}" for line in body)]) + "\n"


def fits(text: Text, message: str) -> bool:
    """Whether a message is the literals in their order with anything between, from its beginning to its end."""
    if len(text) == 1:
        return message == text[0]
    first, *middle, last = text[::2]
    if not message.startswith(first) or not message[len(first) :].endswith(last):
        return False
    at, end = len(first), len(message) - len(last)
    for literal in middle:
        place = message.find(literal, at, end)
        if place < 0:
            return False
        at = place + len(literal)
    return True


def outcome(source: str, **values: Any) -> tuple[int, str, str] | None:
    """Run `check` and return line, type and message of what it raises."""
    names: dict[str, Any] = {}
    exec(compile(source, "generated", "exec"), names)  # noqa: S102 - written by the strategies above
    try:
        names["check"](**values)
    except Exception as error:  # noqa: BLE001 - whatever the generated code raises
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        return (place.tb_lineno if place else 0), type(error).__name__, str(error)
    return None


def raises_in(source: str) -> list[int]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]
    return sorted(
        node.lineno
        for node in found
        if isinstance(node.exc, ast.Call | ast.Name)
        and getattr(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, "id", "") == "ValueError"
    )


@settings(max_examples=60, deadline=None)
@given(bodies())
def test_every_raise_of_a_plain_walk_is_found_exactly(body: list[str]) -> None:
    source = module(body)
    sites, figures = extract({"pkg/mod.py": source})
    assert sorted({site.line for site in sites if site.type == "ValueError" and site.how == "raise"}) == sorted(
        set(raises_in(source))
    )
    assert figures.value_errors == figures.value_errors_in_source == len(set(raises_in(source)))
    assert figures.sites == len(sites)
    assert figures.unparsable == ()


@settings(max_examples=250, deadline=None)
@given(expressions(), st.booleans(), st.sampled_from(["direct", "named", "added", "branch", "tried", "own", "list"]))
def test_the_message_of_code_that_is_run_fits_a_template(expression: str, flag: bool, way: str) -> None:
    body = {
        "direct": [f"raise ValueError({expression})"],
        "named": [f"m = {expression}", "raise ValueError(m)"],
        "added": [f"m = {expression}", "m += f' and {size}'", "m += '!'", "raise ValueError(f'no: {m}')"],
        "branch": ["m = 'no reason'", "if flag:", f"    m = {expression}", "raise ValueError('so: ' + m)"],
        "tried": ["try:", "    int('x')", "except ValueError as e:", f"    raise ValueError(f'{{e}}: ' + {expression}) from e"],
        "own": [f"error = Own({expression})", "raise error"],
        "list": ["m = ['to begin with']", "if flag:", f"    m.append({expression})", "raise ValueError('; '.join(m))"],
    }[way]
    source = module(body)
    ran = outcome(source, **{**VALUES, "flag": flag})
    assert ran is not None
    line, kind, message = ran
    texts = [text for site in extract({"pkg/mod.py": source})[0] if (site.line, site.type) == (line, kind) for text in site.texts]
    assert any(fits(text, message) for text in texts), (source, message, texts)


@settings(max_examples=120, deadline=None)
@given(bodies(), st.booleans())
@example(["class Inner:", "    raise ValueError(f'bad value {name}')", "    for name in size:", "        pass"], False)  # noqa: FBT003
def test_whatever_a_random_function_raises_fits_a_template_of_its_line(body: list[str], flag: bool) -> None:
    source = module(body)
    try:
        ran = outcome(source, **{**VALUES, "flag": flag})
    except SyntaxError:  # a `break` or `return` in a class's body or in `except*`
        return
    sites = {
        (site.line, text): site for site in extract({"pkg/mod.py": source})[0] for text in site.texts if site.how == "raise"
    }
    if ran is None or not any(line == ran[0] for line, _ in sites):
        return
    if ran[1] in ("NameError", "UnboundLocalError"):  # a class's body does not see the loop's variable of the same name
        return
    assert any(line == ran[0] and fits(text, ran[2]) for line, text in sites), (source, ran, list(sites))


def test_figures() -> None:
    sources = {
        "pkg/a.py": "raise ValueError('a text')\nraise ValueError(x)\nraise TypeError(x)\nassert x",
        "pkg/b.py": "def f(:",
    }
    sites, figures = extract(sources)
    assert len(sites) == 4
    assert figures == (1, ("pkg/b.py",), 4, 2, 2, 1)


@pytest.mark.parametrize("source", ["", "# only this", "x = 1", "pass\r\n", "\f\npass"])
def test_a_module_without_sites(source: str) -> None:
    sites, figures = extract({"pkg/mod.py": source})
    assert sites == []
    assert (figures.modules, figures.unparsable) == (1, ())


def test_lines_are_counted_alike_with_all_line_ends() -> None:
    for end in ("\n", "\r\n", "\r"):
        sites, _ = extract({"pkg/mod.py": end.join(["def f(x):", "    '''a", "    b'''", "    raise ValueError('text')"])})
        assert [site.line for site in sites] == [4]


def test_nothing_to_extract() -> None:
    assert extract({}) == ([], (0, (), 0, 0, 0, 0))


def test_circular_imports_end() -> None:
    source = "from .{} import X\nclass E(X): pass\ndef f():\n    raise E(X)\ndef g():\n    raise X('some text')"
    for modules in itertools.permutations("abc"):
        names = dict(zip(modules, (*modules[1:], modules[0]), strict=True))
        sites, _ = extract({f"pkg/{name}.py": source.format(other) for name, other in names.items()})
        assert len(sites) == 6


def test_the_order_of_the_sources_does_not_matter() -> None:
    sources = {f"pkg/{name}.py": f"raise ValueError('text of {name}')" for name in "cab"}
    assert extract(sources) == extract(dict(sorted(sources.items())))


def test_deep_code_leaves_the_limit_of_recursion_as_it_was() -> None:
    import sys

    before = sys.getrecursionlimit()
    extract({"pkg/mod.py": "raise ValueError(" + " + ".join(["'a'"] * 500) + ")"})
    assert sys.getrecursionlimit() == before
