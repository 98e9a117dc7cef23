"""The part of a log that lies between two moments: by bisection, by reading through, and by the plainest filter alike."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lmdiag.errors import InputError, UsageError
from lmdiag.read import edges, skim, span
from lmdiag.read import part as part_module
from lmdiag.read.linetimes import LineTimes
from lmdiag.read.moments import unix_time
from lmdiag.read.part import Part
from lmdiag.read.span import open_part, read_span

BASE = unix_time((2026, 12, 1, 2, 0, 0), "Z")
NOW = BASE + 6 * 3600
ACCESS = b'INFO:     10.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK'


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=["plain", "gz", "small"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """`small`: a plain file, bisected down to places of a few lines, though the file is small."""
    if request.param == "small":
        narrow(monkeypatch)
    return str(request.param)


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_NEAR", 256)
    monkeypatch.setattr(edges, "_CHUNK", 64)
    monkeypatch.setattr(edges, "_MAX_CHUNK", 200)


def stamp(seconds: float) -> bytes:
    return time.strftime("%m-%d %H:%M:%S", time.gmtime(seconds)).encode()


def record(seconds: float, text: bytes = b"x") -> bytes:
    return b"(EngineCore pid=7) INFO " + stamp(seconds) + b" [core.py:1] " + text


def put(path: Path, data: bytes, kind: str = "plain", written: float = NOW - 60) -> str:
    if kind == "gz":
        path = path.with_suffix(".gz")
        data = gzip.compress(data)
    path.write_bytes(data)
    os.utime(path, (written, written))
    return str(path)


def iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def part_of(path: str, since: float | str = "", until: float | str = "", last: str = "", now: float = NOW) -> Part:
    """The part between two moments: flags, or unix times."""
    first, end = (iso(moment) if isinstance(moment, float) else moment for moment in (since, until))
    asked = read_span(first, end, last, now)
    assert asked is not None
    return open_part(path, asked)


@contextmanager
def opened(
    path: str, since: float | str = "", until: float | str = "", last: str = "", now: float = NOW
) -> Iterator[Part]:
    part = part_of(path, since, until, last, now)
    with part:
        yield part


def drain(part: Part, into: list[bytes]) -> None:
    buffer = bytearray(1000)
    while size := part.readinto(buffer):
        into.append(bytes(buffer[:size]))


def drained(part: Part) -> bytes:
    taken: list[bytes] = []
    drain(part, taken)
    return b"".join(taken)


def read(
    path: str, since: float | str = "", until: float | str = "", last: str = "", now: float = NOW
) -> tuple[int, bytes]:
    """The number of the first line in the span, and its bytes."""
    with opened(path, since, until, last, now) as part:
        data = drained(part)
        first = next(number for number in range(1, 10**6) if part.is_inside(number))
        lines = data.split(b"\n")[first - 1 :]
        return part.line(first), b"\n".join(lines)


def filtered(data: bytes, since: float | None, until: float | None, latest: float = NOW) -> tuple[int, bytes]:
    """What `read` should give, in the plainest way."""
    times = LineTimes(latest)
    lines = list(io.BytesIO(data))  # bytes.splitlines would split at carriage returns too
    stamps = [times.read(line.rstrip(b"\n")) for line in lines]
    known = [number for number, stamp in enumerate(stamps) if stamp is not None]
    first, end = 0, len(lines)
    if since is not None:
        inside = [number for number in known if stamps[number] >= since]  # type: ignore[operator]
        first = inside[0] if inside else len(lines)
        if known and first == known[0]:
            first = 0  # nothing says that the lines before it are older
    if until is not None:
        inside = [number for number in known if stamps[number] <= until and number >= first]  # type: ignore[operator]
        later = [number for number in known if number > (inside[-1] if inside else first - 1)]
        end = later[0] if later else len(lines)
    return first + 1, b"".join(lines[first:end])


def log_of(*steps: tuple[float, bytes]) -> bytes:
    """A record after so many seconds, and lines without a time behind it."""
    now, lines = BASE, b""
    for seconds, tail in steps:
        now += seconds
        lines += record(now) + b"\n" + tail
    return lines


tails = st.sampled_from(
    [
        b"",
        b"",
        ACCESS + b"\n",
        b"\n",
        b"Traceback (most recent call last):\n  File 12-01 02:00:00\n",
        b"\r\n",
        b"y" * 300 + b"\n",
        b"\0\n",
    ]
)
step_lists = st.lists(st.tuples(st.integers(0, 200).map(float), tails), min_size=1, max_size=60)


@pytest.mark.parametrize("kind", ["plain", "gz"])
@given(steps=step_lists, heads=st.sampled_from([b"", ACCESS + b"\n", b"\0" * 500, b"\n\n"]), since=st.integers(-100, 6000), length=st.integers(0, 4000), which=st.sampled_from(["since", "until", "both"]), cut=st.booleans())  # fmt: skip
@example(steps=[(0.0, b"")] * 60, heads=b"", since=0, length=0, which="both", cut=False)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
def test_it_gives_what_a_filter_of_all_lines_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, steps: list[tuple[float, bytes]], heads: bytes, since: int, length: int, which: str, cut: bool) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        narrow(patch)
        patch.setattr(part_module, "_BLOCK", 333)
        data = heads + log_of(*steps)
        data = data.removesuffix(b"\n") if cut else data
        first = BASE + since if which != "until" else None
        end = BASE + since + length if which != "since" else None
        expected = filtered(data, first, end)
        path = put(tmp_path / "server.log", data, kind)
        found = read(path, "" if first is None else first, "" if end is None else end)
        assert found[1] == expected[1]
        assert found[0] == expected[0] or not found[1]


@given(seed=st.integers(0, 10**6), since=st.integers(0, 3000), length=st.integers(0, 2000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_times_that_run_back_by_less_than_the_margin_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int, since: int, length: int) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        narrow(patch)
        patch.setattr(part_module, "_BLOCK", 333)
        chance = random.Random(seed)  # noqa: S311
        times = sorted(BASE + chance.randrange(3000) for _ in range(200))
        data = b"".join(record(moment - chance.choice((0, 0, 3, 59))) + b"\n" for moment in times)
        expected = filtered(data, BASE + since, BASE + since + length)
        assert read(put(tmp_path / "server.log", data, kind), BASE + since, BASE + since + length)[1] == expected[1]


def big(lines: int, every: int = 1) -> bytes:
    """A record each second; of `every` lines one has a time."""
    rows = [
        record(BASE + number, b"n%d " % number + b"x" * 80) if number % every == 0 else ACCESS
        for number in range(lines)
    ]
    return b"\n".join(rows) + b"\n"


def test_a_few_places_of_a_large_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.log"
    with open(path, "wb") as file:  # 4 GiB, of which most is a hole
        file.write(big(1000))
        for number in range(1, 4096):
            file.seek(number << 20)
            file.write(b"\n" + record(BASE + 100 * number) + b"\n")
    os.utime(path, (NOW + 5 * 86400, NOW + 5 * 86400))
    reads: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: reads.append(size) or pread(fd, size, at))  # type: ignore[func-returns-value]
    monkeypatch.setattr(span, "start_before", lambda *_: [])
    with opened(str(path), BASE + 300_000.0) as part:
        assert part.position == (3000 << 20) + 1
    assert sum(reads) < 100 << 20  # the holes around the edge are one line of 1 MiB each


def test_one_line_in_a_hundred_has_a_time(tmp_path: Path, kind: str) -> None:
    data = big(30_000, every=100)
    path = put(tmp_path / "server.log", data, kind, NOW + 86400)
    assert read(path, BASE + 12_345.0, BASE + 22_222.0) == filtered(data, BASE + 12_345, BASE + 22_222, NOW + 86400)


def test_a_file_on_the_disk_is_read_only_where_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "server.log", big(100_000), written=NOW + 86400)
    reads: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: reads.append(len(data := pread(fd, size, at))) or data)  # type: ignore[func-returns-value]
    monkeypatch.setattr(span, "start_before", lambda *_: [])
    with opened(path, BASE + 50_000.0, BASE + 50_010.0) as part:
        assert drained(part).count(b"\n") == 11
        assert part.line(1) == 50_001
    assert len(reads) < 100
    assert sum(reads) < 1 << 20


@pytest.mark.parametrize(
    "line", [b"y" * (3 << 20), b"INFO 12-01 02:00:20 [a.py:1] " + b"y" * (3 << 20)], ids=["untimed", "timed"]
)
@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_huge_lines(tmp_path: Path, kind: str, line: bytes) -> None:
    for place in range(4):
        rows = [record(BASE), record(BASE + 15), record(BASE + 30)]
        rows.insert(place, line)
        data = b"\n".join(rows)
        path = put(tmp_path / "server.log", data, kind)
        for since, until in ((10.0, 25.0), (20.0, 20.0), (0.0, 16.0), (25.0, 100.0)):
            assert read(path, BASE + since, BASE + until)[1] == filtered(data, BASE + since, BASE + until)[1]


def test_a_file_without_a_newline_and_an_empty_one(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path / "one.log", record(BASE), kind)
    assert read(path, BASE)[1] == record(BASE)
    assert read(path, BASE + 1.0)[1] == b""
    assert read(path, until=BASE - 1.0)[1] == b""
    with opened(put(tmp_path / "empty.log", b"", kind), BASE) as part:
        assert drained(part) == b""
        assert part.note() == ""


@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_nuls_of_copytruncate(tmp_path: Path, kind: str) -> None:
    data = b"\0" * (3 << 20) + big(100)
    path = put(tmp_path / "server.log", data, kind)
    assert read(path, BASE + 50.0, BASE + 52.0)[1] == filtered(big(100), BASE + 50, BASE + 52)[1]
    assert read(path, BASE)[1] == data


def test_carriage_returns_are_no_line_ends(tmp_path: Path, kind: str) -> None:
    data = b"".join(
        record(BASE + number) + b"\r\n" + b"10%\r20%\r" + record(BASE + 5000) + b"\r\n" for number in range(200)
    )
    path = put(tmp_path / "server.log", data, kind)
    part = data.split(b"\r\n")
    assert read(path, BASE + 100.0, BASE + 101.0)[1] == b"".join(line + b"\r\n" for line in part[200:204])


@pytest.mark.parametrize("written", ["2027-01-01T06:00:00Z", "2027-03-01T06:00:00Z"])
def test_the_turn_of_the_year(tmp_path: Path, kind: str, written: str) -> None:
    eve = unix_time((2026, 12, 31, 23, 0, 0), "Z")
    data = b"".join(record(eve + 30 * number) + b"\n" for number in range(300))
    now = unix_time((2027, 3, 1, 8, 0, 0), "Z")
    path = put(
        tmp_path / "server.log", data, kind, unix_time(tuple(time.strptime(written, "%Y-%m-%dT%H:%M:%SZ")[:6]), "Z")
    )
    expected = b"".join(record(eve + 30 * number) + b"\n" for number in range(110, 131))
    assert read(path, "12-31 23:55:00", "01-01 00:05:00", now=now)[1] == expected
    assert read(path, "2026-12-31 23:55", "2027-01-01T00:05:00Z", now=now)[1] == expected


def test_a_year_old_log_is_meant_by_its_own_times(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path / "server.log", big(100), kind, NOW)
    found = read(path, "12-01 02:01:30", now=NOW + 370 * 86400)
    assert found[0] == 91


def test_a_log_that_grows_is_read_to_its_end(tmp_path: Path) -> None:
    path = put(tmp_path / "server.log", big(100))
    with opened(path, BASE + 98.0) as part:
        with open(path, "ab") as file:
            file.write(record(BASE + 101) + b"\n")
        assert drained(part).count(b"\n") == 3
    with opened(path, BASE + 98.0, BASE + 300.0) as part:
        assert drained(part).count(b"\n") == 3


def test_a_log_that_shrinks_meanwhile_gives_what_is_left(tmp_path: Path) -> None:
    path = put(tmp_path / "server.log", big(1000))
    with opened(path, BASE + 500.0, BASE + 600.0) as part:
        os.truncate(path, 100)
        assert drained(part) == b""
        assert part.line(1) >= 1


def test_a_disk_that_fails_is_told_as_any_other_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "server.log", big(1000))

    def failing(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with opened(path, BASE + 500.0) as part, monkeypatch.context() as patch:
        patch.setattr(os, "preadv", failing)
        with pytest.raises(InputError, match="Input/output error"):
            drained(part)
        assert part.line(1) == 1
    monkeypatch.setattr(os, "pread", failing)
    with pytest.raises(InputError, match="Input/output error"):
        part_of(path, BASE + 500.0)


def test_last_counts_from_the_newest_line(tmp_path: Path, kind: str) -> None:
    data = big(5000) + ACCESS + b"\n"
    path = put(tmp_path / "server.log", data, kind)
    assert read(path, last="10m", now=NOW + 10 * 86400) == filtered(data, BASE + 4999 - 600, None)


@pytest.mark.parametrize("flags", [{"since": BASE + 10.0}, {"until": BASE}, {"last": "10m"}])
def test_a_log_without_times_is_read_whole(tmp_path: Path, kind: str, flags: dict[str, float | str]) -> None:
    data = (ACCESS + b"\n") * 1000
    with opened(put(tmp_path / "server.log", data, kind), **flags) as part:  # type: ignore[arg-type]
        assert drained(part) == data
        assert "no line in the first 8 MiB begins with a time" in part.note()


def test_nothing_is_held_for_ever_before_the_first_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "SEARCHED", 1000)
    data = (ACCESS + b"\n") * 10_000 + big(10)
    assert read(put(tmp_path / "server.log", data, "gz"), BASE + 5.0)[1] == data


def test_a_file_that_was_not_written_to_since_then_is_not_opened(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "server.log", big(10), kind, BASE + 10)
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    monkeypatch.setattr(part_module, "open_bytes", lambda *_: pytest.fail("opened"))
    for since in ("2026-12-01T02:01:00Z", "5h", "2026-12-02 02:00", "12-02 02:00:00"):
        with opened(path, since, now=NOW + 86400 if "12-02" in since else NOW) as part:
            assert drained(part) == b""
            assert part.note() == ""


def test_a_clock_that_is_set_back_loses_no_hour(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    start = unix_time((2026, 10, 25, 0, 0, 0), "Z")  # 02:00 summer time; at 01:00 UTC it is 02:00 once more
    rows = [
        b"INFO " + time.strftime("%m-%d %H:%M:%S", time.localtime(start + 10 * n)).encode() + b" [a.py:1] x"
        for n in range(1200)
    ]
    path = put(tmp_path / "server.log", b"\n".join(rows) + b"\n", kind, start + 20_000)
    for since in ("2026-10-25 02:10", "2026-10-25 02:50"):
        found = read(path, since, now=start + 20_000)
        assert found[0] == next(n for n, row in enumerate(rows, 1) if row[5:16] >= since[5:].encode())


@pytest.mark.parametrize("transport", [lambda seconds, text: iso(seconds).encode().replace(b"Z", b".5Z") + b" stdout F " + text, lambda seconds, text: json.dumps({"log": text.decode() + "\n", "stream": "stderr", "time": iso(seconds)}).encode()], ids=["cri", "docker"])  # fmt: skip
def test_the_outermost_time_counts(tmp_path: Path, kind: str, transport: Callable[[float, bytes], bytes]) -> None:
    """A container's clock knows its zone; what is inside may be written in any."""
    data = b"\n".join(transport(BASE + number, record(BASE + number + 7200)) for number in range(3000)) + b"\n"
    assert read(put(tmp_path / "server.log", data, kind), BASE + 2000.0, BASE + 2001.0)[0] == 2001


