"""Tells which quiet records show whether the engine gets on with its work, and lets those of a stall through.

What vLLM says of itself (loggers.py of V1, metrics.py and llm_engine.py of V0, shm_broadcast.py), in every wording since 0.4.
"""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.lazy_pattern import lazy

# Zero tokens in both directions and somebody waiting for them; "Deferred", "KV fetch" and the cache's usage come behind.
_ZERO = (
    r"0\.0 tokens/s, Avg generation throughput: 0\.0 tokens/s, "
    r"Running: (?!0 reqs, (?:Swapped: 0 reqs, )?(?:Waiting|Pending): 0 reqs)"
)
MAY_BE_STALLED = rf"A.{{22}}{_ZERO}"
"""How a statistics line of a stalled engine begins, for a glance: each line of a healthy log is tried."""
_STALLED = lazy(rf"(?:Engine \d+: |\d+ Engines Aggregated: )?Avg prompt throughput: {_ZERO}")
_STATISTICS = lazy(
    r"(?:Engine (?P<engine>\d+): |(?P<all>\d+ Engines Aggregated: ))?Avg prompt throughput: [\d.]+ tokens/s, "
    r"Avg generation throughput: [\d.]+ tokens/s, Running: \d+ reqs, (?:Swapped: \d+ reqs, )?(?:Waiting|Pending): \d+ reqs"
)
# "found" and "in" stand together up to 0.10; 0.6 says "No available block found".
_BROADCAST = lazy(r"No available (?:shared memory broadcast )?block found ?in (?P<interval>\d+) seconds?\b")
_ARRIVAL = lazy(r"Added request \S")
_UP = "Application startup complete"
_BEGINNINGS = ("Engine ", "Avg prompt", "No available ", "Added req", _UP)
_RANK = lazy(r"_DP(\d+)")
_MAX_STALLED = 4096

STATISTICS_FILE = lazy(r"(?:.*[/.])?(?:loggers|metrics|llm_engine)(?:\.py)?$")
BROADCAST_FILE = lazy(r"(?:.*[/.])?shm_broadcast(?:\.py)?$")
ARRIVAL_FILE = lazy(r"(?:.*[/.])?(?:async_llm|engine|async_llm_engine)(?:\.py)?$")
ALL = "all"
"""The engine of a line that tells of all of them together."""


_STALLS = frozenset({"stalled", "broadcast"})


class Sign(NamedTuple):
    """What a line tells of an engine's progress."""

    kind: str
    """stalled, moving (or idle), broadcast (a worker does not take or answer a message) or arrival (of a request)."""
    engine: str
    """Its data-parallel rank, or ALL."""
    interval: int = 0
    """Seconds after which a broadcast is told."""


def read_sign(file: str, text: str, process: str | None) -> Sign | None:
    """Return what one line of a record tells; `file` is where it was logged, so that no client's text counts."""
    if not text.startswith(_BEGINNINGS) and " Engines Aggregated: " not in text[:30]:
        return None
    if (hit := _STATISTICS.match(text)) and STATISTICS_FILE.match(file):
        engine = ALL if hit["all"] else str(int(hit["engine"] or 0))
        return Sign("stalled" if _STALLED.match(text) else "moving", engine)
    if (hit := _BROADCAST.match(text)) and BROADCAST_FILE.match(file) and "Worker" not in (process or ""):
        rank = _RANK.search(process or "")  # a worker that waits may just have nothing to do
        return Sign("broadcast", str(int(rank[1])) if rank else "0", int(hit["interval"]))
    if _ARRIVAL.match(text) and ARRIVAL_FILE.match(file):
        return Sign("arrival", ALL)
    return Sign("moving", ALL) if not file and text.startswith(_UP) else None


def shows_stall(file: str, text: str, process: str | None) -> bool:
    """Say whether a quiet record is a sign of a stall."""
    sign = read_sign(file, text, process)
    return sign is not None and sign.kind in _STALLS


class Progress:
    """Remembers which engines have stopped, so that only then the lines of one that works are of interest."""

    def __init__(self) -> None:
        self.stopped: set[tuple[str, str]] = set()
        """(stream, engine); while there is one, the lines of a working engine matter too."""

    def wants(self, stream: str, file: str, text: str, process: str | None) -> bool:
        """Say whether a quiet record is a sign of a stall, or the first one of its end."""
        sign = read_sign(file, text, process)
        if sign is None:
            return False
        if sign.kind in _STALLS:
            if len(self.stopped) < _MAX_STALLED:
                self.stopped.add((stream, sign.engine))
            return True
        if not self.stopped or sign.kind == "arrival":
            return bool(self.stopped)
        ended = {where for where in self.stopped if where[0] == stream and sign.engine in (where[1], ALL)}
        self.stopped -= ended
        return bool(ended or self.stopped)
