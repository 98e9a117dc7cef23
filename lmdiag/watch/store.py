"""What survives a restart, in one SQLite file: where each source was, its open tracebacks, incidents, untold reports.

Everything of one moment is written in one transaction, so a kill at any time leaves a state that once was.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import msgspec

from lmdiag.errors import StateError
from lmdiag.watch.tracker import Report, Tracked

FILE, LOCK = "state.db", "lock"
_FORMAT = 1
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.05
_T = TypeVar("_T")
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sources (name TEXT PRIMARY KEY, position BLOB NOT NULL, stream BLOB NOT NULL, saved_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS incidents (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS reports (number INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
"""
_COLUMNS = {
    "meta": "key, value",
    "sources": "name, position, stream, saved_at",
    "incidents": "id, body",
    "reports": "number, body",
}


class Saved(NamedTuple):
    """Where a source was."""

    position: dict[str, Any]
    """As `Source.position` gave it."""
    stream: bytes
    """As `Stream.save` gave it."""


class Pending(NamedTuple):
    """A report that was saved and may not have been told yet."""

    number: int
    report: Report


class Store:
    """The state directory, held by one daemon at a time.

    Raises StateError if another one has it, or if it cannot be written.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.problem = ""
        """What became of a database that could not be used."""
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            self._lock = _locked(os.path.join(directory, LOCK))
        except OSError as error:
            raise StateError(
                f"{directory}: {error.strerror or error}; name a directory that this user may write with --state"
            ) from error
        self._path = os.path.join(directory, FILE)
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            return _sound(self._path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                hint = (
                    "close what has it open" if "locked" in str(error) else "check the file system and its free space"
                )
                raise StateError(f"{self._path}: {error}; {hint}") from error
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(self._path + suffix):
                    os.replace(self._path + suffix, f"{self._path}.damaged{suffix}")
            self.problem = f"{self._path}: {error}; it was put aside as {FILE}.damaged, and a new one begun"
            return _connect(self._path)

    def sources(self) -> dict[str, Saved]:
        """Return where each source was; a row that cannot be read is left out."""
        rows = self._db.execute("SELECT name, position, stream FROM sources")
        found = {name: (_decoded(position, dict), stream) for name, position, stream in rows}
        return {name: Saved(position, stream) for name, (position, stream) in found.items() if position is not None}

    def incidents(self) -> list[Tracked]:
        """Return the incidents; one that cannot be read any more is left out."""
        return [item for (body,) in self._db.execute("SELECT body FROM incidents") if (item := _decoded(body, Tracked))]

    def pending(self) -> list[Pending]:
        """Return the reports that were not marked as told, in their order."""
        rows = self._db.execute("SELECT number, body FROM reports ORDER BY number")
        return [Pending(number, report) for number, body in rows if (report := _decoded(body, Report))]

    def save(
        self,
        sources: Mapping[str, Saved],
        now: float,
        *,
        changed: Iterable[Tracked] = (),
        removed: Iterable[str] = (),
        reports: Sequence[Report] = (),
        told: Iterable[int] = (),
    ) -> list[int]:
        """Write the state of one moment, and drop reports that were told; return the numbers of the new ones.

        Raises StateError, and then nothing is written.
        """
        self._check_presence()
        encode = msgspec.json.encode
        try:
            with self._db:
                self._db.executemany("DELETE FROM incidents WHERE id = ?", [(item,) for item in removed])
                self._db.executemany(
                    "INSERT OR REPLACE INTO incidents VALUES (?, ?)", [(item.id, encode(item)) for item in changed]
                )
                self._db.executemany(
                    "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)",
                    [(name, encode(saved.position), saved.stream, now) for name, saved in sources.items()],
                )
                self._db.executemany("DELETE FROM reports WHERE number = ?", [(number,) for number in told])
                return [self._add(encode(report)) for report in reports]
        except (sqlite3.Error, UnicodeEncodeError, msgspec.MsgspecError) as error:
            raise StateError(f"{self._path}: the state cannot be saved: {error}") from error

    def _check_presence(self) -> None:
        """Raise StateError if the directory was removed: what is written then is found by nobody."""
        try:
            present = os.path.samestat(os.stat(os.path.join(self.directory, LOCK)), os.fstat(self._lock))
        except OSError:
            present = False
        if not present:
            raise StateError(f"{self.directory}: it was removed or replaced under the daemon; start lmdiag watch again")

    def _add(self, body: bytes) -> int:
        number = self._db.execute("INSERT INTO reports (body) VALUES (?)", (body,)).lastrowid
        assert number is not None
        return number

    def forget(self, before: float) -> None:
        """Drop sources that were last saved before that time: their logs are gone."""
        self._write("DELETE FROM sources WHERE saved_at < ?", [(before,)])

    def set_meta(self, key: str, value: str) -> None:
        """Keep a text, such as the daemon's status."""
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, value)])

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            with self._db:
                self._db.executemany(statement, rows)
        except sqlite3.Error as error:
            raise StateError(f"{self._path}: the state cannot be saved: {error}") from error

    def close(self) -> None:
        """Close the database and let go of the directory."""
        self._db.close()
        os.close(self._lock)


def _locked(path: str) -> int:
    """Take the lock; `lmdiag status` asks for it too, for a moment."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
        else:
            return lock
    os.close(lock)
    raise StateError(
        f"{os.path.dirname(path)}: another lmdiag watch works with this state; stop it, or give this one its own "
        "directory with --state"
    )


def _sound(path: str) -> sqlite3.Connection:
    db = _connect(path)
    try:
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        try:
            for table, columns in _COLUMNS.items():
                db.execute(f"SELECT {columns} FROM {table} LIMIT 1")  # noqa: S608 (constants)
        except sqlite3.OperationalError as error:
            raise sqlite3.DatabaseError(f"it is not lmdiag's: {error}") from error
    except sqlite3.Error:
        db.close()
        raise
    return db


def _connect(path: str) -> sqlite3.Connection:
    existed = os.path.exists(path)
    db = sqlite3.connect(path, timeout=5.0)
    try:
        os.chmod(path, 0o600)
        db.execute("PRAGMA journal_mode = WAL")
        # A kill loses nothing so; a power cut may lose the last seconds, which are then read and told once more
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 4194304")
        db.execute("PRAGMA cache_size = -1024")  # KiB
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if existed and found not in (0, _FORMAT):
            raise sqlite3.DatabaseError(f"its format is {found}, and this lmdiag writes {_FORMAT}")
        with closing(db.cursor()) as cursor:
            cursor.executescript(_TABLES)
        db.execute(f"PRAGMA user_version = {_FORMAT}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _decoded(body: bytes, kind: type[_T]) -> _T | None:
    """Read what an older or newer version may have written: unknown keys are left out, new ones have defaults."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None
