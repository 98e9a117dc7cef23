"""Times without a year and a zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from report_samples import UNMATCHED

from lmdiag.watch.times import event_time, spread

NOW = datetime(2026, 1, 1, 0, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("01-01 00:29:00", datetime(2026, 1, 1, 0, 29, tzinfo=UTC)),
        ("12-31 23:59:59", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("01-01 09:00:00", datetime(2026, 1, 1, 9, 0, tzinfo=UTC)),  # a zone ahead of ours
        ("2025-12-31 23:00:00,123", datetime(2025, 12, 31, 23, 0, 0, 123000, tzinfo=UTC)),
        ("2025-12-31T23:00:00+02:00", datetime(2025, 12, 31, 21, 0, tzinfo=UTC)),
    ],
)
def test_the_year_is_the_one_that_is_not_in_the_future(text: str, expected: datetime) -> None:
    assert event_time(text, NOW) == expected.timestamp()


@pytest.mark.parametrize("text", [None, "", "13-45 99:00:00", "yesterday", "02-30 00:00:00"])
def test_what_is_no_time_is_none(text: str | None) -> None:
    assert event_time(text, NOW) is None


def test_a_leap_day_is_read_in_its_own_year() -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert event_time("02-29 00:00:00", now) is None
    now = datetime(2028, 3, 1, tzinfo=UTC).timestamp()
    assert event_time("02-29 00:00:00", now) == datetime(2028, 2, 29, tzinfo=UTC).timestamp()


def test_failures_between_the_first_and_the_last_lie_evenly() -> None:
    incident = UNMATCHED._replace(first_seen="12-31 23:00:00", last_seen="12-31 23:10:00")
    times = spread(incident, 3, NOW)
    assert [time - times[0] for time in times] == [0.0, 300.0, 600.0]


def test_without_times_it_is_now() -> None:
    incident = UNMATCHED._replace(first_seen=None, last_seen=None)
    assert spread(incident, 4, NOW) == [NOW]
    assert spread(incident, 1, NOW) == [NOW]