def test_a_clients_text_is_no_time(tmp_path: Path, kind: str) -> None:
    fakes = [
        b"INFO:     2030-01-01 00:00:00 " + record(BASE),
        b"the user said: 2020-01-01 00:00:00",
        b'  {"time": "2020-01-01T00:00:00Z"}',
    ]
    rows = [row for number in range(3000) for row in (record(BASE + number), fakes[number % 3])]
    path = put(tmp_path / "server.log", b"\n".join(rows) + b"\n", kind)
    assert read(path, BASE + 2000.0, BASE + 2000.0) == (4001, b"\n".join(rows[4000:4002]) + b"\n")


def test_single_fakes_at_the_beginning_of_a_line_mislead_nobody(tmp_path: Path, kind: str) -> None:
    rows = [
        row
        for number in range(6000)
        for row in (record(BASE + number), *((b"2020-01-01 00:00:00 x",) if number % 5 == 0 else ()))
    ]
    path = put(tmp_path / "server.log", b"\n".join(rows) + b"\n", kind)
    assert read(path, BASE + 3000.0)[0] == rows.index(record(BASE + 3000)) + 1


def test_standard_input_and_named_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = big(4000)
    expected = filtered(data, BASE + 3400, None)
    for flags in ({"since": BASE + 3400.0}, {"last": "599s"}):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read("-", **flags) == expected
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
        writer.start()
        assert read(str(tmp_path / "pipe"), **flags) == expected
        writer.join()
        os.unlink(tmp_path / "pipe")


