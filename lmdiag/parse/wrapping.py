"""Joins the lines that a terminal wrapped.

A copy from a terminal cuts each long line at the terminal's width, in the middle of words, and leaves the rest without a
prefix. Only then does a line fill the whole width while the next one is bare.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmdiag.model import Line
from lmdiag.parse.messages import is_junk
from lmdiag.parse.prefixes import read_prefix
from lmdiag.parse.tracebacks import CERTAIN, opens

_NARROWEST, _WIDEST = 72, 250
"""Columns between which a terminal's width is plausible."""
_COPIED_LINES = 10_000
"""Lines of which a copy from a terminal may consist."""


Entry = tuple[str, str, Line]
"""Stream, text, and the physical line that it ends on."""


class Rejoiner:
    """Holds a line back that fills the width of the widest one so far, until the next line shows whether it goes on."""

    def __init__(self) -> None:
        self._width = 0
        self._is_over = False
        self._held: Entry | None = None

    def ignores(self, text: str) -> bool:
        """Say whether feeding a whole line would change nothing."""
        return self._held is None and (len(text) <= self._width or self._is_over)

    @property
    def holds(self) -> bool:
        """Whether a line is held back."""
        return self._held is not None

    @property
    def is_idle(self) -> bool:
        """Whether no line is held back, and none will be: the log is no copy from a terminal."""
        return self._held is None and (self._width > _WIDEST or self._is_over)

    def feed(self, stream: str, text: str, line: Line) -> Iterator[Entry]:
        """Take one line without its containers; yield what is whole now."""
        length = len(text)
        self._is_over = self._is_over or line.number > _COPIED_LINES
        if self._held is None:
            if length < self._width or length < _NARROWEST or self._is_over:  # by far the most
                yield stream, text, line
                return
        elif self._held[0] == stream and self._goes_on(text):
            _, held, first = self._held
            self._held = (stream, held + text, first)
            if length < self._width:
                yield from self.close()
            return
        else:
            yield from self.close()
        self._width = max(self._width, length)
        if _NARROWEST <= length <= _WIDEST and length == self._width and not text.endswith("  ") and _can_wrap(text):
            self._held = (stream, text, line)
        else:
            yield stream, text, line

    def close(self) -> Iterator[Entry]:
        """Yield the line that is held back, if there is one."""
        if self._held is not None:
            held, self._held = self._held, None
            yield held

    def _goes_on(self, text: str) -> bool:
        if len(text) > self._width or not text.strip() or text[:1] in "\t([{" or text.startswith("  "):
            return False
        if opens(text) or CERTAIN.match(text) or is_junk(text):
            return False
        prefixed = read_prefix(text)
        return not prefixed.chain and prefixed.record is None and not text.startswith(("Process ", "Exception ignored"))


def _can_wrap(text: str) -> bool:
    """Only where a record's prefix tells lines from rests of lines can a rest be known."""
    record = read_prefix(text).record
    return record is not None and record.logger == "vllm" and record.level in ("ERROR", "CRITICAL")
