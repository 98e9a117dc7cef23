"""The page that the benchmarks write: its rows, and that nothing but the part between the markers changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.pairs import Bound, Paired, spread
from benchmarks.processes import Run
from benchmarks.results import BEGIN, END, Result


def taken(*seconds: float) -> tuple[Run, ...]:
    return tuple(Run(value, value, 10 * value) for value in seconds)


def result_of(figure: float, bound: Bound | None = None, unit: str = "") -> Result:
    return Result.of_values("row", "work", "", [figure], unit, bound or Bound(1.0))


def test_a_row_of_the_table_says_whether_its_bound_is_kept() -> None:
    made = Paired(taken(1, 1), taken(2, 2))
    good = Result("row", "work", "rg", made.ratios, "", Bound(0.6), 0.5, made)
    assert good.cells() == ["work", "rg", "1 s", "2 s", "0.5", "≤ 0.6", "kept"]
    assert result_of(40, Bound(32), " MiB").cells()[-3:] == ["40 MiB", "≤ 32 MiB", "**missed**"]
    assert results.shown(spread([1.234, 1.0, 2.0]), " s") == "1.23 s (1 to 2)"


def test_the_page_is_written_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    for text in ("first", "second"):
        results.write_between(page, text)
        assert page.read_text() == f"before\n\n{BEGIN}\n\n{text}\n\n{END}\n\nafter\n"


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_markers_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "performance.md"
    page.write_text(text)
    with pytest.raises(SystemExit):
        results.write_between(page, "new")
    assert page.read_text() == text


def test_the_page_has_its_markers_and_names_the_machine() -> None:
    page = (Path(__file__).parents[1] / "docs" / "performance.md").read_text()
    assert page.count(BEGIN) == page.count(END) == 1
    assert {"processor", "Python", "lmdiag"} <= results.machine().keys()
