"""Amounts as a person reads them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Say a size in bytes with three digits: `12.3 MB` (10^6 bytes, as the SI has it)."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 999.5 or unit == _UNITS[-1]:
            break
        amount /= 1000
    return f"{amount:,.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:,.1f} {unit}"
