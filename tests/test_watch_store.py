"""The state in a real SQLite file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from report_samples import MATCHED

from lmdiag.errors import StateError
from lmdiag.watch.store import FILE, Pending, Saved, Store
from lmdiag.watch.tracker import Report, Tracked

TRACKED = Tracked(
    id="i", source="s", fingerprint="f", incident=MATCHED, opened_at=1.0, last_at=2.0, outcome="died", life=1, occurrences=1
)
REPORT = Report(MATCHED, 5.0)


def test_what_was_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "state"))
    saved = {"s": Saved({"offset": 7, "head": "ab"}, b"\x00blob")}
    numbers = store.save(saved, 1.0, changed=[TRACKED], reports=[REPORT, REPORT])
    store.close()
    store = Store(str(tmp_path / "state"))
    assert store.sources() == saved
    assert store.incidents() == [TRACKED]
    assert store.pending() == [Pending(number, REPORT) for number in numbers]


def test_told_reports_and_removed_incidents_go(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    first, second = store.save({}, 1.0, changed=[TRACKED], reports=[REPORT, REPORT])
    store.save({}, 2.0, removed=["i"], told=[first])
    assert store.incidents() == []
    assert [number for number, _ in store.pending()] == [second]


def test_a_number_is_never_used_twice(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    [first] = store.save({}, 1.0, reports=[REPORT])
    [second] = store.save({}, 1.0, reports=[REPORT], told=[first])
    store.save({}, 1.0, told=[second])
    [third] = store.save({}, 1.0, reports=[REPORT])
    assert len({first, second, third}) == 3


def test_a_second_daemon_is_refused(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    with pytest.raises(StateError, match="another lmdiag watch"):
        Store(str(tmp_path))
    store.close()
    Store(str(tmp_path)).close()


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    Store(str(directory)).close()
    assert directory.stat().st_mode & 0o077 == 0
    assert (directory / FILE).stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, " * 500)
    store = Store(str(tmp_path))
    assert "put aside" in store.problem
    assert store.sources() == {}
    assert (tmp_path / (FILE + ".damaged")).read_bytes().startswith(b"this is")


def test_a_damaged_page_is_found_at_the_start(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.save({str(n): Saved({"offset": n}, b"x" * 3000) for n in range(50)}, 1.0)
    store.close()
    data = bytearray((tmp_path / FILE).read_bytes())
    data[8192:60000] = b"\xff" * (60000 - 8192)
    (tmp_path / FILE).write_bytes(data)
    store = Store(str(tmp_path))
    assert "put aside" in store.problem
    assert store.sources() == {}


def test_a_name_that_cannot_be_kept_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be saved"):
        Store(str(tmp_path)).save({"caf\udce9": Saved({}, b"")}, 1.0)


def test_sources_that_nobody_saved_for_long_go(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.save({"old": Saved({}, b"")}, 1.0)
    store.save({"new": Saved({}, b"")}, 5.0)
    store.forget(2.0)
    assert list(store.sources()) == ["new"]


def test_another_format_is_put_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert "format is 99" in Store(str(tmp_path)).problem


def test_a_directory_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="--state"):
        Store(str(tmp_path / "file" / "state"))


def test_an_incident_of_another_version_is_left_out(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.save({}, 1.0, changed=[TRACKED])
    store.close()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("INSERT INTO incidents VALUES ('x', '{\"id\": 5}')")
    db.close()
    assert Store(str(tmp_path)).incidents() == [TRACKED]


WRITER = """
import sys
from lmdiag.watch.store import Saved, Store
store = Store(sys.argv[1])
for number in range(100000):
    store.save({"s": Saved({"offset": number}, str(number).encode())}, 1.0)
    print(number, flush=True)
"""


def test_a_kill_leaves_a_state_that_once_was(tmp_path: Path) -> None:
    """What `save` returned from is there, and position and stream are of the same moment."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        last = 0
        while last < 25:
            last = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
    last = int(rest[-1]) if rest else last
    [saved] = Store(str(tmp_path)).sources().values()
    assert saved.position["offset"] >= last
    assert saved.stream == str(saved.position["offset"]).encode()
