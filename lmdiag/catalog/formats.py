"""What `%`, `str.format` and the methods of a string make of a text."""

from __future__ import annotations

import ast
import itertools
import re
import string
import textwrap
from collections.abc import Callable, Iterator

from lmdiag.catalog.texts import (
    EMPTY,
    MAX_ALTERNATIVES,
    Text,
    Texts,
    edit_literals,
    has_literal,
    hole,
    join_texts,
    name_of,
    product,
    unique,
)

Read = Callable[[ast.expr], Texts]
_PERCENT = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<layout>[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?)(?P<conversion>[diouxXeEfFgGcrsa%])"
)
_MARK = re.compile("\x00(\\d+)\x01")


def percent(template: Text, right: ast.expr, read: Read) -> Texts:
    """Return the texts of `template % right`."""
    values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
    named = _string_keys(right)
    pieces: list[Texts] = []
    for index, part in enumerate(template):
        if index % 2:
            pieces.append(hole(part))
            continue
        end = 0
        for hit in _PERCENT.finditer(part):
            pieces.append([(part[end : hit.start()],)])
            end = hit.end()
            if hit["conversion"] == "%":
                pieces.append([("%",)])
                continue
            del values[: hit["layout"].count("*")]
            value = named.get(hit["key"]) if hit["key"] else values.pop(0) if values else None
            plain = hit["conversion"] == "s" and not hit["layout"]
            pieces.append(_value(value, read, plain=plain, name=hit["key"] or ""))
        pieces.append([(part[end:],)])
    return product(*pieces)


def _string_keys(node: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        return {}
    pairs = zip(node.keys, node.values, strict=True)
    return {key.value: value for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _value(node: ast.expr | None, read: Read, *, plain: bool, name: str = "") -> Texts:
    if node is None or isinstance(node, ast.Starred):
        return hole(name)
    texts = read(node) if plain else []
    return texts if has_literal(texts) else hole(name_of(node) or name)


def str_format(template: Text, call: ast.Call, read: Read) -> Texts:
    """Return the texts of `template.format(…)`."""
    named: dict[str, ast.expr] = {item.arg: item.value for item in call.keywords if item.arg}
    named |= {str(index): item for index, item in enumerate(_before_star(call.args))}
    pieces: list[Texts] = []
    automatic = 0
    for index, part in enumerate(template):
        if index % 2:
            pieces.append(hole(part))
            continue
        for literal, field, spec, conversion in _fields(part):
            pieces.append([(literal,)])
            if field is None:
                continue
            if field[:1] in ("", ".", "["):
                field, automatic = f"{automatic}{field}", automatic + 1
            plain = conversion in (None, "s") and not spec
            pieces.append(_value(named.get(field), read, plain=plain, name=_last_name(field)))
    return product(*pieces)


def _before_star(arguments: list[ast.expr]) -> Iterator[ast.expr]:
    """Yield the arguments whose places are known."""
    return itertools.takewhile(lambda item: not isinstance(item, ast.Starred), arguments)


def _last_name(field: str) -> str:
    """Return the name that a field such as `0.config.dtype` or `shape[0]` goes by."""
    return next(iter(re.findall(r"[A-Za-z_]\w*", field)[::-1]), "")


def _fields(part: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(part))
    except ValueError:  # not a format string after all
        return [(part, None, None, None)]


def replaced(text: Text, old: str, new: str) -> Text:
    """Return the text after `replace(old, new)`."""
    return edit_literals(text, [literal.replace(old, new) for literal in text[::2]])


def stripped(text: Text, characters: str | None = None, *, method: str) -> Text:
    """Return the text after strip, lstrip or rstrip."""
    literals = list(text[::2])
    if method in ("strip", "lstrip"):
        literals[0] = literals[0].lstrip(characters)
    if method in ("strip", "rstrip"):
        literals[-1] = literals[-1].rstrip(characters)
    return edit_literals(text, literals)


def quoted(text: Text) -> Text:
    """Return the repr of a text; what the holes hold is taken to need no other quotes."""
    whole = "".join(text[::2])
    quote = '"' if "'" in whole and '"' not in whole else "'"
    literals = [_escaped(literal, quote) for literal in text[::2]]
    literals[0] = quote + literals[0]
    literals[-1] += quote
    return edit_literals(text, literals)


def _escaped(literal: str, quote: str) -> str:
    other = "'" if quote == '"' else '"'
    return repr(other + literal)[2:-1]  # with the other quote in it, repr takes this one


def dedented(text: Text) -> Text:
    """Return the text after textwrap.dedent."""
    marked = "".join(part if index % 2 == 0 else f"\x00{index}\x01" for index, part in enumerate(text))
    pieces = _MARK.split(textwrap.dedent(marked))
    pieces[1::2] = [text[int(index)] for index in pieces[1::2]]
    return tuple(pieces)


def joined(separator: Texts, items: list[Texts]) -> Texts:
    """Return the texts of `separator.join([…])`."""
    pieces = [piece for item in items for piece in (separator, item)]
    return product(*pieces[1:])


def joined_lines(separator: Texts, items: list[Texts], name: str) -> Texts:
    """Return the texts of a join over a list that was built step by step: whole, and each wordy line by itself.

    Lines are appended under conditions, so that any one may be the only one, or stand between others.
    """
    alone = unique(
        text for item in items for text in item if len(re.findall(r"[A-Za-z]{3,}", " ".join(text[::2]))) >= 2
    )
    unknown = hole(name)[0]
    between = [join_texts(join_texts(unknown, text), unknown) for text in alone]
    if 1 + len(alone) + len(between) > MAX_ALTERNATIVES:
        alone = []
    return unique([*joined(separator, items)[:1], *alone, *between]) or [EMPTY]
