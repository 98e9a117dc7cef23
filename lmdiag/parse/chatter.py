"""What a serving server says all the time, for a glance at a line."""

from __future__ import annotations

from collections.abc import Container

from lmdiag.lazy_pattern import lazy
from lmdiag.parse.progress import MAY_BE_STALLED

CHATTER = (
    "Engine 0",
    "Avg prompt throughput",
    "Received request",
    "Added request",
    "Finished request",
    "Aborted ",
    "Request ",
)
CHATTER_LINE = lazy(
    r"(?P<chain>\((?:[\w:./-]+ )?pid=\d+\) )?INFO(?:(?P<access>: {1,5}\d)| "
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[[\w./-]{1,100}:\d{1,6}\] (?:"
    rf"(?P<statistics>Engine 0(?!\d+: {MAY_BE_STALLED})|(?!{MAY_BE_STALLED}){CHATTER[1]})|{'|'.join(CHATTER[2:])}))"
)
"""Its beginning; CHATTER_BYTES is the same for bytes.

Behind `time` and the words of a request, only the same time could begin another piece of the line.
"""
CHATTER_BYTES = lazy(CHATTER_LINE.pattern.encode())


def chatter_end(
    block: bytes | bytearray, start: int, end: int, busy: Container[bytes], most: int, *, only_access: bool = False
) -> tuple[int, int]:
    """Return where a run of whole lines of chatter ends, and how many they are: `most` at most, up to the byte `end`.

    `busy`: the chains whose lines are not chatter now, since something of theirs is open. `only_access`: records are none
    either, since an engine has stopped, and they may tell of it.
    """
    match, find = CHATTER_BYTES.match, block.find
    lines = 0
    while lines < most and (hit := match(block, start, end)):
        behind = hit.end()
        stop = find(b"\n", behind, end)
        if stop < 0 or find(b"\r", behind, stop) >= 0 or (hit["chain"] or b"") in busy:
            break
        time = hit["time"]
        if time is not None and only_access:
            break
        if time is None or hit["statistics"]:
            if find(b".py:", behind, stop) >= 0 or find(b"pid=", behind, stop) >= 0:
                break
        elif find(time, behind, stop) >= 0:
            break
        start, lines = stop + 1, lines + 1
    return start, lines
