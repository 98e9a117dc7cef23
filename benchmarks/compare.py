"""What a scan costs against other programs, and how it grows; the tables of docs/performance.md.

    python -m benchmarks.compare                  all of it; writes the page
    python -m benchmarks.compare --only sparse-rg gz some rows; writes nothing
    python -m benchmarks.compare --ci             the quick rows against their ceilings; exit code 1 if one is broken
    python -m benchmarks.compare --set-ceilings   the quick rows; writes the ceilings

Whole processes on page-cached files, the two commands in turn; the seconds depend on the machine, the ratios hardly.
This process stays small, since a child's peak memory is counted from its parent's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import ceilings, peers, results, rows, scaling
from benchmarks.logs import GB, MB
from benchmarks.pairs import Bound
from benchmarks.processes import Command, output_of
from benchmarks.results import Result, say
from benchmarks.rows import Row, Scanner
from benchmarks.truth import found_table

PAGE = Path("docs/performance.md")
FLOOD = Bound(1.5)


def all_rows(scanner: Scanner) -> Iterator[Row]:
    """Yield the rows of the first table."""
    for kind in rows.SEARCHED:
        yield from rows.searches(scanner, kind, 1 * GB)
    yield from rows.others(scanner, 100 * MB)
    yield from rows.starts(scanner)
    yield rows.packed(scanner, 100 * MB)


def flood(pairs: int) -> Iterator[Result]:
    """Measure what the daemon takes of a core at 50,000 lines a second."""
    lines = output_of(Command((sys.executable, "-m", "benchmarks.flood", "--rounds", str(pairs)))).split(b"\n")
    percents, rates = zip(*(map(float, line.split()) for line in lines if line), strict=True)
    what = f"watch at {min(rates):,.0f} lines/s, of a core"
    yield Result.of_values("watch", what, "", percents, " %", FLOOD)


def figures(scanner: Scanner, pairs: int) -> list[tuple[str, Callable[[], Iterator[Result]]]]:
    """Return what else is measured for the first table: the name, and what measures it."""
    return [
        ("memory", lambda: rows.peaks(scanner, "sparse", 1 * GB, pairs)),
        ("memory", lambda: rows.peaks(scanner, "dense", 1 * GB, pairs)),
        ("watch", lambda: flood(pairs)),
        ("cards", lambda: scaling.by_cards(scanner, 1 * GB, pairs)),
    ]


def measured(scanner: Scanner, pairs: int, only: Sequence[str]) -> list[Result]:
    """Measure the rows of the first table, or those that are named, and print each."""
    found: list[Result] = []
    for row in all_rows(scanner):
        if not only or row.name in only:
            found.append(row.measure(pairs))
            say(found[-1])
    for name, take in figures(scanner, pairs):
        for result in take() if not only or name in only else ():
            found.append(result)
            say(result)
    return found


def whole(scanner: Scanner, pairs: int, largest: int) -> str:
    """Measure everything; return the text of the page."""
    first = measured(scanner, pairs, ())
    grown, flat = scaling.by_size(scanner, largest, pairs)
    for result in flat:
        say(result)
    about = results.facts(results.machine() | {"pairs": str(pairs)} | peers.versions())
    tables = results.results_table([*first, *flat])
    return "\n\n".join((about, tables, "### What the logs hold", found_table(scanner), "### Growth", grown))


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=7, help="runs of each command (default: %(default)s)")
    options.add_argument(
        "--only", nargs="+", default=(), metavar="ROW", help="sparse-rg, gz, lnav, memory, watch, cards, …"
    )
    options.add_argument(
        "--largest", type=float, default=10 * GB, help="bytes of the largest log (default: %(default)g)"
    )
    options.add_argument(
        "--program", default=str(Path(sys.executable).with_name("lmdiag")), help="the lmdiag to measure"
    )
    options.add_argument("--page", type=Path, default=PAGE, help="the page to write (default: %(default)s)")
    options.add_argument("--ci", action="store_true", help="compare the quick rows with their ceilings")
    options.add_argument("--set-ceilings", action="store_true", help="write the ceilings that the quick rows give")
    return options


def main() -> int:
    """Measure and print, and write the page; returns 1 if a ceiling is broken."""
    chosen = _options().parse_args()
    scanner = Scanner(chosen.program, sys.executable)
    for name, version in peers.versions().items():
        if not version:
            print(f"{name}: not installed, its rows are skipped")
    if chosen.ci:
        return ceilings.check(ceilings.quick(scanner), chosen.pairs)
    if chosen.set_ceilings:
        return ceilings.write(ceilings.quick(scanner), chosen.pairs)
    if chosen.only:
        return 0 if measured(scanner, chosen.pairs, chosen.only) else 2
    results.write_between(chosen.page, whole(scanner, chosen.pairs, int(chosen.largest)))
    print(f"{chosen.page} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
