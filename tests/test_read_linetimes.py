"""The time at the beginning of a log line, whatever carried it here."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.read.linetimes import LineTimes
from lmdiag.read.moments import unix_time

AT = unix_time((2026, 12, 1, 2, 0, 0), "Z")


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


TIMED = [
    b"INFO 12-01 02:00:00 [file.py:1] x",
    b"(APIServer pid=1) INFO 12-01 02:00:00 [file.py:1] x",
    b"(RayWorkerWrapper pid=320, ip=10.0.0.2) ERROR 12-01 02:00:00 [a/b.py:1] x",
    b"ERROR 2026-12-01 02:00:00.934 file.py:62] msg",
    b"\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m12-01 02:00:00\x1b[0m \x1b[90m[utils.py:286]\x1b[0m x",
    b"2026-12-01T02:00:00.123Z stdout F (APIServer pid=1) INFO 12-01 05:00:00 [file.py:1] x",
    b'2026-12-01T02:00:00.450656877Z   File "x.py", line 1, in f',
    b"2026-12-01T03:00:00+0100 host vllm[3]: x",
    b"2026-11-30T18:00:00-08:00 host vllm[3]: x",
    b"Dec  1 02:00:00 host vllm[8052]: (APIServer pid=8052) x",
    b"Dec 01 02:00:00 host vllm[8052]: x",
    b"[2026-12-01 02:00:00,673] LMCache INFO: x",
    b"\x1b[32;20m[2026-12-01 02:00:00,673] LMCache INFO:\x1b[0m x",
    b"2026-12-01 02:00:00,671\tINFO worker.py:1540 -- x",
    b"2026-12-01 02:00:00 | ERROR | stderr | Traceback",
    b"vllm-1  | ERROR 12-01 02:00:00 [a.py:1] x",
    b"vllm-1  | 2026-12-01 02:00:00,123 - x",
    b"vllm-prefill-645-qxv6j vllm (APIServer pid=1) INFO 12-01 02:00:00 [a.py:1] x",
    b"[pod/vllm-0/vllm] 2026-12-01T02:00:00Z x",
    b"[rank0]: 2026-12-01 02:00:00 x",
    b"  | [2026-12-01T02:00:00Z] x",
    b"0: ERROR 12-01 02:00:00 [a.py:1] x",
    b"> INFO 12-01 02:00:00 [a.py:1] x",
    b"\0\0\0INFO 12-01 02:00:00 [file.py:1] x",
    b"\xef\xbb\xbfINFO 12-01 02:00:00 [file.py:1] x\r",
    b'{"log":"x 2020-01-01\\n","stream":"stdout","time":"2026-12-01T02:00:00.1Z"}',
    b'{"levelname":"INFO","asctime":"2026-12-01 02:00:00,1","message":"x"}',
    b'{"MESSAGE":"x","__REALTIME_TIMESTAMP":"%d000000"}' % AT,
    b'{"ts": %d.5, "msg": "a"}' % AT,
    b'{"ts": %d999, "msg": "a"}' % AT,
    b'{"message": "INFO 12-01 02:00:00 [a.py:1] x"}',
    b'vllm-1  | {"ts": %d, "msg": "a"}' % AT,
]

UNTIMED = [
    b"",
    b'INFO:     10.0.0.1:5000 - "GET /2026-12-01 HTTP/1.1" 200 OK',
    b"Traceback (most recent call last):",
    b'  File "a.py", line 1, in 2026-12-01 02:00:00',
    b"    2026-12-01 02:00:00 x",
    b"the user said: INFO 12-01 02:00:00 [a.py:1]",
    b"(EngineCore pid=7) the user said 2026-12-01 02:00:00",
    b"INFO 12-01 02:00:00 no file stands here",
    b"INFO 13-01 02:00:00 [file.py:1] x",
    b"2026-02-30 02:00:00 x",
    b"2026-12-01T02:00:00+99:00 x",
    b"2027-12-01 02:00:00 the future",
    b'{"message": "{\\"time\\": \\"2026-12-01 02:00:00\\"}"}',
    b'{"a": {"time": "2026-12-01 02:00:00"}}',
    b'{"time": true, "ts": "nan", "asctime": [1], "timestamp": 1e300}',
    b"{" * 100_000,
    b"[1, 2",
]


@pytest.mark.parametrize("line", TIMED)
def test_timed(line: bytes) -> None:
    assert LineTimes(AT + 86400).read(line) == AT


@pytest.mark.parametrize("line", UNTIMED, ids=lambda line: repr(line[:60]))
def test_untimed(line: bytes) -> None:
    assert LineTimes(AT + 86400).read(line) is None


def test_a_line_after_the_one_before_it() -> None:
    times = LineTimes(AT + 86400)
    lines = [b"INFO 12-01 02:00:%02d [a.py:1] x" % second for second in (0, 0, 1, 0)]
    assert [times.read(line) for line in lines] == [AT, AT, AT + 1, AT]


@given(
    st.lists(st.sampled_from([*TIMED, *UNTIMED]).map(lambda line: line[:40]) | st.binary(max_size=30), max_size=4).map(
        b"".join
    )
)
def test_any_bytes_are_read(line: bytes) -> None:
    found = LineTimes(AT).read(line)
    assert found is None or found <= AT + 86400
