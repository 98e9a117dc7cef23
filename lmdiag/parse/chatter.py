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
_RECORD = r" \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,100}:\d{1,6}\] "
CHATTER_LINE = re.compile(
    r"(\((?:[\w:./-]+ )?pid=\d+\) )?"
    rf"INFO(?:: {{1,5}}\d|{_RECORD}(?:Engine 0(?!\d+: {MAY_BE_STALLED})|"
    rf"(?!{MAY_BE_STALLED})(?:{'|'.join(CHATTER[1:])})))"
)
