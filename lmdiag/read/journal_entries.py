"""The entries that journalctl prints as JSON, one a line: which are handed on, and how far a reader has come.

What journald does to a log was tried with systemd 252:
a line over 48 KiB becomes several entries, all but the last with `_LINE_BREAK=line-max`, and a character at the border
is cut in two, so that the pieces come as arrays of bytes; a line with colours or invalid UTF-8 is such an array, too;
a field given several times is an array of its values; empty lines do not arrive at all; a unit that writes too fast
loses lines, of which one entry of journald's own tells; a cursor that is gone is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import deque
from fnmatch import fnmatchcase
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

FIELDS = (
    "MESSAGE", "MESSAGE_ID", "N_DROPPED", "PRIORITY", "SYSLOG_IDENTIFIER", "SYSLOG_PID", "UNIT", "OBJECT_SYSTEMD_UNIT",
    "CONTAINER_ID", "CONTAINER_NAME", "CONTAINER_PARTIAL_MESSAGE",
    "_PID", "_COMM", "_SYSTEMD_UNIT", "_STREAM_ID", "_LINE_BREAK", "_BOOT_ID",
)  # fmt: skip
"""What is read here or in `parse.jsonlines`; journalctl adds the cursor and the times."""

MAX_ENTRY = 1 << 20
"""Bytes of an entry that is handed on; a longer one is no line of JSON for the parser."""

_RECENT = 512
_MAX_WAITING = 256  # entries that may come between the pieces of one line; less than _RECENT
_MAX_STREAMS = 16
_CURSOR = re.compile(r"[a-z]=[0-9a-f]+(?:;[a-z]=[0-9a-f]+)+")
_SUPPRESSED = re.compile(r"Suppressed (\d+) messages from ")
_SUPPRESSED_ID = "a596d6fe7bfa4994828e72309e95d61e"  # SD_MESSAGE_JOURNAL_DROPPED of sd-messages.h
_UNIT_FIELDS = ("_SYSTEMD_UNIT", "UNIT", "OBJECT_SYSTEMD_UNIT")


class _Pieces:
    """What came of a line so far; of its text at most MAX_ENTRY bytes."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.text = bytearray()
        self.cut = 0

    def add(self, key: str, text: bytes) -> None:
        room = MAX_ENTRY - len(self.text)
        self.keys.append(key)
        self.text += text[:room]
        self.cut += max(0, len(text) - room)


