"""Sizes as a person reads them."""

from __future__ import annotations

import pytest

from lmdiag.report.amounts import size


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_600, "1.0 MB"), (123_400_000, "123 MB"), (5 * 10**15, "5,000 TB")])  # fmt: skip
def test_sizes(count: int, said: str) -> None:
    assert size(count) == said
