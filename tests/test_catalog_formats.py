from __future__ import annotations

import pytest
from extracting import raised, said
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.formats import dedented, quoted, replaced, stripped


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'got %s' % value", "got {value}"),
        ("'got %s of %d' % (value, self.limit)", "got {value} of {limit}"),
        ("'got %(a)s and %(b)d' % {'a': value, 'b': name}", "got {value} and {name}"),
        ("'got %(a)s' % value", "got {a}"),
        ("'%d%% of %s' % (value, name)", "{value}% of {name}"),
        ("'100%% sure'  % ()", "100% sure"),
        ("'%-10s|%5.2f|%#x|' % (name, value, value)", "{name}|{value}|{value}|"),
        ("'%*d pages of %s' % (value, self.count, name)", "{count} pages of {name}"),
        ("'dtype %s is bad' % 'half'", "dtype half is bad"),
        ("'dtype %r is bad' % 'half'", "dtype {} is bad"),
        ("'dtype %-9s is bad' % 'half'", "dtype {} is bad"),
        ("'too few: %s %s' % (value,)", "too few: {value} {}"),
        ("'many: %s and %s' % (*value, name)", "many: {} and {name}"),
        ("f'{name}: %s' % value", "{name}: {value}"),
        ("('got ' '%s') % len(name)", "got {name}"),
    ],
)
def test_percent(expression: str, text: str) -> None:
    assert said(expression) == [text]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'got {}, not {}'.format(value, name)", "got {value}, not {name}"),
        ("'got {1}, not {0}'.format(value, name)", "got {name}, not {value}"),
        ("'got {a}, not {b}'.format(a=value, b=self.limit)", "got {value}, not {limit}"),
        ("'got {a}'.format(**value)", "got {a}"),
        ("'got {0.dtype} in {b[3]}'.format(value, b=name)", "got {dtype} in {b}"),
        ("'got {.dtype} and {}'.format(value, name)", "got {dtype} and {name}"),
        ("'set {{x}} to {}'.format(value)", "set {x} to {value}"),
        ("'got {:>10} and {!r}'.format(value, name)", "got {value} and {name}"),
        ("'dtype {} is bad'.format('half')", "dtype half is bad"),
        ("'dtype {:9} is bad, {!r} too'.format('half', 'other')", "dtype {} is bad, {} too"),
        ("'got {} and {}'.format(*value)", "got {} and {}"),
        ("'got {} and {} then {}'.format(name, *value)", "got {name} and {} then {}"),
        ("'one { brace'.format(value)", "one { brace"),
        ("'{} of {}'.format(value)", "{value} of {}"),
    ],
)
def test_str_format(expression: str, text: str) -> None:
    assert said(expression) == [text]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'  bad value \\n'.strip()", "bad value"),
        ("'  bad value '.lstrip()", "bad value "),
        ("f'  {value} is bad. '.rstrip()", "  {value} is bad."),
        ("'bad value...'.rstrip('.')", "bad value"),
        ("'bad\\nvalue'.replace('\\n', ' ')", "bad value"),
        ("'bad value'.replace(name, 'x')", "{name}"),
        ("'bad value'.strip(name)", "{name}"),
        ("textwrap.dedent('''\n    bad\n      value''')", "\nbad\n  value"),
        ("dedent(f'''\\\n    bad {value}\n    of {name}''').strip()", "bad {value}\nof {name}"),
        ("textwrap.fill('bad value', 80)", "bad value"),
    ],
)
def test_methods_of_strings(expression: str, text: str) -> None:
    assert said(expression) == [text]


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("' '.join(['bad', 'value', name])", ["bad value {name}"]),
        ("'\\n'.join(('bad value', f'of {name}'))", ["bad value\nof {name}"]),
        ("'bad: ' + ', '.join(value)", ["bad: {value}"]),
        ("'bad: ' + ', '.join(sorted(value))", ["bad: {value}"]),
        ("f\"one of {', '.join(x for x in value)}!\"", ["one of {join}!"]),
        ("f\"one of {', '.join(map(str, value))}!\"", ["one of {str}!"]),
        ("' '.join(['bad value', *value])", ["bad value {}", "bad value", "{}bad value{}"]),
    ],
)
def test_join(expression: str, texts: list[str]) -> None:
    assert said(expression) == texts


def test_a_list_that_was_built_gives_the_whole_and_each_wordy_line() -> None:
    whole = "a first line; a second line of {name}"
    texts = [whole, "a first line", "a second line of {name}", "{lines}a first line{lines}", "{lines}a second line of {name}"]
    for second in ("lines.append(TEXT)", "lines.extend([TEXT])", "lines += [TEXT]", "lines += (TEXT,)", "more = [TEXT]\nlines += more"):
        body = f"lines = ['a first line']\n{second.replace('TEXT', 'f' + repr('a second line of {name}'))}\nraise ValueError('; '.join(lines))"
        assert raised(body) == texts


def test_a_list_that_was_built_under_conditions() -> None:
    body = """
        problems = []
        if value:
            problems.append("value is not allowed")
        for item in name:
            problems.append(f"{item} is not a name")
        problems.extend(self.others())
        if problems:
            raise ValueError("Invalid: " + "; ".join(problems))
    """
    texts = raised(body)
    assert texts[0] == "Invalid: value is not allowed; {item} is not a name; {others}"
    assert "Invalid: value is not allowed" in texts
    assert "Invalid: {item} is not a name" in texts
    assert "Invalid: {problems}value is not allowed{problems}" in texts


def test_a_list_of_many_lines_stays_within_the_bound() -> None:
    appended = "\n".join(f"lines.append('line number {word}')" for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"])
    texts = raised(f"lines = []\n{appended}\nraise ValueError('; '.join(lines))")
    assert "{lines}line number eight{lines}" in texts


@given(st.text("ab'\"\n\\é", max_size=8))
def test_a_quoted_literal_is_its_repr(literal: str) -> None:
    assert quoted((literal,)) == (repr(literal),)


def test_quotes_fit_the_literals_of_a_text() -> None:
    assert quoted(("no parser '", "name", "'")) == ("\"no parser '", "name", "'\"")
    assert quoted(("a\n", "name", "")) == ("'a\\n", "name", "'")


def test_edits_leave_the_holes_alone() -> None:
    assert stripped((" ", "x", " "), method="strip") == ("", "x", "")
    assert replaced(("a-b", "x-y", "-"), "-", "+") == ("a+b", "x-y", "+")
    assert dedented(("  a ", "x", "\n  b")) == ("a ", "x", "\nb")
