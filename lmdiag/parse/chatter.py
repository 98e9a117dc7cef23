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
_ROOM = 2000
"""A log with a line of so many characters, as each start of a server writes, has none of these that is longer."""
_RECORD = r" \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,100}:\d{1,6}\] "
_REST = (
    rf"INFO(?:: {{1,5}}\d|{_RECORD}(?:Engine 0(?!\d+: {MAY_BE_STALLED})|"
    rf"(?!{MAY_BE_STALLED})(?:{'|'.join(CHATTER[1:])})))"
)
# Access lines and statistics in full: there is no room in them for the beginning of another line.
_WHOLE = (
    r'INFO(?:: {1,5}\d[\d.:]{0,60} - "[A-Z]{1,20} [^"\s]{1,1000} HTTP/[\d.]{1,9}" \d{3}[ \w]{0,60}|'
    rf"{_RECORD}Engine 0(?!\d+: {MAY_BE_STALLED})[\w .,:%/-]{{0,600}})"
)
CHATTER_LINE = re.compile(r"(\((?:[\w:./-]+ )?pid=\d+\) )?" + _REST)


class Runs:
    """Finds runs of chatter of certain processes."""

    def __init__(self) -> None:
        self._wanted: tuple[frozenset[str], int] | None = None
        self._whole = self._any = re.compile(b"")

    def end(self, data: bytes, start: int, chains: frozenset[str], width: int) -> tuple[int, int]:
        """Return where the whole lines of chatter that begin at `start` end, and how many they are.

        Each has one of the `chains` before it and at most `width` bytes. There are none where two writes may have run
        together in one of them.
        """
        if (chains, width) != self._wanted:
            self._wanted = (chains, width)
            self._compile(chains, width)
        hit = self._whole.match(data, start)
        if hit is not None and hit.end() > start:
            run = hit.group()
            return (hit.end(), run.count(b"\n")) if run.isascii() else (start, 0)
        hit = self._any.match(data, start)
        run = hit.group() if hit else b""
        lines = run.count(b"\n")
        return (start + len(run), lines) if lines and _is_plain(run, lines, bare="" in chains) else (start, 0)

    def _compile(self, chains: frozenset[str], width: int) -> None:
        ways = "|".join(re.escape(chain) for chain in sorted(chains, reverse=True)) or r"(?!)"
        rest = width - _LONGEST - max(map(len, chains), default=0)
        fits = rf"(?=.{{0,{width}}}\n)"
        # The length is known for sure only after another look at the line, unless there is room for any beginning.
        # `.` is four times as fast as a class of characters.
        about, tail = ("", f".{{0,{rest}}}") if rest > _LONGEST else (fits, ".*")
        self._any = re.compile(rf"(?:{about}(?:{ways}){_REST}{tail}\n)*+".encode())
        self._whole = re.compile(rf"(?:{'' if width > _ROOM else fits}(?:{ways}){_WHOLE}\n)*+".encode())


def _is_plain(run: bytes, lines: int, *, bare: bool) -> bool:
    """Whether each record prefix and each process prefix stands at a line's beginning, and all is ASCII.

    An access line says `INFO: ` once at least and every other one names a file, so that the numbers can only be equal
    where no line holds a second prefix.
    """
    if not run.isascii() or b"\r" in run:
        return False
    processes = run.count(b"\n(") + run.startswith(b"(") if bare else lines
    return run.count(b"pid=") == processes and run.count(b".py:") == lines - run.count(b"INFO: ")
