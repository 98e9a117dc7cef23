"""What a serving server says all the time, for a glance at a line."""

from __future__ import annotations

import re

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
CHATTER_LINE = re.compile(
    r"(?P<chain>\((?:[\w:./-]+ )?pid=\d+\) )?INFO(?:(?P<access>: {1,5}\d)| "
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[[\w./-]{1,100}:\d{1,6}\] (?:"
    rf"(?P<statistics>Engine 0(?!\d+: {MAY_BE_STALLED})|(?!{MAY_BE_STALLED}){CHATTER[1]})|{'|'.join(CHATTER[2:])}))"
)
"""Its beginning. Behind `time` and the words of a request, only the same time could begin another piece of the line."""
