"""The first stage: feeds a pipeline the lines that may matter, out of blocks of bytes, and passes over all others.

While the pipeline is busy, it gets every line. Otherwise a line without an anchor changes nothing (see `lmdiag.parse.anchors`),
so anchors are looked for in whole blocks at once, and text is decoded only around those that count.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.parse.anchors import Match, finder
from lmdiag.parse.assembler import NEAR_LINES, NEAR_SIZE
from lmdiag.parse.jsonlines import is_plain_piece
from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter

Block = bytes | bytearray

_STEP = 1 << 9
"""Bytes that are fed before the pipeline is asked again whether it is still busy, or chatter follows; then twice as many."""
_LONGEST_STEP = 1 << 16
_MUCH = 1 << 16


class Feeder:
    """Feeds one source's bytes to its pipeline. It can be pickled between two blocks.

    It gives the incidents that feeding each line gives, and numbers all lines.
    """

    def __init__(self, splitter: Splitter, pipeline: Pipeline) -> None:
        self.splitter = splitter
        self.pipeline = pipeline
        self._before = b""  # the last lines that were passed over: they may say what the next error is of
        self._rest = b""  # the unfinished line

    @property
    def holds(self) -> bool:
        """Whether the last block ended within a line."""
        return bool(self._rest) or self.splitter.holds

    @property
    def lines(self) -> int:
        """Lines so far."""
        return self.splitter.lines + self._before.count(b"\n")

    def feed(self, block: Block, size: int | None = None, matches: Sequence[Match] | None = None) -> None:
        """Feed the next `size` bytes, which are at the beginning of a block; `matches`: the anchors in them, if known."""
        size = len(block) if size is None else size
        start = 0
        if self.holds:
            start = block.find(b"\n", 0, size) + 1
            if not start:
                self._hold(block[:size])
                return
            self._finish_line(block[:start])
        end = block.rfind(b"\n", start, size) + 1
        if end > start:
            self._lines(block, start, end, matches)
        self._hold(block[max(start, end) : size])

    def finish(self) -> None:
        """Feed the last line, if it has no newline."""
        if self._rest:
            self._give(self._before + self._rest)
            self._before = self._rest = b""
        for line in self.splitter.finish():
            self.pipeline.feed(line)
        self.forget()

    def forget(self) -> None:
        """Let no line that was passed over belong to what comes; no line may be held."""
        self._pass(self._before)
        self._before = b""

    # -- lines -----------------------------------------------------------------------------------------------------

    def _hold(self, part: Block) -> None:
        if self.splitter.holds or len(self._rest) + len(part) > NEAR_SIZE:
            self._give(self._before + self._rest + part)
            self._before = self._rest = b""
        elif part:
            self._rest += part

    def _finish_line(self, part: Block) -> None:
        if self.splitter.holds:
            self._give(part)
            return
        line, self._rest = self._rest + part, b""
        self._lines(line, 0, len(line), None)

    def _lines(self, block: Block, start: int, end: int, matches: Sequence[Match] | None) -> None:
        """Take whole lines, from `start` to `end`."""
        start = self._while_busy(block, start, end)
        done = start  # up to here no line needs to be looked at
        places = _places(block, start, end, matches) if start < end else []
        for place, following in zip(places, [*places[1:], end], strict=False):
            done = max(done, start)
            if not done <= place < end:
                continue
            first = block.rfind(b"\n", done, place) + 1 or done
            done = block.find(b"\n", place) + 1
            if following >= done and is_plain_piece(block, first, done):
                continue
            if self._passes(block[first : done - 1]):
                continue
            self._pass_over(block, start, first)
            self._give(self._before + block[first:done])
            self._before = b""
            start = self._while_busy(block, done, end)
        self._pass_over(block, start, end)

    def _while_busy(self, block: Block, start: int, end: int) -> int:
        """Feed line by line as long as each may matter; return where that ends."""
        step = _STEP
        while start < end and self.pipeline.busy:
            self.forget()
            stop, lines = self.pipeline.pass_chatter(block, start, end)
            if lines:
                self.splitter.skip(stop - start, lines)
                start, step = stop, _STEP
                continue
            stop = block.find(b"\n", min(start + step, end - 1)) + 1
            self._give(block[start:stop])
            start, step = stop, min(2 * step, _LONGEST_STEP)
        return start

    def _passes(self, line: Block) -> bool:
        text = line.decode("utf-8", "replace").replace("\0", "").rstrip("\r")
        return len(line) <= NEAR_SIZE and self.pipeline.passes(text)

    def _pass_over(self, block: Block, start: int, end: int) -> None:
        """Pass over whole lines, but keep the last ones: an error behind them may be theirs."""
        kept = _last_lines(block, start, end)
        if kept > start:
            self.forget()
            self._pass(memoryview(block)[start:kept])
            self._before = bytes(block[kept:end])
        elif end > start:
            before = self._before + block[start:end]
            kept = _last_lines(before, 0, len(before))
            self._pass(before[:kept])
            self._before = before[kept:]

    def _pass(self, lines: Block | memoryview) -> None:
        if lines:
            self.splitter.skip(len(lines), count_lines(lines))

    def _give(self, data: Block) -> None:
        for line in self.splitter.feed(bytes(data)):
            self.pipeline.feed(line)


def count_lines(data: Block | memoryview) -> int:
    """Count the newlines. In much text stringzilla takes a fifth of the time: `bytes.count` looks for each one anew."""
    if len(data) < _MUCH:
        return bytes(data).count(b"\n")
    from stringzilla import count

    return int(count(data, b"\n"))


def _places(block: Block, start: int, end: int, matches: Sequence[Match] | None) -> list[int]:
    """The last byte of each anchor in whole lines from `start` on."""
    if matches is None:
        found = [start + last - 1 for _, _, last in finder()(memoryview(block)[start:end])]
    else:
        found = [last - 1 for _, _, last in matches]
    if block.startswith(b'{"', start):  # the newline before it was in the last block
        found.insert(0, start)
    return found


def _last_lines(block: Block, start: int, end: int) -> int:
    """Return where the last few of some whole lines begin."""
    first = end
    for _ in range(NEAR_LINES):
        before = block.rfind(b"\n", start, first - 1) + 1 if first > start else 0
        if end - (before or start) > NEAR_SIZE:
            break
        first = before or start
        if first == start:
            break
    return first
