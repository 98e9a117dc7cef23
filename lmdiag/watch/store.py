"""What survives a restart, in one SQLite file: where each source was, its open tracebacks, incidents, untold reports.

Everything of one moment is written in one transaction, so a kill at any time leaves a state that once was.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from lmdiag.database import Schema, open_database
from lmdiag.errors import StateError
from lmdiag.watch.tracker import Report, Tracked

FILE, LOCK = "state.db", "lock"
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.05
_T = TypeVar("_T")
_SCHEMA = Schema(
    format=1,
    tables="""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sources (name TEXT PRIMARY KEY, position BLOB NOT NULL, stream BLOB NOT NULL, saved_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS incidents (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS reports (number INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
""",
    columns={
        "meta": "key, value",
        "sources": "name, position, stream, saved_at",
        "incidents": "id, body",
        "reports": "number, body",
    },
)


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
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            self._lock = _locked(os.path.join(directory, LOCK))
        except OSError as error:
            raise StateError(
                f"{directory}: {error.strerror or error}; name a directory that this user may write with --state"
            ) from error
        self._path = os.path.join(directory, FILE)
        # A kill loses nothing so; a power cut may lose the last seconds, which are then read and told once more
        self._db, self.problem = open_database(self._path, _SCHEMA, durable=False)
        """`problem`: what became of a database that could not be used."""

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


def _decoded(body: bytes, kind: type[_T]) -> _T | None:
    """Read what an older or newer version may have written: unknown keys are left out, new ones have defaults."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None
