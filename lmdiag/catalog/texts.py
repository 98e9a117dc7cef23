"""Message texts as the extractor knows them: literal pieces with named holes between, in several alternatives.

A Text is a tuple of odd length: literal, hole's name, literal, … ("max_model_len (", "length", ") is too big"). A text
without a literal is a lone hole: ("", "error", "").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

Text = tuple[str, ...]
Texts = list[Text]
"""What one expression may give: alternatives, in the order of the code."""

MAX_ALTERNATIVES = 12
"""Kept of one expression; a message built of more optional pieces is not told apart further."""
MAX_LENGTH = 20_000
"""Characters of a text; messages have a few hundred."""
EMPTY: Text = ("",)
_LETTERS = re.compile(r"[A-Za-z]{3}[A-Za-z]*")
_TELLING = 2
"""Words from which a text is worth telling from a hole."""
_NAME = re.compile(r"[A-Za-z_]\w*")


def hole(name: str = "") -> Texts:
    """Return the text of a value that is known only when the program runs."""
    return [("", name, "")]


def join_texts(left: Text, right: Text) -> Text:
    """Return the one behind the other; a hole that meets a hole becomes one with it."""
    joint = left[-1] + right[0]
    if not joint and len(left) > 1 and len(right) > 1:
        return left[:-1] + right[2:]
    return (*left[:-1], joint, *right[1:])


def product(*pieces: Texts) -> Texts:
    """Return every way to put one alternative of each piece behind the one before, up to the bound."""
    found: Texts = [EMPTY]
    for alternatives in pieces:
        found = [_bounded(join_texts(head, tail)) for head in found for tail in alternatives][: 4 * MAX_ALTERNATIVES]
    return unique(found)


def _bounded(text: Text) -> Text:
    """Return the text, or a hole for one that is longer than any message: `x = x + x`, over and over."""
    return text if sum(map(len, text)) <= MAX_LENGTH else ("", "", "")


def unique(texts: Iterable[Text]) -> Texts:
    """Return the alternatives without repeats, up to the bound."""
    return list(dict.fromkeys(texts))[:MAX_ALTERNATIVES]


def either(texts: Iterable[Text]) -> Texts:
    """Return the alternatives of a choice; where one of them is unknown, its hole stands for the single words too."""
    kept = unique(texts)
    if not any(is_hole(text) for text in kept):
        return kept
    return [text for text in kept if is_hole(text) or len(_LETTERS.findall(" ".join(text[::2]))) >= _TELLING]


def is_hole(text: Text) -> bool:
    """Whether nothing of the text is known."""
    return len(text) == 3 and not text[0] and not text[2]


def has_literal(texts: Iterable[Text]) -> bool:
    """Whether anything of the text is known."""
    return any(literal for text in texts for literal in text[::2])


def is_opaque(text: Text) -> bool:
    """Whether no literal word is left to recognise the message by."""
    return not _LETTERS.search(" ".join(text[::2]))


def edit_literals(text: Text, literals: Sequence[str]) -> Text:
    """Return the text with other literals around the same holes."""
    parts = list(text)
    parts[::2] = literals
    return tuple(parts)


def name_of(node: ast.AST | None) -> str:
    """Return the name that an expression goes by: `self.config.max_len` is max_len, `len(prompt)` is prompt, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        inner = name_of(node.args[0]) if node.args else ""
        return inner or name_of(node.func)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return key if isinstance(key, str) and _NAME.fullmatch(key) else name_of(node.value)
    return ""


def dotted(node: ast.AST | None) -> str:
    """Return `a.b.c` for such an expression, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""
