"""Finds an order of the anchors with which their search is fast, and times it against the order that is used.

Teddy (packed/teddy in Rust's aho-corasick) sorts needles into eight buckets, by their number; needles whose first three bytes
have equal low halves share one. It compares the halves of bytes, for all needles of a bucket together, so that an unlucky
bucket lets through three bytes that begin none of its needles, and each of these costs a look. Here the needles change places
as long as fewer are let through, of the bytes of sample texts.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from lmdiag.parse.anchors import ANCHORS

BUCKETS, FIRST = 8, 3
STEPS = 3000


def let_through(needles: Sequence[bytes], grams: list[tuple[bytes, int]]) -> int:
    """Count the candidates among three-byte sequences of a text, given with their numbers."""
    low = [[0] * 16 for _ in range(FIRST)]
    high = [[0] * 16 for _ in range(FIRST)]
    buckets: dict[bytes, int] = {}
    for number, needle in enumerate(needles):
        halves = bytes(byte & 15 for byte in needle[:FIRST])
        bit = 1 << buckets.setdefault(halves, BUCKETS - 1 - number % BUCKETS)
        for place in range(FIRST):
            low[place][needle[place] & 15] |= bit
            high[place][needle[place] >> 4] |= bit
    tables = [[low[place][byte & 15] & high[place][byte >> 4] for byte in range(256)] for place in range(FIRST)]
    first, second, third = tables
    return sum(count * (first[a] & second[b] & third[c]).bit_count() for (a, b, c), count in grams)


def order(needles: Sequence[bytes], sample: bytes, seed: int) -> tuple[int, list[bytes]]:
    """Return the candidates and the order of the best that was found from one start."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, no secret
    grams = Counter(sample[at : at + FIRST] for at in range(len(sample) - FIRST)).most_common(20_000)
    best = chance.sample(list(needles), len(needles))
    least = let_through(best, grams)
    for _ in range(STEPS):
        one, other = chance.randrange(len(best)), chance.randrange(len(best))
        best[one], best[other] = best[other], best[one]
        if (found := let_through(best, grams)) <= least:
            least = found
        else:
            best[one], best[other] = best[other], best[one]
    return least, best


def speed(needles: Sequence[bytes], sample: bytes) -> float:
    """Return GB/s, the best of many runs."""
    search = BytesAhoCorasick(list(needles), matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes
    times = []
    for _ in range(30):
        start = time.perf_counter()
        search(sample)
        times.append(time.perf_counter() - start)
    return len(sample) / min(times) / 1e9


def main() -> None:
    """Print the best order for the logs that are named, and both speeds."""
    sample = b"".join(Path(name).read_bytes()[: 4 << 20] for name in sys.argv[1:])
    used = [anchor.encode() for anchor in ANCHORS]
    _, best = min(order(used, sample, seed) for seed in range(4))
    print(*(repr(needle.decode()) for needle in best), sep=", ")
    print(f"the order in use {speed(used, sample):.1f} GB/s, this one {speed(best, sample):.1f} GB/s")


if __name__ == "__main__":
    main()
