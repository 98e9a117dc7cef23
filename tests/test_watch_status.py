from __future__ import annotations

import fcntl
import io
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmdiag.errors import UsageError
from lmdiag.forward.status import SinkStatus
from lmdiag.model import Loop
from lmdiag.watch.counters import DaemonStatus, IncidentStatus, SourceStatus, status_to_json
from lmdiag.watch.status import RUNNING, STOPPED, TROUBLED, duration, is_running, status

NOW = 1_000_000.0
SOURCE = SourceStatus(
    "/var/log/vllm.log", "file", required=True, offset=12_345_678, lag=2048, lines_per_second=12.5, last_line_at=NOW - 3,
    open_incidents=1,
)  # fmt: skip
INCIDENT = IncidentStatus(
    "inc-1", "opened", "critical", "a-card", "[red]KV cache\x1b[2J too small", "/var/log/vllm.log", 5,
    NOW - 900, NOW - 60, "died", Loop(5, 720.0),
)  # fmt: skip
SINK = SinkStatus(
    "oncall", "pagerduty", 2, 1, NOW - 300, "connection \x1b[2Jrefused", (("delivered", 1204), ("retry", 7)), (("waiting", 0),)
)
STATUS = DaemonStatus(
    4242, "1.2.3", NOW - 11_520, NOW - 1, (SOURCE,), (INCIDENT,), 3, (("/var/log/vllm.log", "flood", 1234567),), "", ready=True,
    sinks=(SINK,),
)  # fmt: skip


def keep(directory: Path, value: str | None) -> None:
    """Write a state as the daemon's store does."""
    connection = sqlite3.connect(directory / "state.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT)")
    if value is not None:
        connection.execute("INSERT INTO meta VALUES ('status', ?)", (value,))
    connection.commit()
    connection.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    keep(tmp_path, status_to_json(STATUS))
    (tmp_path / "lock").touch()
    return tmp_path


@pytest.fixture
def locked(state: Path) -> Iterator[Path]:
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield state


def ask(directory: Path, format: str = "text", width: int = 100) -> tuple[int, str]:
    out = io.StringIO()
    code = status(str(directory), format, False, width, out, clock=lambda: NOW)  # noqa: FBT003
    return code, out.getvalue()


def test_a_daemon_that_runs_and_is_well(locked: Path) -> None:
    code, text = ask(locked)
    assert code == RUNNING
    assert text.startswith("RUNNING\n")
    assert "4242, for 3 h 12 min, lmdiag 1.2.3" in text
    assert "As of    1 s ago" in text
    assert "3 waiting" in text
    assert "/var/log/vllm.log: read, 12.5 lines/s, 2.0 kB behind, at 12.3 MB, last line 3 s ago, 1 open\n" in text
    assert "/var/log/vllm.log: 1,234,567 (flood)" in text


def test_open_incidents_are_told_with_their_loop(locked: Path) -> None:
    text = " ".join(ask(locked)[1].split())
    assert "CRITICAL [red]KV cache too small in /var/log/vllm.log, 5 times, crash loop: 5 in 12 min, last 1 min ago" in text


def test_log_text_commands_no_terminal(locked: Path) -> None:
    out = io.StringIO()
    status(str(locked), "text", True, 100, out, clock=lambda: NOW)  # noqa: FBT003
    assert "\x1b[2J" not in out.getvalue()
    assert "[red]KV" in out.getvalue()


def test_a_source_with_a_problem(tmp_path: Path, locked: Path) -> None:
    bad = STATUS._replace(sources=(SOURCE._replace(problem="permission denied"),))
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("UPDATE meta SET value = ?", (status_to_json(bad),))
    connection.close()
    code, text = ask(locked)
    assert code == TROUBLED
    assert "/var/log/vllm.log: permission denied" in text
    assert "unreadable" in text


def test_sinks_are_told_with_what_waits(locked: Path) -> None:
    told = " ".join(ask(locked)[1].split())
    assert "oncall (pagerduty): 1,204 delivered, 2 waiting for 5 min, 1 dead letters (lmdiag outbox list): connection" in told
    assert "\x1b" not in told


