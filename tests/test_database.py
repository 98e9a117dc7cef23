"""SQLite files that outlive their process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lmdiag.database import Schema, connect, connect_readonly, open_database
from lmdiag.errors import StateError

SCHEMA = Schema(3, "CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, size INTEGER);", {"things": "name, size"})


def opened(path: Path, schema: Schema = SCHEMA) -> tuple[sqlite3.Connection, str]:
    """Open it as a daemon does."""
    return open_database(str(path), schema, durable=True)


def test_a_new_one_is_made_for_its_owner_only(tmp_path: Path) -> None:
    db, problem = opened(tmp_path / "x.db")
    assert problem == ""
    assert db.execute("SELECT count(*) FROM things").fetchone() == (0,)
    assert (tmp_path / "x.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("durable", "mode"), [(True, 2), (False, 1)])
def test_durable_means_that_a_commit_waits_for_the_disk(tmp_path: Path, durable: bool, mode: int) -> None:
    db = connect(str(tmp_path / "x.db"), SCHEMA, durable=durable)
    assert db.execute("PRAGMA synchronous").fetchone() == (mode,)


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    db, _ = opened(tmp_path / "x.db")
    with db:
        db.execute("INSERT INTO things VALUES ('a', 1)")
    db.close()
    assert opened(tmp_path / "x.db")[0].execute("SELECT * FROM things").fetchall() == [("a", 1)]


def other_format(path: Path) -> None:
    """Write one as a later version does."""
    opened(path, SCHEMA._replace(format=4))[0].close()


def other_table(path: Path) -> None:
    """Write one with a table of the same name."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE things (price)")
    db.close()


@pytest.mark.parametrize("make", [other_format, other_table, lambda path: path.write_bytes(b"no database" * 500)])
def test_what_cannot_be_used_is_put_aside_whole(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.db"
    make(path)
    content = path.read_bytes()
    db, problem = opened(path)
    assert "put aside as x.db.damaged" in problem
    assert (tmp_path / "x.db.damaged").read_bytes()[100:] == content[100:]  # the head counts its readings
    db.execute("INSERT INTO things VALUES ('a', 1)")


def test_one_that_is_in_use_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmdiag.database.WAIT", 0.0)
    db, _ = opened(tmp_path / "x.db")
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StateError, match="close what has it open"):
        opened(tmp_path / "x.db")
    db.rollback()
    assert not (tmp_path / "x.db.damaged").exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="unable to open"):
        opened(tmp_path / "missing" / "x.db")


def looked_into(path: Path) -> list[object]:
    """Return what a reader sees."""
    with closing(connect_readonly(path)) as db:
        return [name for (name,) in db.execute("SELECT name FROM things ORDER BY name")]


def test_reading_what_nobody_has_open_leaves_no_file(tmp_path: Path) -> None:
    db, _ = opened(tmp_path / "x.db")
    with db:
        db.execute("INSERT INTO things VALUES ('a', 1)")
    db.close()
    assert looked_into(tmp_path / "x.db") == ["a"]
    (tmp_path / "x.db-wal").touch()  # of a process that was killed before it wrote
    assert looked_into(tmp_path / "x.db") == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.db", "x.db-wal"]


@pytest.mark.parametrize("copied", [("", "-wal", "-shm"), ("", "-wal")])
def test_what_was_written_last_is_read_too(tmp_path: Path, copied: tuple[str, ...]) -> None:
    """Of a process that was killed, or of a copy that was made while it ran."""
    copy = tmp_path / "copy"
    copy.mkdir()
    db, _ = opened(tmp_path / "x.db")
    with closing(db), db:
        db.execute("INSERT INTO things VALUES ('a', 1)")
        db.commit()
        assert looked_into(tmp_path / "x.db") == ["a"]
        for end in copied:
            (copy / f"x.db{end}").write_bytes((tmp_path / f"x.db{end}").read_bytes())
    assert looked_into(copy / "x.db") == ["a"]


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    opened(tmp_path / "x.db")[0].close()
    with closing(connect_readonly(tmp_path / "x.db")) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("INSERT INTO things VALUES ('a', 1)")