def test_an_archive_that_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    path = put(tmp_path / "server.log", big(4000), "gz")
    os.truncate(path, os.path.getsize(path) - 100)
    os.utime(path, (NOW, NOW))
    with opened(path, BASE + 100.0) as part:
        taken: list[bytes] = []
        with pytest.raises(InputError, match="breaks off"):
            drain(part, taken)
        data = b"".join(taken)
        assert data.startswith(record(BASE + 100, b"n100 "))
        assert data.count(b"\n") > 1000


def test_utf_16_and_byte_order_marks(tmp_path: Path) -> None:
    text = big(500)
    expected = filtered(text, BASE + 300, BASE + 301)
    utf16 = put(tmp_path / "a.log", text.decode().encode("utf-16"))
    assert read(utf16, BASE + 300.0, BASE + 301.0) == expected
    marked = put(tmp_path / "b.log", b"\xef\xbb\xbf" + text)
    assert read(marked, BASE + 300.0, BASE + 301.0) == expected
    assert read(marked, until=BASE)[1] == text[: text.find(b"\n") + 1]


START = (
    b"(APIServer pid=1) INFO 12-01 02:00:00 [utils.py:326] vLLM API server version 0.12.0\n"
    b"(APIServer pid=1) INFO 12-01 02:00:01 [utils.py:326] non-default args: {'model': 'm'}\n"
)
READY = b"(APIServer pid=1) INFO:     Application startup complete.\n"


