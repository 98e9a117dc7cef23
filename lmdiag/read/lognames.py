"""Which files of a directory are logs: by their name, then by their first bytes."""

from __future__ import annotations

import codecs
import os
import stat

from lmdiag.read.decoders import MAGIC_SIZE, sniff
from lmdiag.read.rotation import split_rotation

_EXTENSIONS = frozenset({"", ".log", ".txt", ".out", ".err", ".stderr", ".stdout", ".jsonl", ".ndjson", ".json"})
_HEAD = 1 << 13

_KINDS = (
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def unfit_name(path: str, status: os.stat_result) -> str | None:
    """Say why a name is not that of a log or of a directory to enter, or None if it is."""
    name = os.path.basename(path)
    if name.startswith("."):
        return "hidden"
    extension = os.path.splitext(split_rotation(name)[0])[1].lower()
    # What begins with a digit is no extension but a part of the name: node-10.0.0.1, vllm-0.33.0.
    log = stat.S_ISDIR(status.st_mode) or extension in _EXTENSIONS or extension[1].isdigit()
    return None if log else "not a log by its name"


def unfit_kind(status: os.stat_result) -> str | None:
    """Say why an entry is nothing that a scan of many files should open, or None."""
    return next((kind for test, kind in _KINDS if test(status.st_mode)), None)


def unfit_content(path: str) -> str | None:
    """Say why a file's first 8 KiB are not those of a log, or None if they are; raises OSError."""
    with open(path, "rb", buffering=0) as file:
        head = file.read(_HEAD)
    if not head:
        return "empty"
    if sniff(head[:MAGIC_SIZE]) or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    if b"\0" in head.strip(b"\0"):  # a log rotated by copytruncate begins with a hole: NULs before its first line
        return "binary"
    if split_rotation(path)[0].lower().endswith(".json") and not _is_json_log(head):
        return "JSON, but not one object a line"
    return None


def _is_json_log(head: bytes) -> bool:
    first, newline, _ = head.lstrip().partition(b"\n")
    first = first.rstrip()
    return first.startswith(b"{") and len(first) > 1 and (first.endswith(b"}") or not newline)
