"""Moments as a person names them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from lmdiag.errors import UsageError
from lmdiag.read.moments import local_text, newest_year, read_duration, read_when, unix_time


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


NOW = 1_796_300_000.0
"""2026-12-03 13:13:20 in Central Europe."""


@pytest.mark.parametrize(("text", "local"), [
    ("2026-12-01 02:00", "2026-12-01 02:00:00"), ("2026-12-01T02:00:09", "2026-12-01 02:00:09"),
    ("2026-12-01T02:00:00Z", "2026-12-01 03:00:00"), ("2026-12-01 02:00:00.5+0530", "2026-11-30 21:30:00"),
    ("2026-12-01T02:00-08:00", "2026-12-01 11:00:00"), ("2026-12-01", "2026-12-01 00:00:00"),
    ("2026-07-01 02:00", "2026-07-01 02:00:00"), ("2026-12-01 02:56:14,673", "2026-12-01 02:56:14"),
    ("12-01 02:00:00", "2026-12-01 02:00:00"), ("12-01 02:00", "2026-12-01 02:00:00"),
    ("12-04 13:00:00", "2026-12-04 13:00:00"), ("12-05 02:00:00", "2025-12-05 02:00:00"),
    ("02-29 02:00:00", "2024-02-29 02:00:00"), ("02:00", "2026-12-03 02:00:00"), ("13:13:20", "2026-12-03 13:13:20"),
    ("13:14", "2026-12-02 13:14:00"), ("10m", "2026-12-03 13:03:20"), ("2h", "2026-12-03 11:13:20"),
    ("1d ago", "2026-12-02 13:13:20"), (" 90 s ", "2026-12-03 13:11:50"), ("1.5h", "2026-12-03 11:43:20"),
])  # fmt: skip
def test_forms(text: str, local: str) -> None:
    assert local_text(read_when(text, "--since", NOW).seconds) == local


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01 02:00", "2026-02-30", "25:00", "12-32 02:00:00", "02-30 02:00:00", "0000-01-01", "10", "-5m", "2026-12-01 02:00+99:00", "9" * 400, "\u0661\u0662:00"])  # fmt: skip
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--until .* is no moment; write for example"):
        read_when(text, "--until", NOW)


def test_durations() -> None:
    assert [read_duration(text, "--last") for text in ("30s", "10m", "2 h", "1d")] == [30, 600, 7200, 86400]
    for text in ("", "10", "0s", "10m ago", "-1m", "1w"):
        with pytest.raises(UsageError, match=r"^--last .* is no duration"):
            read_duration(text, "--last")


def test_the_year_is_the_newest_that_fits() -> None:
    latest = unix_time((2027, 1, 2, 0, 0, 0), "")
    assert local_text(newest_year((1, 1, 0, 0, 0), latest) or 0) == "2027-01-01 00:00:00"
    assert local_text(newest_year((12, 31, 23, 59, 59), latest) or 0) == "2026-12-31 23:59:59"
    assert newest_year((2, 30, 0, 0, 0), latest) is None


def test_a_moment_without_a_year_in_an_old_log() -> None:
    when = read_when("12-01 02:00:00", "--since", NOW)
    assert local_text(when.in_log(NOW - 86400)) == "2026-12-01 02:00:00"
    assert local_text(when.in_log(NOW - 30 * 86400)) == "2026-12-01 02:00:00"
    assert local_text(when.in_log(NOW - 300 * 86400)) == "2025-12-01 02:00:00"


def test_an_hour_that_comes_twice_is_the_first() -> None:
    assert unix_time((2026, 10, 25, 2, 30, 0), "") == unix_time((2026, 10, 25, 0, 30, 0), "Z")