@pytest.mark.parametrize("between", [b"", big(9000)], ids=["near", "far"])
def test_what_the_server_said_at_its_start_comes_along(tmp_path: Path, kind: str, between: bytes) -> None:
    earlier = START.replace(b"0.12.0", b"0.11.0") + READY + record(BASE, b"bye") + b"\n"
    data = earlier + START + between + READY + big(9000)[200 * 80 :].partition(b"\n")[2] + record(BASE + 9999) + b"\n"
    with opened(put(tmp_path / "server.log", data, kind, NOW), BASE + 9998.0) as part:
        given = drained(part)
        assert given.startswith(START)
        assert given.count(READY) == 1
        assert b"0.11.0" not in given
        lines = given.split(b"\n")[:-1]
        whole = data.split(b"\n")
        assert [whole[part.line(number) - 1] for number in range(1, len(lines) + 1)] == lines
        assert [part.is_inside(number) for number in range(1, len(lines) + 1)] == [False] * (len(lines) - 1) + [True]


def test_a_start_ends_before_its_first_error(tmp_path: Path, kind: str) -> None:
    trouble = b"(EngineCore pid=7) ERROR 12-01 02:00:02 [core.py:1] Traceback (most recent call last):\n"
    data = START + ACCESS + b"\n" + trouble + record(BASE + 3) + b"\n" + record(BASE + 900) + b"\n"
    with opened(put(tmp_path / "server.log", data, kind), BASE + 800.0) as part:
        assert drained(part) == START + ACCESS + b"\n" + record(BASE + 900) + b"\n"


def test_contradictions_are_usage_errors() -> None:
    for flags, words in (
        (("02:00", "", "10m"), "--last .* --since"),
        (("", "02:00", "10m"), "--last .* --until"),
        (
            ("2026-12-01 03:00", "2026-12-01 02:00", ""),
            r"--since 2026-12-01 03:00 .* is after --until 2026-12-01 02:00",
        ),
        (("soon", "", ""), "--since 'soon' is no moment"),
        (("", "2026-13-01 02:00", ""), "--until '2026-13-01 02:00' is no moment"),
        (("", "", "ten minutes"), "--last 'ten minutes' is no duration"),
    ):
        with pytest.raises(UsageError, match=words):
            read_span(*flags, NOW)
    assert read_span("", "", "", NOW) is None
