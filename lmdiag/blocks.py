"""Feeds a pipeline block by block, past the runs of chatter that make up nine tenths of a healthy log."""

from __future__ import annotations

from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter

_STEP = 1 << 9
"""Bytes that are fed line by line before a run is looked for again; each failure doubles them."""


def feed_block(splitter: Splitter, pipeline: Pipeline, data: bytes) -> None:
    """Feed the next block of a source; a line that is not whole yet is held by the splitter.

    It gives what feeding each line gives: only lines that would change nothing are passed over.
    """
    end = data.rfind(b"\n") + 1
    start = data.find(b"\n") + 1 if splitter.holds else 0
    _feed(splitter, pipeline, data[:start])
    step = _STEP
    while start < end:
        stop, lines = pipeline.run_end(data, start)
        if lines:
            splitter.skip(stop - start, lines)
            start, step = stop, _STEP
        if start < end:
            stop = data.find(b"\n", min(start + step, end - 1)) + 1
            _feed(splitter, pipeline, data[start:stop])
            start, step = stop, 2 * step
    _feed(splitter, pipeline, data[end:])


def finish(splitter: Splitter, pipeline: Pipeline) -> None:
    """Feed the last line, if it has no newline."""
    for line in splitter.finish():
        pipeline.feed(line)


def _feed(splitter: Splitter, pipeline: Pipeline, data: bytes) -> None:
    if data:
        for line in splitter.feed(data):
            pipeline.feed(line)
