from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.settings.amounts import Columns, Count, Duration, Number, Size, WrongValueError

LONG = Duration(0.0, 1e9)
BIG = Size(0, 1 << 49)


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [("1s", 1), ("500ms", 0.5), ("100ms", 0.1), ("30m", 1800), ("24h", 86400), ("7d", 604800), ("1.5h", 5400), ("2 s", 2), (3, 3), (0.25, 0.25), ("4", 4), ("10S", 10), ("0s", 0)],
)  # fmt: skip
def test_durations(raw: object, seconds: float) -> None:
    assert LONG.parse(raw) == seconds


@pytest.mark.parametrize(
    ("raw", "size"),
    [("64MiB", 64 << 20), ("1GB", 10**9), ("1KiB", 1024), ("1kB", 1000), ("2 TiB", 2 << 40), (512, 512), ("7", 7), ("9B", 9), ("1.5KiB", 1536)],
)  # fmt: skip
def test_sizes(raw: object, size: int) -> None:
    parsed = BIG.parse(raw)
    assert (parsed, type(parsed)) == (size, int)


@given(st.integers(0, 10**14).map(lambda micro: micro / 10**6))
def test_a_duration_reads_back(seconds: float) -> None:
    assert LONG.parse(LONG.text(seconds)) == seconds


@given(st.integers(0, 1 << 49) | st.integers(0, 1 << 20).map(lambda kib: kib << 10))
def test_a_size_reads_back(size: int) -> None:
    assert BIG.parse(BIG.text(size)) == size


@given(st.integers(0, 64 * 1000).map(lambda thousandths: thousandths / 1000))
def test_a_number_reads_back(number: float) -> None:
    kind = Number(0.0, 64.0)
    assert kind.parse(kind.text(number)) == number


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.1, "100ms"), (1, "1s"), (90, "90s"), (3600, "1h"), (86400, "1d"), (0.0005, "0.0005s"), (0, "0s")]
)
def test_a_duration_is_written_as_a_person_would(seconds: float, text: str) -> None:
    assert LONG.text(seconds) == text


@given(st.text() | st.floats() | st.integers() | st.booleans() | st.none() | st.lists(st.integers()) | st.datetimes())
def test_any_value_is_read_or_refused_with_a_reason(raw: object) -> None:
    for kind in (Duration(0.0, 60.0), Size(1, 1 << 40), Number(0.01, 64.0), Columns(), Count(0, 9)):
        try:
            value, told = kind.parse(raw), ""
        except WrongValueError as error:
            value, told = kind.least, str(error)
        assert kind.least <= value <= kind.most
        assert len(told) < 250


WRONG = ["", "s", "1 week", "-1s", "1h30m", "١s", "1e3s", True, None, [], float("nan"), float("inf"), 10**5000, "61s", -1]


@pytest.mark.parametrize("raw", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_no_duration_is_refused(raw: object) -> None:
    with pytest.raises(WrongValueError):
        Duration(0.0, 60.0).parse(raw)


@pytest.mark.parametrize("raw", ["64M", "64Mib/s", "", "1,5GB", True, float("nan"), 1 << 50, -5])
def test_what_is_no_size_is_refused(raw: object) -> None:
    with pytest.raises(WrongValueError):
        Size(1, 1 << 40).parse(raw)


def test_bounds_belong_to_the_range_and_are_told() -> None:
    kind = Duration(0.01, 60.0)
    assert (kind.parse("10ms"), kind.parse("1m")) == (0.01, 60)
    with pytest.raises(WrongValueError, match=r'"9ms" is out of range; write a value from 10ms to 1m'):
        kind.parse("9ms")


def test_counts_are_whole() -> None:
    assert [Count(0, 9).parse(raw) for raw in (0, "9", 2.0)] == [0, 9, 2]
    assert Count(0, 9).text(9) == "9"
    for raw in (-1, 10, "1.5", 0.5, "1k", True, float("nan")):
        with pytest.raises(WrongValueError):
            Count(0, 9).parse(raw)


def test_columns_are_whole() -> None:
    assert (Columns().parse("80"), Columns().text(None)) == (80, "the terminal's")
    with pytest.raises(WrongValueError, match="whole"):
        Columns().parse("80.5")
