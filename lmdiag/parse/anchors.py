"""The words without one of which a line changes nothing, once a server has come up: the first stage looks for them in bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

Match: TypeAlias = tuple[int, int, int]
"""Which anchor, and where it begins and ends, in bytes."""

ANCHORS = (
    "hutting down", "CRITICAL", "hutdown", "oom-kill", "stderr P", ": 0.0 tokens/s, Running", "Aborted", "vLLM server v",
    "Traceback", "=killed", "ERROR", "Error", '\n{"', 'File "', "Bus error", "vLLM API server v",
    "error: ", "Seg", "stdout P", "*** SIG", "LMCache", "Illegal inst", "Killed", "LLM engine ",
    "hrowing an instance", "=dumped", "█  version", "gs: {", "shm_broadcast", "Exception", "Application startup",
)  # fmt: skip
"""What stands in an error's lines; in a server's first lines and its last ones; in a stall; in what the C library, the shell,
the kernel and systemd say of a process that died; in LMCache's records, whose further lines have no prefix; and in what
carries a line cut in two or in other words: CRI's pieces, JSON.

At most 32, of three bytes at least: the search is Teddy (Rust's aho-corasick), which looks at three bytes of 32 positions at
once, in eight buckets. A bucket takes every eighth anchor, and shares the bytes of all of them: this order, which
`python -m benchmarks.anchors` found, makes it five times as fast as an unlucky one.
"""


@cache
def finder() -> Callable[[bytes | bytearray | memoryview], list[Match]]:
    """Return the search for all anchors, leftmost first; 16 GB/s, since it looks for all of them at once (Teddy)."""
    from ahocorasick_rs import BytesAhoCorasick, MatchKind

    search = BytesAhoCorasick([anchor.encode() for anchor in ANCHORS], matchkind=MatchKind.LeftmostFirst)
    return search.find_matches_as_indexes


def holds_anchor(text: str) -> bool:
    """Whether a line holds one. For single lines, which are few; it needs no import."""
    return text.startswith('{"') or any(anchor in text for anchor in ANCHORS)
