"""The ceilings of CI: what is over one is measured again; what became slower by half is seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import ceilings
from benchmarks.ceilings import Quick
from benchmarks.pairs import Bound
from benchmarks.results import Result


def scripted(values: Sequence[float], unit: str = "") -> tuple[Quick, list[int]]:
    """Something to measure that gives these figures, one after the other; and the pairs that it was asked for."""
    left, asked = iter(values), list[int]()

    def measure(pairs: int) -> Result:
        asked.append(pairs)
        return Result.of_values("row", "work", "", [next(left)], unit, Bound(1.0))

    return Quick("row", measure), asked


@pytest.mark.parametrize(
    ("figures", "code", "measured"), [([1.0], 0, 1), ([1.4], 0, 1), ([1.5, 1.3], 0, 2), ([1.5, 1.5], 1, 2)]
)
def test_a_row_over_its_ceiling_is_measured_once_more(figures: list[float], code: int, measured: int) -> None:
    one, asked = scripted(figures)
    assert ceilings.check([one], 7, {"row": 1.4}) == code
    assert asked == [7] * measured


def test_nothing_to_compare_is_no_success() -> None:
    one, asked = scripted([1.0])
    assert ceilings.check([one], 7, {"another": 1.4}) == 1
    assert asked == []


def test_written_ceilings_let_today_pass_and_a_regression_by_half_not(tmp_path: Path) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text('{"of a program that is not here": 3.0}')
    ceilings.write([scripted([2.0])[0], Quick("memory", scripted([20.0], " MiB")[0].measure)], 7, path)
    assert ceilings.read(path) == {"memory": 23.0, "of a program that is not here": 3.0, "row": 2.8}
    known = ceilings.read(path)
    assert ceilings.check([scripted([2.0])[0]], 7, known) == 0
    assert ceilings.check([scripted([3.0, 3.0])[0]], 7, known) == 1


def test_the_shipped_ceilings_are_of_rows_that_are_measured() -> None:
    names = {"sparse-rg", "sparse-grep", "dense-rg", "dense-grep", "gz", "cards-10000", "memory-dense", "flat-dense"}
    names |= {f"start-{kind}-{form}" for kind in ("sparse", "loop") for form in ("jsonl", "text")}
    assert set(ceilings.read()) <= names


def test_ceilings_are_json_that_a_person_can_read() -> None:
    text = ceilings.FILE.read_text()
    assert text == json.dumps(dict(sorted(json.loads(text).items())), indent=2) + "\n"
