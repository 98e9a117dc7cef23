"""The ceilings that CI holds the quick rows to: looser than what was measured, tight enough for a regression by half.

A row is judged by the ratio of the medians; one that is over its ceiling is measured once more, and is broken only if it is over
again. `--set-ceilings` writes benchmarks/ceilings.json anew, from figures of the day: do so when a scan became faster.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rows
from benchmarks.logs import MB
from benchmarks.pairs import Bound
from benchmarks.results import Result, say
from benchmarks.rows import Row, Scanner

FILE = Path(__file__).with_name("ceilings.json")
LOOSER = {"": 1.4, " MiB": 1.15}
"""By what factor a ceiling is looser than what was measured, by the unit of the figure. Memory hardly varies."""
SIZE = 100 * MB
LARGE = 1000 * MB
"""Of the sparse log: in a smaller one the start is most of the time, and hides what became of the rest."""


class Quick(NamedTuple):
    """Something that CI measures."""

    name: str
    measure: Callable[[int], Result]
    """Takes the number of pairs."""


def quick(scanner: Scanner) -> list[Quick]:
    """Return what CI measures, without what needs a program that is not installed."""
    found = [Quick(row.name, row.measure) for row in _rows(scanner) if shutil.which(row.other.argv[0])]
    found += [Quick(f"{name}-dense", partial(_peak, scanner, name)) for name in ("memory", "flat")]
    return found


def _peak(scanner: Scanner, name: str, pairs: int) -> Result:
    return next(result for result in rows.peaks(scanner, "dense", SIZE, pairs) if result.name == f"{name}-dense")


def _rows(scanner: Scanner) -> Iterator[Row]:
    yield from rows.searches(scanner, "sparse", LARGE)
    yield from rows.searches(scanner, "dense", SIZE)
    yield from rows.starts(scanner)
    yield rows.packed(scanner, SIZE)
    yield from rows.cards(scanner, SIZE)


def read(path: Path = FILE) -> dict[str, float]:
    """Return the ceiling of each row that has one."""
    found: dict[str, float] = json.loads(path.read_bytes())
    return found


def write(quicks: Sequence[Quick], pairs: int, path: Path = FILE) -> int:
    """Measure, and write the ceilings; those of rows that cannot be measured here stay. Returns 0."""
    found = read(path) if path.exists() else {}
    for one in quicks:
        result = one.measure(pairs)
        say(result)
        found[one.name] = round(Bound(result.steady).loosened(LOOSER[result.unit]).value, 3)
    path.write_text(json.dumps(dict(sorted(found.items())), indent=2) + "\n", encoding="utf-8")
    return 0


def check(quicks: Sequence[Quick], pairs: int, known: Mapping[str, float] | None = None) -> int:
    """Measure and compare. Returns 1 if a row is over its ceiling twice, or if nothing could be compared."""
    wanted = read() if known is None else known
    compared = [one for one in quicks if one.name in wanted]
    broken = [one.name for one in compared if not _holds(one, Bound(wanted[one.name]), pairs)]
    print(f"{len(compared)} rows, over their ceiling: {', '.join(broken) or 'none'}")
    return int(bool(broken) or not compared)


def _holds(one: Quick, ceiling: Bound, pairs: int) -> bool:
    for more in ("; once more", ""):
        result = one.measure(pairs)
        good = ceiling.holds(result.steady)
        print(
            f"{one.name}: {result.steady:.3g}{result.unit}, ceiling {ceiling}: {'kept' if good else f'over it{more}'}",
            flush=True,
        )
        if good:
            return True
    return False
