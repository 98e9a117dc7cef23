"""What is compared with what, and the bound of each: rows of the table, from logs of a size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import peers
from benchmarks.logs import KB, MB, gzip_of, log_of, size_name
from benchmarks.packs import environment, pack_of
from benchmarks.pairs import Bound, paired
from benchmarks.processes import Command, seen
from benchmarks.results import Result


class Row(NamedTuple):
    """Two commands on the same log."""

    name: str
    """Names its ceiling."""
    what: str
    against: str
    ours: Command
    other: Command
    bound: Bound | None = None

    def measure(self, pairs: int) -> Result:
        """Run both in turn. The figure is what the bound is about: how many times slower one of them is."""
        made = paired(self.ours, self.other, pairs)
        slower = self.bound is not None and self.bound.at_least
        steady = made.ratio_of_medians
        figure, steady = (made.inverse, 1 / steady) if slower else (made.ratios, steady)
        return Result(self.name, self.what, self.against, figure, "", self.bound, steady, made)


class Scanner(NamedTuple):
    """The lmdiag that is measured, and the interpreter that runs it."""

    program: str
    python: str

    def scan(self, log: str, *flags: str) -> Command:
        """Return a scan of a log."""
        return Command((self.program, "scan", "--exit-zero", *flags, log))

    def with_cards(self, count: int, log: str) -> Command:
        """Return a scan with a pack of so many cards."""
        command = self.scan(log, "--format", "jsonl")
        return command._replace(environment=environment(pack_of(count, self.python)))


SEARCHED = {"sparse": 1.1, "dense": 2.5, "failing": None}
"""Kinds of logs that are compared with programs that only search, and how many times their time a scan may take."""


def searches(scanner: Scanner, kind: str, size: int) -> Iterator[Row]:
    """Yield scans of a log of a kind against programs that only search it."""
    log, most = str(log_of(kind, size)), SEARCHED[kind]
    ours, what = scanner.scan(log), f"{kind} log of {size_name(size)}"
    yield Row(f"{kind}-rg", what, "rg", ours, peers.ripgrep(log), Bound(most) if most else None)
    yield Row(f"{kind}-grep", what, "grep", ours, peers.grep(log))


def others(scanner: Scanner, size: int) -> Iterator[Row]:
    """Yield a scan of a dense log against each program that is installed and looks for patterns in logs."""
    for peer in peers.PEERS:
        if peer.installed:
            log = str(log_of("dense", size))
            what = f"dense log of {size_name(size)}, two patterns"
            yield Row(peer.name, what, peer.name, scanner.scan(log), peer.command(log), peer.bound)


def starts(scanner: Scanner) -> Iterator[Row]:
    """Yield scans of a log of 20 KB, of a server that serves and of one that failed, against an empty Python."""
    empty = Command((scanner.python, "-c", "pass"))
    for kind, what in (("sparse", "nothing found"), ("loop", "a failed start")):
        log = str(log_of(kind, 20 * KB))
        for form, bound in (("jsonl", 4.0), ("text", 7.0)):
            title = f"log of 20 KB, {what}, {form}"
            yield Row(
                f"start-{kind}-{form}",
                title,
                "python -c pass",
                scanner.scan(log, "--format", form),
                empty,
                Bound(bound),
            )


def packed(scanner: Scanner, size: int) -> Row:
    """Return a scan of a .gz against its unpacking by gzip."""
    log = str(gzip_of(log_of("sparse", size)))
    return Row(
        "gz", f"sparse log of {size_name(size)} as .gz", "gzip -dc", scanner.scan(log), peers.gunzip(log), Bound(0.5)
    )


def cards(scanner: Scanner, size: int, counts: tuple[int, ...] = (10_000,)) -> Iterator[Row]:
    """Yield scans of a dense log with packs of so many cards against one of ten."""
    log = str(log_of("dense", size))
    few = scanner.with_cards(10, log)
    for count in counts:
        many, bound = scanner.with_cards(count, log), Bound(1.05) if count == 10_000 else None
        yield Row(f"cards-{count}", f"dense log of {size_name(size)}, {count:,} cards", "10 cards", many, few, bound)


def memory(scanner: Scanner, kind: str, small: int, large: int) -> tuple[Command, Command]:
    """Return the scans of a large and of a small log of a kind, whose peaks are compared."""
    return scanner.scan(str(log_of(kind, large))), scanner.scan(str(log_of(kind, small)))


def peaks(scanner: Scanner, kind: str, large: int, pairs: int, *, small: int = 10 * MB) -> Iterator[Result]:
    """Measure the peak memory on a large log, and what of it is its size: against a small one."""
    made = paired(*memory(scanner, kind, small, large), pairs)
    first, second = map(seen, made)
    what = f"peak memory, {kind} log of {size_name(large)}"
    yield Result.of_values(f"memory-{kind}", what, "", first, " MiB", Bound(32))
    ratios = [one / other for one, other in zip(first, second, strict=True)]
    yield Result.of_values(f"flat-{kind}", what, f"{size_name(small)}", ratios, "", Bound(1.1))


def flat(kind: str, points: Sequence[tuple[int, float]]) -> Result:
    """Return how far the peaks of scans of all sizes lie apart, from 10 MB on: the largest against the smallest."""
    found = [peak for size, peak in points if size >= 10 * MB]
    what = f"peak memory, {kind} logs of {size_name(10 * MB)} to {size_name(points[-1][0])}"
    return Result.of_values(f"flat-{kind}", what, "", [max(found) / min(found)], "", Bound(1.1))
