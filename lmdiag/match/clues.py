"""Finds what else cards want to know of a log, in a record's or an exception's first characters: one look-up a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmdiag.match.templates import Fields, Template, fold
from lmdiag.model import Clue
from lmdiag.parse.notable import HEAD_LENGTH

_MAX_TEXT = 2000


class Clues:
    """The clues of a pack; a template is compiled when a record begins like it."""

    def __init__(self, clues: Iterable[Clue]) -> None:
        self._by_head: dict[str, list[Clue]] = {}
        for clue in clues:
            self._by_head.setdefault(fold(clue.message)[:HEAD_LENGTH], []).append(clue)
        self._templates: dict[str, Template] = {}

    @property
    def heads(self) -> frozenset[str]:
        """The first characters of all clues."""
        return frozenset(self._by_head)

    def find(self, text: str) -> Iterator[tuple[Clue, str, Fields]]:
        """Yield the clues with which a line of the text begins, and what their holes capture of it, or of all that follows.

        Lines of one place in the code and one second are one record: each worker's number is a line of it.
        """
        for start, line in _lines(text[:_MAX_TEXT]):
            for clue in self._by_head.get(line[:HEAD_LENGTH], ()):
                template = self._templates.get(clue.message) or self._compiled(clue)
                fields = template.begin_folded(fold(line))
                if fields is None:
                    fields = template.begin_folded(fold(text[start : start + _MAX_TEXT]))
                if fields is not None:
                    yield clue, line, fields

    def _compiled(self, clue: Clue) -> Template:
        template = self._templates[clue.message] = Template(clue.message)
        return template


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, line)."""
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1