class Entries:
    """Takes the entries of one follower after the other, hands on each once, and knows the place to go on at.

    The place is a cursor with the marks of the last entries around it. It stays before a line of which only pieces have
    come, so that a reader that goes on there gets it whole; what came after it meanwhile is known by its mark.
    """

    def __init__(self, position: dict[str, Any], *, units: str = "", own_unit: str | None = None, since: float) -> None:
        """`units`: a pattern that an entry's unit has to fit, "" if journalctl has chosen already.

        `own_unit` is not handed on, nor is what this process writes: a report must not be read as a log.
        `since`: unix seconds; entries before it are skipped.
        """
        cursor = position.get("cursor")
        self._cursor = cursor if isinstance(cursor, str) and _CURSOR.fullmatch(cursor) else None
        self._recent = deque((str(mark) for mark in position.get("recent") or ()), _RECENT)
        self._known = set(self._recent)
        self._expected: str | None = None
        self._before: str | None = None  # the cursor before the oldest piece that waits
        self._waited = 0
        self._waiting: dict[tuple[Any, ...], _Pieces] = {}
        self._last: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._units, self._own_unit, self._since = units, own_unit, since * 1e6
        self._lost: dict[str, int] = {}

    def rewind(self) -> str | None:
        """Return the cursor that the next follower begins at (itself included), None if there is none yet."""
        self._cursor = self._before if self._waiting else self._cursor
        self._waiting.clear()
        self._last.clear()
        self._expected = None if self._cursor is None else _mark(self._cursor)
        return self._cursor

    def position(self) -> dict[str, Any]:
        """Return the place after all that was handed on, as JSON."""
        cursor = self._before if self._waiting else self._cursor
        place: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        return place | {"recent": list(self._recent)} if self._recent else place

    def lost(self) -> list[tuple[str, int]]:
        """Return why and how much was lost since the last call."""
        lost, self._lost = list(self._lost.items()), {}
        return lost

    def take(self, row: bytes) -> bytes:
        """Return the lines to hand on, now that this one was read: none, it, or more that had waited."""
        entry = _entry(row)
        if entry is None:
            self._lose("not an entry of the journal", len(row))
            return b""
        mark, before = _mark(entry["__CURSOR"]), self._cursor
        if self._expected not in (None, mark):
            self._lose("journal vacuumed", 0)
        self._expected, self._cursor = None, entry["__CURSOR"]
        if mark in self._known:
            return b""
        released = self._release()
        if not self._wanted(entry):
            self._remember(mark)
            return released
        return released + self._join(entry, row, mark, before)

    def _wanted(self, entry: dict[str, Any]) -> bool:
        units = [entry.get(name) for name in _UNIT_FIELDS]
        if self._units and not any(isinstance(unit, str) and fnmatchcase(unit, self._units) for unit in units):
            return False
        if _suppressed(entry):
            self._lose("suppressed by journald", _suppressed(entry))
            return False
        if self._own_unit is not None and self._own_unit in units[:2]:
            return False
        if _is_own(entry):
            return False
        return entry.get("MESSAGE") not in (None, "") and _microseconds(entry) >= self._since

    def _join(self, entry: dict[str, Any], row: bytes, mark: str, before: str | None) -> bytes:
        stream = (entry.get("_STREAM_ID"), entry.get("_PID"), entry.get("CONTAINER_ID"))
        cut = entry.get("_LINE_BREAK") == "line-max" or entry.get("CONTAINER_PARTIAL_MESSAGE") == "true"
        if cut:
            if not self._waiting:
                self._before, self._waited = before, 0
            self._waiting.setdefault(stream, _Pieces()).add(mark, _bytes(entry["MESSAGE"]))
            self._last[stream] = entry
            return b""
        pieces = self._waiting.pop(stream, None)
        if pieces is not None:
            del self._last[stream]
            pieces.add(mark, _bytes(entry["MESSAGE"]))
            return self._joined(entry, pieces)
        self._remember(mark)
        if len(row) < MAX_ENTRY and not _has_several(entry["MESSAGE"]):
            return row + b"\n"
        return self._encode(entry, _bytes(entry["MESSAGE"]))

    def _release(self) -> bytes:
        """Hand on pieces whose rest does not come: the marks of what came after them are about to be forgotten."""
        self._waited += 1
        if not self._waiting or (self._waited < _MAX_WAITING and len(self._waiting) < _MAX_STREAMS):
            return b""
        waiting, self._waiting = self._waiting, {}
        last, self._last = self._last, {}
        return b"".join(self._joined(last[stream], pieces) for stream, pieces in waiting.items())

    def _joined(self, entry: dict[str, Any], pieces: _Pieces) -> bytes:
        for mark in pieces.keys:
            self._remember(mark)
        return self._encode(entry, bytes(pieces.text), pieces.cut)

    def _encode(self, entry: dict[str, Any], message: bytes, cut: int = 0) -> bytes:
        """Write an entry with another message, of which the end is left out if it gets too long."""
        text = message.decode("utf-8", "replace")
        while True:
            row = json.dumps(entry | {"MESSAGE": text}, ensure_ascii=False).encode() + b"\n"
            if len(row) <= MAX_ENTRY:
                break
            half = text[: max(len(text) // 2, len(text) - (len(row) - MAX_ENTRY))]
            cut, text = cut + len(text) - len(half), half
        if cut:
            self._lose("end of a line over 1 MiB", cut)
        return row

    def _remember(self, mark: str) -> None:
        if len(self._recent) == _RECENT:
            self._known.discard(self._recent[0])
        self._recent.append(mark)
        self._known.add(mark)

    def _lose(self, reason: str, number: int) -> None:
        self._lost[reason] = self._lost.get(reason, 0) + number


def _entry(row: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(row)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("__CURSOR"), str) else None


def _mark(cursor: str) -> str:
    """Shorten a cursor. All of it counts: two like lines at the same microsecond differ in their number only."""
    return blake2b(cursor.encode(), digest_size=8).hexdigest()


def _suppressed(entry: dict[str, Any]) -> int:
    if entry.get("MESSAGE_ID") != _SUPPRESSED_ID and entry.get("SYSLOG_IDENTIFIER") != "systemd-journald":
        return 0
    found = _SUPPRESSED.match(str(entry.get("MESSAGE")))
    return int(found[1]) if found else 0


def _is_own(entry: dict[str, Any]) -> bool:
    """Say whether this process wrote an entry.

    The pid is not enough: in a container ours may be 1, as systemd's is, and a merged journal is of several machines.
    """
    pid = str(os.getpid())
    if entry.get("SYSLOG_IDENTIFIER") == "lmdiag" and entry.get("SYSLOG_PID") == pid:
        return True
    return entry.get("_PID") == pid and entry.get("_COMM") in (None, _own_name())


@cache
def _own_name() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/self/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    return ""


def _microseconds(entry: dict[str, Any]) -> float:
    try:
        return float(entry["__REALTIME_TIMESTAMP"])
    except (KeyError, TypeError, ValueError):
        return float("inf")


def _has_several(message: Any) -> bool:
    """Say whether a message is an array of values, not of bytes: a field that was given more than once."""
    return isinstance(message, list) and not all(isinstance(item, int) for item in message)


def _bytes(message: Any) -> bytes:
    if isinstance(message, list):
        if all(isinstance(item, int) and 0 <= item < 256 for item in message):
            return bytes(message)
        return b"\n".join(_bytes(item) for item in message)
    return b"" if message is None else str(message).encode("utf-8", "replace")