def test_a_daemon_that_is_gone(state: Path) -> None:
    code, text = ask(state)
    assert code == STOPPED
    assert text.startswith("STOPPED\n")
    assert "was seen 1 s ago" in text
    assert "Problems" not in text


def test_a_daemon_that_is_stuck(tmp_path: Path) -> None:
    keep(tmp_path, status_to_json(STATUS._replace(now=NOW - 100)))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, text = ask(tmp_path)
    assert code == TROUBLED
    assert "has not gone round for 100 s" in text


def test_a_daemon_that_has_told_nothing_yet(tmp_path: Path) -> None:
    keep(tmp_path, None)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, text = ask(tmp_path)
    assert (code, "has not told anything yet" in text) == (TROUBLED, True)


def test_no_state_at_all(tmp_path: Path) -> None:
    code, text = ask(tmp_path / "none")
    assert code == STOPPED
    assert "no daemon has run with" in text
    assert not (tmp_path / "none").exists()


def test_asking_leaves_no_lock(state: Path) -> None:
    assert not is_running(str(state))
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_asking_changes_no_file(state: Path) -> None:
    before = sorted(path.name for path in state.iterdir()), (state / "state.db").read_bytes()
    ask(state)
    assert (sorted(path.name for path in state.iterdir()), (state / "state.db").read_bytes()) == before


def test_while_the_daemon_has_the_state_open(locked: Path) -> None:
    writer = sqlite3.connect(locked / "state.db")
    writer.execute("UPDATE meta SET value = ?", (status_to_json(STATUS._replace(queue=77)),))
    writer.commit()
    try:
        assert "77 waiting" in ask(locked)[1]
    finally:
        writer.close()


def test_what_a_killed_daemon_wrote_last(state: Path) -> None:
    writer = sqlite3.connect(state / "state.db")
    writer.execute("UPDATE meta SET value = ?", (status_to_json(STATUS._replace(queue=77)),))
    writer.commit()
    left = {end: (state / f"state.db{end}").read_bytes() for end in ("", "-wal", "-shm")}
    writer.close()
    for end, data in left.items():
        (state / f"state.db{end}").write_bytes(data)
    code, text = ask(state)
    assert (code, "77 waiting" in text) == (STOPPED, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_that_may_only_be_read(state: Path) -> None:
    state.chmod(0o500)
    try:
        assert ask(state)[0] == STOPPED
    finally:
        state.chmod(0o700)


def test_one_json_object(locked: Path) -> None:
    code, text = ask(locked, "jsonl")
    assert code == RUNNING
    assert text.count("\n") == 1
    told = json.loads(text)
    assert (told["kind"], told["running"], told["problems"]) == ("status", True, [])
    assert told["status"]["sources"][0]["lag"] == 2048
    assert told["status"]["incidents"][0]["loop"] == {"times": 5, "seconds": 720.0}
    assert told["status"]["dropped"] == [{"source": "/var/log/vllm.log", "reason": "flood", "count": 1234567}]


def test_json_without_a_state(tmp_path: Path) -> None:
    assert json.loads(ask(tmp_path, "jsonl")[1]) == {"kind": "status", "running": False, "problems": [], "status": None}


@pytest.mark.parametrize("content", [b"this is no database, but long enough to be one" * 100, b"{}", None])
def test_what_is_not_lmdiags_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        sqlite3.connect(tmp_path / "state.db").execute("CREATE TABLE other(x)").connection.close()
    else:
        (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(UsageError, match=r"state\.db: .*--state"):
        ask(tmp_path)


def test_a_status_of_another_kind_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, '{"pid": "x"}')
    with pytest.raises(UsageError, match=r"state\.db: DaemonStatus"):
        ask(tmp_path)


def test_narrow_terminals_fold(locked: Path) -> None:
    lines = ask(locked, width=40)[1].splitlines()
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "0 s"), (59.4, "59 s"), (60, "1 min"), (720, "12 min"), (11_520, "3 h 12 min"), (90_061, "1 d 1 h")]
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said
