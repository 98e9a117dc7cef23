"""Logs that never end: what is to happen in the middle of a scan can be waited for."""

from __future__ import annotations

import os

import pytest

from lmdiag.read import archives
from lmdiag.read.archives import RawReader

CHATTER = b'(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK\n'


class Endless(RawReader):
    """What a file holds, then chatter for ever."""

    def __init__(self, raw: RawReader, begun: str) -> None:
        self._raw = raw
        self._begun = begun

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._raw.position

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        if count := self._raw.readinto(buffer):
            return count
        if self._begun:
            with open(self._begun, "w", encoding="ascii") as fifo:
                fifo.write(f"{os.getpid()}\n")
            self._begun = ""
        buffer[: len(CHATTER)] = CHATTER
        return len(CHATTER)

    def close(self) -> None:
        """See RawReader."""
        self._raw.close()


def open_endless(path: str) -> RawReader:
    """Open a file that does not end if its name says so.

    If there is a FIFO of the same name and `.begun`, whoever reads it is told the process that has read what the file holds.
    """
    raw = archives.open_bytes(path)
    begun = f"{path}.begun"
    return Endless(raw, begun if os.path.exists(begun) else "") if "endless" in os.path.basename(path) else raw


def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files whose names say so never end."""
    monkeypatch.setattr("lmdiag.examine.open_bytes", open_endless)
