"""The journal of a unit: real journals, a real journald, and a journalctl that dies."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import lines_of
from journald import PATIENCE, entry, journald, make_journal, needs_remote, read_until

from lmdiag.match.library import open_library
from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.journal import JournalSource, Start
from lmdiag.read.lines import Splitter

LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))
LIBRARY = open_library()
Open = Callable[..., JournalSource]


class Clock:
    """Seconds that pass when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open sources that are closed at the end."""
    sources: list[JournalSource] = []

    def open_one(*arguments: Any, **options: Any) -> JournalSource:
        sources.append(JournalSource(*arguments, **options))
        return sources[-1]

    yield open_one
    for source in sources:
        source.close()


@pytest.fixture
def journal(tmp_path: Path, opened: Open) -> Open:
    """Open a source on the journal files of `tmp_path`, of the unit vllm.service if nothing else is said."""

    def open_one(unit: str = "vllm.service", *, start: Start = "start", **options: Any) -> JournalSource:
        return opened(unit, start=start, command=("journalctl", "-D", str(tmp_path)), **options)

    return open_one


def messages(data: bytes) -> list[str]:
    """The messages of lines of JSON, arrays of bytes decoded."""
    found = [json.loads(row)["MESSAGE"] for row in data.splitlines()]
    return [bytes(text).decode("utf-8", "replace") if isinstance(text, list) else text for text in found]


def whole(source: JournalSource) -> list[str]:
    """All messages of a source that does not follow."""
    data = read_until(source, lambda _: source.ended)
    assert source.problem == ""
    return messages(data)


def incidents(data: bytes, name: str) -> list[Incident]:
    """The incidents of lines of JSON, with the shipped cards."""
    pipeline = Pipeline(name, LIBRARY)
    for line in Splitter(name).feed(data):
        pipeline.feed(line)
    return pipeline.close()


def gist(found: list[Incident]) -> list[tuple[object, ...]]:
    """What must be the same however a log was carried here."""
    return [
        (item.card, item.outcome, item.severity, item.occurrences, item.root and (item.root.type, item.root.message))
        for item in found
    ]


def plain(path: Path) -> list[tuple[object, ...]]:
    """The incidents of a log as it is."""
    pipeline = Pipeline(path.name, LIBRARY)
    for line in lines_of(path.read_text(encoding="utf-8"), path.name):
        pipeline.feed(line)
    return gist(pipeline.close())


@needs_remote
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_journal_has_the_incidents_of_the_plain_log(path: Path, tmp_path: Path, journal: Open) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line]  # journald drops empty lines
    make_journal(tmp_path / "a.journal", (entry(line, n / 1000 - 900) for n, line in enumerate(lines)))
    source = journal(follow=False)
    found = gist(incidents(read_until(source, lambda _: source.ended), source.name))
    assert found == plain(path) != []


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_what_a_real_journald_took_in_has_the_incidents_of_the_plain_log(path: Path, opened: Open) -> None:
    """The log is followed while it is written under a unit; systemd's own coloured lines are like the server's."""
    unit = f"lmdiag-test-{os.getpid()}.service"
    with journald() as real:
        source = opened(unit, command=real.journalctl)
        with real.writer(unit) as pipe:
            pipe.write(path.read_bytes().replace(b"ERROR ", b"\x1b[31mERROR\x1b[0m ") + b"the end\n")
            pipe.flush()
            data = read_until(source, lambda data: b'"the end"' in data)
        source.close()
    end = next(row for row in data.splitlines(keepends=True) if b'"the end"' in row)
    assert gist(incidents(data.replace(end, b""), source.name)) == plain(path)


def test_lines_with_colours_over_the_limits_and_of_several_pieces(opened: Open) -> None:
    """Journald cuts at 48 KiB, here inside a two-byte character, and journalctl at 4 KiB without --all."""
    unit = f"lmdiag-test-{os.getpid()}.service"
    lines = ["x" * 5000, "\x1b[31mred\x1b[0m", "a" + "ü" * 60_000, "  indented", "last"]
    with journald() as real:
        source = opened(unit, command=real.journalctl)
        with real.writer(unit) as pipe:
            pipe.write("\n".join(lines).encode() + b"\n")
            pipe.flush()
            data = read_until(source, lambda data: b'"last"' in data)
        assert real.run("-m", "-o", "json", "--output-fields=_LINE_BREAK").count('"line-max"') == 2
    assert messages(data) == lines
    assert (source.lost(), source.lag(), source.problem) == ([], 0, "")


def test_rotation_and_vacuum_do_not_end_the_following(opened: Open) -> None:
    unit = f"lmdiag-test-{os.getpid()}.service"
    with journald() as real:
        source = opened(unit, command=real.journalctl)
        with real.writer(unit) as pipe:
            for number in range(4):
                pipe.write(f"line {number}\n".encode())
                pipe.flush()
                data = read_until(source, lambda data, number=number: f"line {number}".encode() in data)  # type: ignore[misc]
                assert messages(data) == [f"line {number}"]
                real.run("--rotate")
                real.run("--rotate", "--vacuum-files=1")
        assert "line 0" not in real.run("-m", "-o", "cat")
    assert source.lost() == []


def test_lines_that_journald_suppresses_are_lost_and_counted(opened: Open) -> None:
    """Journald says so when its interval is over and the unit writes again."""
    unit = f"lmdiag-test-{os.getpid()}.service"
    sent = 1000
    lost: list[tuple[str, int]] = []
    with journald("RateLimitIntervalSec=300ms\nRateLimitBurst=10") as real:
        source = opened(unit, command=real.journalctl)
        with real.writer(unit) as pipe:
            pipe.write(b"x\n" * sent)
            pipe.flush()
            data = bytearray()

            def told(more: bytes) -> bool:
                nonlocal sent
                lost.extend(source.lost())
                if not lost:
                    pipe.write(b"x\n")
                    pipe.flush()
                    sent += 1
                return bool(lost)

            data += read_until(source, told)
    ((reason, number),) = lost
    assert reason == "suppressed by journald"
    assert 500 < number < sent
    assert set(messages(bytes(data))) == {"x"}


@needs_remote
def test_fields_of_every_kind_come_through(tmp_path: Path, journal: Open) -> None:
    """A field may be given twice, hold bytes, be empty or missing."""
    odd: list[str | bytes | list[str | bytes]] = [b"\xff bytes", ["one", "two\x1b"], "", "y" * 300_000, "\x1b" + "z" * 400_000, "last"]
    rows = [entry(message, n - 100) for n, message in enumerate(odd)]
    make_journal(tmp_path / "a.journal", [*rows, {k: v for k, v in entry("", -1).items() if k != "MESSAGE"}])
    found = whole(source := journal(follow=False))
    assert found == ["\ufffd bytes", "one\ntwo\x1b", "y" * 300_000, "\x1b" + "z" * 400_000, "last"]
    assert source.lost() == []


@needs_remote
def test_a_line_over_a_mebibyte_is_cut_and_counted(tmp_path: Path, journal: Open) -> None:
    make_journal(tmp_path / "a.journal", [entry("x" * 1_500_000, -9), entry("after", -8)])
    data = read_until(source := journal(follow=False), lambda _: source.ended)
    first, after = messages(data)
    assert (first.rstrip("x"), after) == ("", "after")
    assert len(data.splitlines()[0]) < 1 << 20
    assert source.lost() == [("end of a line over 1 MiB", 1_500_000 - len(first))]


@needs_remote
def test_what_is_of_the_unit_is_read(tmp_path: Path, journal: Open) -> None:
    """Systemd's own lines about the unit are, too."""
    make_journal(
        tmp_path / "a.journal",
        [
            entry("mine", -9),
            entry("killed", -8, unit="init.scope", pid="1", UNIT="vllm.service"),
            entry("other", -7, unit="vllm2.service"),
            entry("instance", -6, unit="vllm@a.service"),
        ],
    )
    assert whole(journal(follow=False)) == ["mine", "killed"]
    assert whole(journal("vllm", follow=False)) == ["mine", "killed"]
    assert whole(journal("vllm@*.service", follow=False)) == ["instance"]
    assert whole(journal("nothing@*.service", follow=False)) == []


