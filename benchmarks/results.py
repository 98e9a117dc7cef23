"""What was measured, and the tables that show it."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.pairs import Bound, Paired, Spread, seconds, spread

BEGIN, END = "<!-- bench: written by `make bench` -->", "<!-- /bench -->"


class Result(NamedTuple):
    """A figure that a row of a table shows."""

    name: str
    what: str
    against: str
    """The other program; "" for a figure of ours alone."""
    figure: Spread
    unit: str
    """Behind the figure; "" for a ratio."""
    bound: Bound | None
    steady: float
    """What a ceiling judges: the ratio of the medians."""
    made: Paired | None = None

    @staticmethod
    def of_values(name: str, what: str, against: str, values: Sequence[float], unit: str, bound: Bound) -> Result:
        """Return the result of values that are no times of pairs."""
        found = spread(values)
        return Result(name, what, against, found, unit, bound, found.median)

    @property
    def kept(self) -> bool:
        """Whether the median keeps the bound; True where there is none."""
        return self.bound is None or self.bound.holds(self.figure.median)

    def cells(self) -> list[str]:
        """Return the cells of its row."""
        times = [shown(seconds(runs), " s") for runs in self.made] if self.made else ["", ""]
        verdict = "" if self.bound is None else "kept" if self.kept else "**missed**"
        bound = "" if self.bound is None else f"{self.bound}{self.unit}"
        return [self.what, self.against, *times, shown(self.figure, self.unit), bound, verdict]


def shown(values: Spread, unit: str) -> str:
    """Return a median and its spread: 1.07 (1.02 to 1.15)."""
    if values.least == values.most:
        return f"{values.median:.3g}{unit}"
    return f"{values.median:.3g}{unit} ({values.least:.3g} to {values.most:.3g})"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


HEADS = ("work", "against", "lmdiag", "the other", "ratio, or figure", "bound", "")


def results_table(results: Sequence[Result]) -> str:
    """Return the table of results."""
    return table(HEADS, [result.cells() for result in results])


def machine() -> dict[str, str]:
    """Return what ran the benchmarks: processor, cores, memory, kernel, Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "lmdiag": _installed(),
        "day": time.strftime("%Y-%m-%d"),
    }


def _installed() -> str:
    """The version of lmdiag in this environment, and how it is installed: an editable one slows an empty Python down."""
    import site

    from lmdiag import __version__

    editable = [path for place in site.getsitepackages() for path in Path(place).glob("__editable__.lmdiag*.pth")]
    return f"{__version__}{' (editable: every start of Python loads its finder too)' if editable else ''}"


def facts(found: Mapping[str, str]) -> str:
    """Return the machine and the versions of the peers, as a list."""
    return "\n".join(f"- {name}: {value or 'not installed, skipped'}" for name, value in found.items())


def write_between(path: Path, text: str) -> None:
    """Put a text between the markers of a file. Raises SystemExit if they are not there, each once and in order."""
    page = path.read_text(encoding="utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise SystemExit(f"{path}: the markers {BEGIN} and {END} are missing; nothing is written")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def say(result: Result) -> None:
    """Print a result as soon as it is known."""
    what, against, _, _, figure, bound, verdict = result.cells()
    print(f"{what}{f' / {against}' if against else ''}: {figure}{f', {bound} {verdict}' if bound else ''}")
    sys.stdout.flush()
