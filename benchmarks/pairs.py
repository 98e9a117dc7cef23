"""Two commands in turn, and the ratio of each pair: what stays when the machine's speed drifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.processes import Command, Run, run


def median(values: Sequence[float]) -> float:
    """Return the median. The module `statistics` would cost this process memory that its children are charged."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Spread(NamedTuple):
    """The median of some values, and between which they lie."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Return the median of values and their spread. There is at least one."""
    return Spread(median(values), min(values), max(values))


class Paired(NamedTuple):
    """What two commands took, pair by pair."""

    first: tuple[Run, ...]
    second: tuple[Run, ...]

    @property
    def ratios(self) -> Spread:
        """First against second, of each pair."""
        return spread([one.seconds / other.seconds for one, other in zip(self.first, self.second, strict=True)])

    @property
    def inverse(self) -> Spread:
        """Second against first, of each pair: how many times slower it is."""
        return spread([other.seconds / one.seconds for one, other in zip(self.first, self.second, strict=True)])

    @property
    def ratio_of_medians(self) -> float:
        """First against second by their medians; one slow run moves it less than a ratio of a pair."""
        return seconds(self.first).median / seconds(self.second).median


def seconds(runs: Sequence[Run]) -> Spread:
    """Return the wall time of runs."""
    return spread([one.seconds for one in runs])


def paired(first: Command, second: Command, pairs: int, *, take: Callable[[Command], Run] = run) -> Paired:
    """Run both in turn, so many times each, after one of each that is not counted."""
    for command in (first, second):
        take(command)
    made = [(take(first), take(second)) for _ in range(pairs)]
    return Paired(tuple(one for one, _ in made), tuple(other for _, other in made))


class Bound(NamedTuple):
    """What a figure must not exceed, or must reach."""

    value: float
    at_least: bool = False

    def holds(self, figure: float) -> bool:
        """Whether a figure keeps it."""
        return figure >= self.value if self.at_least else figure <= self.value

    def loosened(self, factor: float) -> Bound:
        """Return the bound that a figure may be worse by a factor than this one."""
        return self._replace(value=self.value / factor if self.at_least else self.value * factor)

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:.3g}"
