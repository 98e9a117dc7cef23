"""Physical lines in, logical lines out: cleaned, rejoined, without containers, and with their prefixes read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lmdiag.model import Line
from lmdiag.parse.clean import clean
from lmdiag.parse.containers import Unwrapper
from lmdiag.parse.jsonlines import JsonLine, read_json
from lmdiag.parse.prefixes import Prefixed, read_prefix, unglue
from lmdiag.parse.wrapping import Rejoiner

_MAX_NESTING = 3
_MAX_JOINED = 1 << 20
"""Characters up to which the pieces of a line that a container cut are joined."""


class Logical(NamedTuple):
    """One line of a record, or one raw line."""

    stream: str
    """The containers, pods, units and ranks that it came through, outermost first."""
    prefixed: Prefixed
    line: Line
    """The physical line that it ends on."""
    ends_record: bool = False
    """Nothing later belongs to its record (a record in JSON is whole)."""


class LogicalLines:
    """The logical lines of one source. Bounded: at most `max_cut` streams have a cut line waiting for its rest."""

    def __init__(self, source: str, *, max_cut: int = 256) -> None:
        self._unwrapper = Unwrapper()
        self._rejoiner = Rejoiner()
        self._cut: dict[str, str] = {}
        self._max_cut = max_cut
        self._last = Line(source, 1, 0, "")

    def ignores(self, text: str) -> bool:
        """Say whether a line without containers, in one piece, would change nothing here."""
        return not self._cut and self._rejoiner.ignores(text)

    def feed(self, line: Line) -> Iterator[Logical]:
        """Take one physical line; yield what is whole now."""
        for piece in clean(line.text):
            for text, where in self._rejoiner.feed(piece, line):
                yield from self._physical(text, where)
        self._last = line

    def close(self) -> Iterator[Logical]:
        """Yield what still waited for its rest."""
        for text, where in self._rejoiner.close():
            yield from self._physical(text, where)
        for stream in list(self._cut):
            yield from self._join(stream, "", self._last, cut=False, depth=0)

    def _physical(self, text: str, line: Line, outer: str = "", depth: int = 0) -> Iterator[Logical]:
        """Take containers off; what one of them cut or enclosed may itself hold another."""
        stream, text, cut = self._unwrapper.unwrap(text)
        stream = outer + stream
        if cut is not None:
            yield from self._join(stream, text, line, cut=cut, depth=depth)
        elif text[:1] == "{" and (found := read_json(text)):
            yield from self._json(stream, found, line, depth)
        else:
            yield from _plain(stream, text, line)

    def _json(self, stream: str, found: JsonLine, line: Line, depth: int) -> Iterator[Logical]:
        stream += found.stream
        if found.record is None:
            pieces = [piece for part in found.text.split("\n") for piece in clean(part)]
            for number, piece in enumerate(pieces, 1):
                cut = found.partial and number == len(pieces)
                yield from self._join(stream, piece, line, cut=cut, depth=depth)
            return
        texts = found.record.text.split("\n")
        for number, text in enumerate(texts, 1):
            yield Logical(stream, found.record._replace(text=text), line, ends_record=number == len(texts))

    def _join(self, stream: str, text: str, line: Line, *, cut: bool, depth: int) -> Iterator[Logical]:
        """Join what a container cut (CRI `P` lines, docker's 16 KiB pieces) before looking into it."""
        text = self._cut.pop(stream, "") + text
        if cut and len(text) < _MAX_JOINED:
            if len(self._cut) >= self._max_cut:
                self._cut.pop(next(iter(self._cut)))
            self._cut[stream] = text
        elif depth < _MAX_NESTING:
            yield from self._physical(text, line, stream, depth + 1)
        else:
            yield from _plain(stream, text, line)


def _plain(stream: str, text: str, line: Line) -> Iterator[Logical]:
    for piece in unglue(text.rstrip()):
        yield Logical(stream, read_prefix(piece), line)