@needs_remote
def test_a_pattern_sees_units_that_come_later(tmp_path: Path, journal: Open) -> None:
    """`journalctl -u PATTERN` fails while there is none, and does not see those that come later."""
    make_journal(tmp_path / "a.journal", [entry("other", -9, unit="other.service")])
    source = journal("vllm@*.service")
    assert source.read() == b""
    make_journal(tmp_path / "b.journal", [entry("begun", 1, unit="vllm@new.service")])
    assert messages(read_until(source, bool)) == ["begun"]


@needs_remote
@pytest.mark.parametrize(
    ("start", "expected"),
    [("start", ["before boot", "now"]), ("boot", ["now"]), ("life", ["now"]), ("end", [])],
)
def test_where_the_first_start_begins(start: Start, expected: list[str], tmp_path: Path, journal: Open) -> None:
    """All go on with what comes later."""
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    make_journal(tmp_path / "a.journal", [entry("before boot", -boot - 60), entry("now", -min(boot / 2, 5))])
    source = journal(start=start)
    data = source.read()
    make_journal(tmp_path / "b.journal", [entry("later", 60)])
    assert messages(data + read_until(source, lambda data: b"later" in data)) == [*expected, "later"]


@needs_remote
def test_the_end_stays_where_it_was_while_nobody_reads(tmp_path: Path, journal: Open) -> None:
    make_journal(tmp_path / "a.journal", [entry("old", -60)])
    first = journal(start="end")
    first.read()
    first.close()
    make_journal(tmp_path / "b.journal", [entry("meanwhile", 0)])
    assert whole(journal(start="end", position=json.loads(json.dumps(first.position())), follow=False)) == ["meanwhile"]


