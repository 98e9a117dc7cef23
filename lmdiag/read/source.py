"""What a daemon reads from: bytes that go on coming, whatever they come from."""

from __future__ import annotations

from typing import Any, Protocol


class Source(Protocol):
    """One place where a log appears: a file with all that is rotated away from it, a journal, a pipe."""

    name: str
    """Unique; what a person sees: the path, "journal:vllm.service", "-"."""
    required: bool
    """Named explicitly: while it cannot be read, the daemon is not healthy."""
    problem: str
    """"" while it can be read; else why not, as a sentence without a full stop."""
    generation: int
    """Counts the files that stood at its place; grows when the bytes of a new one begin."""
    ended: bool
    """Nothing will ever come any more (standard input was closed); the stream is finished."""

    def read(self) -> bytes:
        """Return the next bytes (at most about 256 KiB), b"" if there is nothing now. Never raises; sets `problem`."""

    def position(self) -> dict[str, Any]:
        """Return where to go on after what read() has delivered, as JSON."""

    def fileno(self) -> int | None:
        """Return a descriptor to select on, or None (files)."""

    def lag(self) -> int:
        """Bytes that lie there unread, as far as known."""

    def lost(self) -> list[tuple[str, int]]:
        """(reason, bytes or entries) of what could not be read since the last call; 0 where that is not known."""

    def close(self) -> None:
        """Release what is open."""
