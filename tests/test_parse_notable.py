"""What matters outside of errors, while a server starts and while it serves."""

from __future__ import annotations

import pytest

from lmdiag.parse.notable import Notable

HEAD = "GPU KV cache"
STARTING = ("Available KV cache memory: 3 GiB", "Resolved architecture: X", "GPU KV cache size: 9 tokens", "version 0.33.0")
ALWAYS = ("vLLM API server version 0.33.0", "non-default args: {'a': 1}", "Application startup complete.", "Shutting down")
NEVER = ("Engine 000: Avg prompt throughput: 1.0 tokens/s, version 3", "Received request cmpl-1: Shutting down", "10.0.0.1 Shutting down", "x")


def serving() -> Notable:
    """As long after a start as it takes to be one no more."""
    notable = Notable({HEAD})
    notable.passed(1024)
    return notable


@pytest.mark.parametrize("text", STARTING + ALWAYS)
def test_a_start(text: str) -> None:
    """At a source's beginning a server may be starting."""
    assert Notable({HEAD}).record(text)


@pytest.mark.parametrize("text", STARTING)
def test_only_of_a_start(text: str) -> None:
    """Later a client's text may say it."""
    assert not serving().record(text)


@pytest.mark.parametrize("text", ALWAYS)
def test_at_any_time(text: str) -> None:
    """A server starts again, or ends."""
    assert serving().record(text)


@pytest.mark.parametrize("text", NEVER)
def test_chatter(text: str) -> None:
    """What a serving server says all the time, whatever a client makes of it."""
    assert not Notable({HEAD}).record(text)


def test_how_long_a_start_lasts() -> None:
    """1024 lines behind the last thing that was heard of it; a new start begins another one."""
    notable = Notable(())
    notable.passed(1023)
    notable.seen("Available KV cache memory: 3 GiB")
    notable.passed(1023)
    assert notable.starting
    notable.passed(1)
    assert not notable.starting
    notable.seen("Application startup complete.")
    assert not notable.starting
    notable.seen("non-default args: {'a': 1}")
    assert notable.left == 1024


def test_raw_lines() -> None:
    """Before a start is over, what a shell says of it too; later only what holds an anchor."""
    raw = ("Process EngineCore:", "Killed", "$ vllm serve x", "a line")
    assert [Notable(()).raw(text) for text in raw] == [True, True, True, False]
    assert [serving().raw(text) for text in raw] == [False, True, False, False]