@needs_remote
def test_life_is_the_last_fifty_thousand(tmp_path: Path, journal: Open) -> None:
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    span = min(uptime / 2, 60)
    make_journal(tmp_path / "a.journal", (entry(f"m{n}", -span + n * span / 50_100) for n in range(50_020)))
    found = whole(journal(start="life", follow=False))
    assert (found[0], found[-1], len(found)) == ("m20", "m50019", 50_000)


@needs_remote
def test_the_position_is_that_of_what_was_delivered(tmp_path: Path, journal: Open) -> None:
    """Another reader goes on after it, and nothing is there twice or missing."""
    make_journal(tmp_path / "a.journal", (entry(f"m{n} " + "x" * 200, n / 1000 - 90) for n in range(5_000)))
    place: dict[str, Any] = {}
    found: list[str] = []
    data = b"first"
    while data:
        source = journal(position=place, follow=False)
        data = read_until(source, lambda data: len(data) > 200_000 or source.ended)  # noqa: B023 (called at once)
        place = json.loads(json.dumps(source.position()))
        assert source.lost() == []
        source.close()
        found += [message.split()[0] for message in messages(data)]
    assert found == [f"m{n}" for n in range(5_000)]


@needs_remote
def test_all_that_came_meanwhile_is_followed_up(tmp_path: Path, journal: Open) -> None:
    """Of itself, --follow shows the last ten entries."""
    make_journal(tmp_path / "a.journal", (entry(f"m{n}", n - 90) for n in range(60)))
    first = journal(follow=False)
    assert len(whole(first)) == 60
    make_journal(tmp_path / "b.journal", (entry(f"m{n}", n - 90) for n in range(60, 90)))
    again = journal(position=first.position())
    assert messages(read_until(again, lambda data: b"m89" in data)) == [f"m{n}" for n in range(60, 90)]


@needs_remote
def test_a_line_of_which_pieces_came_is_read_whole_after_a_restart(tmp_path: Path, journal: Open) -> None:
    """What came in between was delivered and does not come again."""
    cut = {"_STREAM_ID": "a" * 32, "_LINE_BREAK": "line-max"}
    make_journal(
        tmp_path / "a.journal",
        [
            entry("first", -9),
            entry(b"be\xc3", -8, **cut),
            entry("other process", -7, pid="8", _STREAM_ID="b" * 32),
            entry(b"\xbcgin ", -6, **cut),
        ],
    )
    source = journal(follow=False)
    assert whole(source) == ["first", "other process"]
    make_journal(tmp_path / "b.journal", [entry("end", -5, _STREAM_ID="a" * 32), entry("next", -4, _STREAM_ID="a" * 32)])
    assert whole(journal(position=source.position(), follow=False)) == ["beügin end", "next"]


@needs_remote
def test_a_vacuumed_cursor_is_told_and_what_is_left_is_read(tmp_path: Path, journal: Open) -> None:
    """--after-cursor, which is no error then, would skip the first line that is left."""
    make_journal(tmp_path / "a.journal", [entry("old", -60), entry("older than the rest", -50)])
    source = journal(follow=False)
    whole(source)
    place = source.position()
    assert whole(again := journal(position=place, follow=False)) == []
    assert again.lost() == []
    (tmp_path / "a.journal").unlink()
    make_journal(tmp_path / "b.journal", [entry("left", -9), entry("last", -8)])
    source = journal(position=place, follow=False)
    assert whole(source) == ["left", "last"]
    assert (source.lost(), source.lost()) == ([("journal vacuumed", 0)], [])


@needs_remote
def test_a_position_that_is_none_is_not_believed(tmp_path: Path, journal: Open) -> None:
    make_journal(tmp_path / "a.journal", [entry("x", -9)])
    for place in ({"cursor": "s=x"}, {"cursor": 7, "recent": None}, {"since": "x"}):
        assert whole(journal(position=place, follow=False)) == ["x"]


