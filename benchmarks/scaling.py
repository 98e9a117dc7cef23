"""How a scan grows: with the log, from 1 MB to 10 GB, sparse, dense and in a crash loop; and with the pack."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import peers
from benchmarks.logs import GB, MB, delete, log_of, room_for, size_name
from benchmarks.pairs import Paired, median, paired, seconds, spread
from benchmarks.processes import seen
from benchmarks.results import Result, shown, table
from benchmarks.rows import Scanner, cards, flat

SIZES = (1 * MB, 10 * MB, 100 * MB, 1 * GB, 10 * GB)
KEPT = 1 * GB
"""Larger logs are deleted when they have been measured."""
COUNTS = (100, 1_000, 10_000)
KINDS = ("sparse", "dense", "failing", "loop")
_HEADS = ("log", "size", "lmdiag", "MB/s", "against rg", "peak memory")


def sizes(kind: str, largest: int) -> list[int]:
    """Return the sizes that a kind of log is measured in; a crash loop is none of 10 GB."""
    return [size for size in SIZES if size <= largest and room_for(size) and (kind != "loop" or size <= KEPT)]


def points(scanner: Scanner, kind: str, largest: int, pairs: int) -> Iterator[tuple[int, Paired]]:
    """Yield each size with its runs, scans and ripgrep's in turn."""
    for size in sizes(kind, largest):
        log = log_of(kind, size)
        yield size, paired(scanner.scan(str(log)), peers.ripgrep(str(log)), pairs)
        if size > KEPT:
            delete(log)


def by_size(scanner: Scanner, largest: int, pairs: int) -> tuple[str, list[Result]]:
    """Return the table of all kinds and sizes, and how flat the memory is."""
    rows, results = list[list[str]](), list[Result]()
    for kind in KINDS:
        peaks = list[tuple[int, float]]()
        for size, made in points(scanner, kind, largest, pairs):
            peaks.append((size, median(seen(made.first))))
            rows.append(_cells(kind, size, made))
            print(*rows[-1], sep="  ", flush=True)
        results += [flat(kind, peaks)] if kind != "loop" else []
    return table(_HEADS, rows), results


def _cells(kind: str, size: int, made: Paired) -> list[str]:
    taken = seconds(made.first)
    speed = f"{size / MB / taken.median:,.0f}"
    name = "crash loop" if kind == "loop" else kind
    return [
        name,
        size_name(size),
        shown(taken, " s"),
        speed,
        shown(made.ratios, ""),
        shown(spread(seen(made.first)), " MiB"),
    ]


def by_cards(scanner: Scanner, size: int, pairs: int) -> Iterator[Result]:
    """Yield the time of scans with more and more cards, against ten."""
    for row in cards(scanner, size, COUNTS):
        yield row.measure(pairs)
