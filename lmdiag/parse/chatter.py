"""What a serving server says all the time, and runs of it: whole blocks of a healthy log are passed over at once."""

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
_LONGEST = 160
"""Characters that such a line's beginning may take behind its process: what is said below, and some more."""
_REST = (
    rf"INFO(?:: {{1,5}}\d| \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{{1,100}}:\d{{1,6}}\] (?:Engine 0(?!\d+: {MAY_BE_STALLED})|"
    rf"(?!{MAY_BE_STALLED})(?:{'|'.join(CHATTER[1:])})))"
)
CHATTER_LINE = re.compile(r"(\((?:[\w:./-]+ )?pid=\d+\) )?" + _REST)


class Runs:
    """Finds runs of chatter of certain processes."""

    def __init__(self) -> None:
        self._wanted: tuple[frozenset[str], int] | None = None
        self._pattern = re.compile(b"")

    def end(self, data: bytes, start: int, chains: frozenset[str], width: int) -> int:
        """Return where the whole lines of chatter that begin at `start` end.

        Each has one of the `chains` before it and at most `width` bytes. It is `start` where there are none, or where
        two writes may have run together in one of them.
        """
        if (chains, width) != self._wanted:
            self._wanted = (chains, width)
            ways = "|".join(re.escape(chain) for chain in sorted(chains, reverse=True))
            # `.` is four times as fast as a class of characters
            rest = width - _LONGEST - max(map(len, chains), default=0)
            # the length is known for sure only after another look at the line, unless there is room for any beginning
            fits, tail = ("", f".{{0,{rest}}}") if rest > _LONGEST else (rf"(?=.{{0,{width}}}\n)", ".*")
            self._pattern = re.compile(rf"(?:{fits}(?:{ways}){_REST}{tail}\n)*+".encode() if chains else b"")
        hit = self._pattern.match(data, start)
        end = hit.end() if hit else start
        return end if end > start and _is_plain(data[start:end], bare="" in chains) else start


def _is_plain(run: bytes, *, bare: bool) -> bool:
    """Whether each record prefix and each process prefix stands at a line's beginning, and all is ASCII.

    An access line says `INFO: ` once at least and every other one names a file, so the numbers can only be equal where
    no line holds a second prefix.
    """
    lines = run.count(b"\n")
    processes = run.count(b"\n(") + run.startswith(b"(") if bare else lines
    return (
        run.isascii()
        and b"\r" not in run
        and run.count(b"pid=") == processes
        and run.count(b".py:") == lines - run.count(b"INFO: ")
    )
