"""What to leave out when a source writes faster than it can be read: blocks in which every line was seen before.

A flood repeats itself. Lines are compared without their digits, and without all that could be hexadecimal when that
is not enough (request ids); a block with one line that is new, or that tells of the server's life, is kept whole.
"""

from __future__ import annotations

_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_MARKS = (
    b"startup complete",
    b"Uvicorn running",
    b"version ",
    b"args",
    b"hut",
    b"SIG",
    b"died unexpectedly",
    b"killed",
)
_MAX_SEEN = 50_000


class Flood:
    """The flood of one source."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._delete = _DIGITS

    def repeats(self, body: bytes, *, hexadecimal: bool) -> bool:
        """Say whether a block of whole lines only repeats what came before, and remember its lines."""
        delete = _HEX if hexadecimal else _DIGITS
        if delete != self._delete or len(self._seen) > _MAX_SEEN:
            self._seen.clear()
            self._delete = delete
        lines = {hash(line) for line in body.translate(None, delete).split(b"\n")}
        new = not lines <= self._seen
        self._seen |= lines
        return not new and not any(mark in body for mark in _MARKS)

    def calm(self) -> None:
        """Forget the lines: the flood is over."""
        self._seen.clear()
