"""A line that is known by its prefix is what taking it apart gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmdiag.model import Line
from lmdiag.parse.last_record import LastRecord
from lmdiag.parse.logical import LogicalLines
from lmdiag.parse.prefixes import read_prefix

PREFIX = "(EngineCore_DP0 pid=7) ERROR 12-01 02:00:00 [core.py:718] "
FRAGMENTS = ("Traceback", '  File "/a/b.py", line 3, in f', "(A pid=3) ", "ERROR 12-01 02:00:00 [c.py:1] ", "&quot;", ";", "\x1b[31m", "[", "^[[1m", " ", "\r", "x.py:3: ", "é", "[repeated 2x across cluster]", "options.)")  # fmt: skip


def known() -> LastRecord:
    """One that knows a record."""
    record = LastRecord()
    record.remember(read_prefix(f"{PREFIX}Traceback (most recent call last):"), f"{PREFIX}Traceback (most recent call last):")
    return record


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=6).map("".join))
def test_it_is_what_the_long_way_gives(text: str) -> None:
    """Or nothing."""
    line = f"{PREFIX}{text}".replace("\n", "")
    lines = LogicalLines("s")
    list(lines.feed(Line("s", 1, 0, "y" * 300)))
    record = known()
    found = record.text(line)
    expected = [(logical.stream + logical.prefixed.chain, logical.prefixed.record, logical.prefixed.text) for logical in lines.feed(Line("s", 2, 0, line))]
    assert found is None or [(record.chain, record.key, found)] == expected


def test_lines_of_a_traceback() -> None:
    """They are known, as they stand."""
    record = known()
    assert record.text(f'{PREFIX}  File "/a/b.py", line 3, in f') == '  File "/a/b.py", line 3, in f'
    assert (record.chain, record.key and record.key.line) == ("(EngineCore_DP0 pid=7) ", 718)


def test_what_is_not_remembered() -> None:
    """A line with a container before its prefix, without a process, without a record, or without a text."""
    for line in (f"2026-12-01T02:00:00Z {PREFIX}x", PREFIX[23:] + "x", "(EngineCore_DP0 pid=7) x", PREFIX.rstrip()):
        record = LastRecord()
        record.remember(read_prefix(line[line.find("(E") if "Z (" in line else 0 :]), line)
        assert record.text(line + "y") is None