@needs_remote
def test_lmdiag_does_not_read_itself(tmp_path: Path, journal: Open) -> None:
    """Our pid is not enough: in a container it may be systemd's, in a merged journal another machine's."""
    me, comm = str(os.getpid()), Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    make_journal(
        tmp_path / "a.journal",
        [
            entry("of our process", -9, pid=me, _COMM=comm),
            entry("forwarded", -8, SYSLOG_IDENTIFIER="lmdiag", SYSLOG_PID=me),
            entry("about our unit", -7, unit="init.scope", pid="1", UNIT="vllm.service"),
            entry("the same pid elsewhere", -6, pid=me, _COMM="EngineCore"),
            entry("server", -5),
        ],
    )
    assert whole(journal(follow=False)) == ["about our unit", "the same pid elsewhere", "server"]
    assert whole(journal(follow=False, own_unit="vllm.service")) == []


def script(tmp_path: Path, text: str) -> tuple[str, ...]:
    """A shell script to run in journalctl's place."""
    path = tmp_path / "journalctl"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return (str(path),)


def row(number: int, message: str = "") -> str:
    """A line of the fake journalctl."""
    return json.dumps({"__CURSOR": f"s=1;b=2;i={number:x};x={number:x}", "MESSAGE": message or f"m{number}"})


def settle(source: JournalSource) -> None:
    """Read until journalctl has ended."""
    read_until(source, lambda _: source.problem != "")


def test_a_journalctl_that_dies_is_started_again_later_and_later(tmp_path: Path, opened: Open) -> None:
    """After 1, 2, 4 … 60 seconds; the fake one ends without an entry each time."""
    clock = Clock()
    source = opened("v", command=script(tmp_path, "echo first >&2; echo last words >&2; exit 1"), clock=clock)
    waits = []
    for _ in range(8):
        before, source.problem = clock.now, ""
        while source.read() == b"" and source.fileno() is None and source.problem == "":
            clock.now += 0.5
        waits.append(clock.now - before)
        settle(source)
        assert source.problem == "journalctl ended with 1: last words"
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60]


def test_it_goes_on_at_its_cursor_and_the_problem_is_over_when_entries_come(tmp_path: Path, opened: Open) -> None:
    """Its first entry is the one before, which does not come twice."""
    clock = Clock()
    fake = script(tmp_path, f"""
case "$*" in
*cursor*) echo '{row(1)}'; echo '{row(2)}'; exec sleep 60;;
*) echo '{row(1)}'; printf '{{"MESSAGE": "half'; kill -9 $$;;
esac""")
    source = opened("v", command=fake, clock=clock)
    assert messages(read_until(source, bool)) == ["m1"]
    settle(source)
    assert source.problem == "journalctl was killed by signal 9"
    assert source.read() == b""
    clock.now += 1
    assert messages(read_until(source, bool)) == ["m2"]
    assert (source.problem, source.lost()) == ("", [])


def test_the_problem_is_over_when_it_has_lived_for_five_seconds(tmp_path: Path, opened: Open) -> None:
    clock = Clock()
    source = opened("v", command=script(tmp_path, f"test -e {tmp_path}/ok && exec sleep 60; exit 3"), clock=clock)
    settle(source)
    (tmp_path / "ok").touch()
    clock.now += 1
    source.read()
    clock.now += 4.5
    source.read()
    assert source.problem == "journalctl ended with 3"
    clock.now += 0.5
    source.read()
    assert source.problem == ""


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("/nowhere/journalctl",), "/nowhere/journalctl is not on this machine: watch the server's log file, or install systemd"),
        (("/etc/passwd",), "/etc/passwd cannot be started: Permission denied"),
    ],
)
def test_a_machine_without_journalctl(command: tuple[str, ...], problem: str, opened: Open) -> None:
    clock = Clock()
    source = opened("v", command=command, clock=clock)
    assert (source.read(), source.problem, source.fileno(), source.ended) == (b"", problem, None, False)


def test_a_single_pass_that_fails_has_ended(tmp_path: Path, opened: Open) -> None:
    """Nobody waits for the next try then."""
    source = opened("v", command=script(tmp_path, f"echo '{row(1)}'; exit 1"), follow=False)
    assert messages(read_until(source, lambda _: source.ended)) == ["m1"]
    assert source.problem == "journalctl ended with 1"


