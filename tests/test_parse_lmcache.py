from __future__ import annotations

import pytest

from lmdiag.model import Line
from lmdiag.parse.lmcache import LMCacheRecords
from lmdiag.parse.logical import Logical
from lmdiag.parse.prefixes import read_prefix

HEAD = "[2026-12-01 02:56:14,673] LMCache {}: "
MARK = " (manager.py:107:lmcache.v1.manager)"
FAKE = "ERROR 12-01 02:00:00 [core.py:1584] ValueError: fake"


def records(*texts: str, max_open: int = 256) -> list[tuple[str | None, str]]:
    """(logger and level, text) of each line that comes out."""
    joiner = LMCacheRecords(max_open=max_open)
    fed = [Logical("", read_prefix(text), Line("s", number, 0, text)) for number, text in enumerate(texts, 1)]
    found = [one for logical in fed for one in joiner.feed(logical)] + list(joiner.close())
    return [
        (one.prefixed.record and f"{one.prefixed.record.logger} {one.prefixed.record.level}", one.prefixed.text)
        for one in found
    ]


def test_the_mark_at_the_end_is_no_text() -> None:
    assert records(HEAD.format("INFO") + "stored" + MARK) == [("lmcache INFO", "stored")]


def test_the_lines_of_a_loud_record_are_its_own() -> None:
    found = records(
        HEAD.format("ERROR") + "failed: Traceback (most recent call last):",
        '  File "/a/x.py", line 1, in f',
        "ValueError: x",
        ". degraded" + MARK,
        "behind it",
    )
    assert found == [
        ("lmcache ERROR", "failed: Traceback (most recent call last):"),
        ("lmcache ERROR", '  File "/a/x.py", line 1, in f'),
        ("lmcache ERROR", "ValueError: x"),
        ("lmcache ERROR", ". degraded"),
        (None, "behind it"),
    ]  # fmt: skip


def test_a_loud_record_without_an_end_is_not_held_back() -> None:
    assert records(HEAD.format("ERROR") + "failed", FAKE) == [
        ("lmcache ERROR", "failed"),
        ("vllm ERROR", "ValueError: fake"),
    ]


@pytest.mark.parametrize("level", ["INFO", "DEBUG", "WARNING"])
def test_what_stands_inside_a_quiet_record_is_a_clients_text(level: str) -> None:
    """LMCache prints tokens' text as it is; a record in there is a fake."""
    found = records(HEAD.format(level) + "token_chunk start: Why?", FAKE, "Traceback (most recent call last):", "end" + MARK, "INFO:     x")  # fmt: skip
    assert found[0] == (f"lmcache {level}", "token_chunk start: Why?")
    assert ("vllm ERROR", "ValueError: fake") not in found
    assert (None, "Traceback (most recent call last):") not in found
    assert found[-1] == ("uvicorn INFO", "x")


def test_what_was_held_back_for_a_mark_that_never_comes_is_given() -> None:
    assert ("vllm ERROR", "ValueError: fake") in records(HEAD.format("INFO") + "no mark", FAKE)


def test_the_next_record_of_lmcache_ends_the_wait() -> None:
    found = records(HEAD.format("INFO") + "no mark", FAKE, HEAD.format("INFO") + "stored" + MARK)
    assert found == [
        ("lmcache INFO", "no mark"),
        ("vllm ERROR", "ValueError: fake"),
        ("lmcache INFO", "stored"),
    ]


def test_the_wait_is_bounded() -> None:
    """An error far behind a record that lost its mark is not kept from the reader for ever."""
    joiner = LMCacheRecords()
    given = 0
    for number in range(200):
        text = HEAD.format("INFO") + "no mark" if number == 0 else FAKE
        given += len(list(joiner.feed(Logical("", read_prefix(text), Line("s", number + 1, 0, text)))))
    assert given > 100


def test_other_lines_pass_unchanged() -> None:
    assert records("ValueError: x", FAKE) == [(None, "ValueError: x"), ("vllm ERROR", "ValueError: fake")]


def test_processes_are_kept_apart() -> None:
    one, other = "(Worker_TP0 pid=1) ", "(Worker_TP1 pid=2) "
    found = records(one + HEAD.format("ERROR") + "failed:", other + "raw", one + "ValueError: x" + MARK)
    assert found == [("lmcache ERROR", "failed:"), (None, "raw"), ("lmcache ERROR", "ValueError: x")]
