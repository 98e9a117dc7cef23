"""Physical lines in, logical lines out: cleaned, rejoined, without containers, and with their prefixes read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lmdiag.model import Line
from lmdiag.parse.clean import clean
from lmdiag.parse.containers import CUT, Unwrapper
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

    @property
    def waits(self) -> bool:
        """Whether something waits for its rest."""
        return bool(self._cut) or self._rejoiner.holds

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for its rest, and the source is no terminal's copy."""
        return not self._cut and self._rejoiner.is_idle

    def feed(self, line: Line) -> Iterator[Logical]:
        """Take one physical line; yield what is whole now."""
        yield from self._raw("", line.text, line, 0)
        self._last = line

    def close(self) -> Iterator[Logical]:
        """Yield what still waited for its rest."""
        for stream in list(self._cut):
            yield from self._raw(stream, self._cut.pop(stream), self._last, _MAX_NESTING)
        for stream, text, line in self._rejoiner.close():
            yield from self._plain(stream, text, line)

    def _raw(self, stream: str, text: str, line: Line, depth: int) -> Iterator[Logical]:
        """Take text with its colours and control bytes: one of them may be cut in two by a container."""
        hit = CUT.match(text) if text[:1].isdigit() and depth < _MAX_NESTING else None
        if hit is None:
            for piece in clean(text):
                yield from self._piece(stream, piece, line, depth)
            return
        whole = self._join(stream, text[hit.end() :], cut=hit.group(1) == "P")
        if whole is not None:
            yield from self._raw(stream, whole, line, depth + 1)

    def _piece(self, stream: str, text: str, line: Line, depth: int) -> Iterator[Logical]:
        """Take containers off; what one of them cut or enclosed may itself hold another."""
        name, text = self._unwrapper.unwrap(text)
        stream += name
        if depth < _MAX_NESTING and text[:1] == "{" and (found := read_json(text)):
            yield from self._json(stream, found, line, depth)
        elif depth < _MAX_NESTING and name and text[:1].isdigit() and CUT.match(text):
            yield from self._raw(stream, text, line, depth + 1)
        else:
            for entry in self._rejoiner.feed(stream, text, line):
                yield from self._plain(*entry)

    def _json(self, stream: str, found: JsonLine, line: Line, depth: int) -> Iterator[Logical]:
        stream += found.stream
        if found.record is None:
            whole = self._join(stream, found.text, cut=found.partial)
            for part in [] if whole is None else whole.split("\n"):
                yield from self._raw(stream, part, line, depth + 1)
            return
        texts = found.record.text.split("\n")
        for number, text in enumerate(texts, 1):
            yield Logical(stream, found.record._replace(text=text), line, ends_record=number == len(texts))

    def _join(self, stream: str, text: str, *, cut: bool) -> str | None:
        """Join what a container cut (CRI `P` lines, docker's 16 KiB pieces); None while the rest is missing."""
        text = self._cut.pop(stream, "") + text
        if not cut or len(text) >= _MAX_JOINED:
            return text
        if len(self._cut) >= self._max_cut:
            self._cut.pop(next(iter(self._cut)))
        self._cut[stream] = text
        return None

    def _plain(self, stream: str, text: str, line: Line) -> Iterator[Logical]:
        for piece in unglue(text.rstrip()):
            prefixed = read_prefix(piece)
            if prefixed.chain and prefixed.record is None and prefixed.text:
                yield from self._inside(stream, prefixed, line)
            else:
                yield Logical(stream, prefixed, line)

    def _inside(self, stream: str, outer: Prefixed, line: Line) -> Iterator[Logical]:
        """Behind a process prefix (Ray's, around whatever its worker printed) a container may stand once more."""
        name, text = self._unwrapper.unwrap(outer.text)
        if text[:1] == "{" and (found := read_json(text)) and found.record:
            inner = found._replace(record=found.record._replace(chain=outer.chain + found.record.chain))
            yield from self._json(stream + name, inner, line, _MAX_NESTING)
            return
        if text == outer.text:
            yield Logical(stream, outer, line)
            return
        prefixed = read_prefix(text)
        process, pid = (prefixed.process, prefixed.pid) if prefixed.chain else (outer.process, outer.pid)
        yield Logical(
            stream + name, prefixed._replace(chain=outer.chain + prefixed.chain, process=process, pid=pid), line
        )