@needs_remote
def test_a_journal_that_may_not_be_read(opened: Open) -> None:
    """What is done about it stands with it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become nobody")
    with tempfile.TemporaryDirectory() as directory:  # tmp_path is in one that nobody may enter
        os.chmod(directory, 0o755)  # noqa: S103
        make_journal(path := Path(directory, "a.journal"), [entry("x", -9)])
        path.chmod(0o600)
        source = opened("v", command=("setpriv", "--reuid=65534", "--clear-groups", "journalctl", "-D", directory))
        settle(source)
    assert source.problem.startswith("setpriv ended with 1: ")
    assert source.problem.endswith("insufficient permissions; add the user to the group systemd-journal")


@needs_remote
def test_life_of_a_unit_that_had_no_entries_begins_with_its_first(tmp_path: Path, journal: Open) -> None:
    """`journalctl --lines=N --follow` shows the last of the first ones only."""
    make_journal(tmp_path / "a.journal", [entry("other", -9, unit="other.service")])
    source = journal(start="life")
    source.read()
    read_until(source, lambda _: source._process is not None and "--follow" in source._process.args)  # type: ignore[operator]
    make_journal(tmp_path / "b.journal", [entry(f"m{n}", n / 10) for n in range(5)])
    assert messages(read_until(source, lambda data: b"m4" in data)) == [f"m{n}" for n in range(5)]


def test_a_read_returns_about_256_kib(tmp_path: Path, opened: Open) -> None:
    """The rest waits, counts as lag, and is not in the position."""
    (tmp_path / "rows").write_text("".join(row(n, "x" * 1000) + "\n" for n in range(1, 3001)))
    source = opened("v", command=script(tmp_path, f"exec cat {tmp_path}/rows"), follow=False)
    sizes, lags = [], []
    while not source.ended:
        if data := source.read():
            sizes.append(len(data))
            lags.append(source.lag())
            assert source.position()["cursor"] == json.loads(data.splitlines()[-1])["__CURSOR"]
    assert (max(sizes) <= (1 << 18) + 1100, sum(sizes), lags[-1]) == (True, (tmp_path / "rows").stat().st_size, 0)
    assert 0 < max(lags) < 1 << 20


def test_nonsense_and_endless_lines_are_counted_and_do_not_fill_the_memory(tmp_path: Path, opened: Open) -> None:
    fake = script(tmp_path, f"echo nonsense; head -c 20000000 /dev/zero; echo; echo '[]'; echo '{row(1)}'; exec sleep 60")
    source = opened("v", command=fake)
    assert messages(read_until(source, bool)) == ["m1"]
    lost: dict[str, int] = {}
    for reason, number in source.lost():
        lost[reason] = lost.get(reason, 0) + number
    assert lost == {"not an entry of the journal": len("nonsense") + 2, "entry over 8 MiB": 20_000_000}


def test_what_it_complains_of_does_not_block_it(tmp_path: Path, opened: Open) -> None:
    fake = script(tmp_path, f"head -c 3000000 /dev/zero >&2; echo >&2; echo the end >&2; echo '{row(1)}'; exit 5")
    source = opened("v", command=fake)
    assert messages(read_until(source, bool)) == ["m1"]
    settle(source)
    assert source.problem == "journalctl ended with 5: the end"


def test_close_ends_it(tmp_path: Path, opened: Open) -> None:
    source = opened("v", command=script(tmp_path, f"echo $$ > {tmp_path}/pid; echo '{row(1)}'; exec sleep 600"))
    read_until(source, bool)
    source.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert (source.read(), source.fileno()) == (b"", None)


@needs_remote
def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    """Even if nothing is ever logged again."""
    make_journal(tmp_path / "a.journal", [entry("x", -9)])
    code = (
        "import sys, time\nfrom lmdiag.read.journal import JournalSource\n"
        "source = JournalSource('vllm', start='start', command=('journalctl', '-D', sys.argv[1]))\n"
        "while not source.read(): pass\n"
        "print(source._process.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        handle = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([handle], [], [], PATIENCE)
    os.close(handle)
    assert ended


def test_the_fields_of_the_parser_are_asked_for(tmp_path: Path, opened: Open) -> None:
    """`parse.jsonlines` names a stream by unit and pid."""
    source = opened("v", command=script(tmp_path, 'echo "$*" >&2; exit 1'))
    settle(source)
    fields = re.search(r"--output-fields=(\S+)", source.problem)
    assert fields is not None
    assert {"MESSAGE", "_PID", "_SYSTEMD_UNIT", "_LINE_BREAK", "_STREAM_ID"} <= set(fields[1].split(","))
