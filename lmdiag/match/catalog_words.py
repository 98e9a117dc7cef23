"""The words by which a message finds the rows of the catalogue that may fit it."""

from __future__ import annotations

from lmdiag.lazy_pattern import lazy
from lmdiag.match.catalog_format import HOLE, LINE_BREAK

WORD = lazy(r"[A-Za-z0-9_]{3,}")
_WHOLE = lazy(r"(?<!\x00)(?<![A-Za-z0-9_])[A-Za-z0-9_]{3,}(?![A-Za-z0-9_])(?!\x00)")


def words_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the whole words of a row's first line and of the rest, in lower case.

    A word that touches a hole is left out: in a message it may be part of a longer one.
    """
    first, _, rest = text.partition(LINE_BREAK)
    return _lower(first), _lower(rest)


def _lower(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WHOLE.findall(text)) if text and text != HOLE else frozenset()
