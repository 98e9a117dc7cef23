"""SQLite files that outlive their process: opened with what makes a kill harmless, put aside when they are damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from lmdiag.errors import StateError

WAIT = 5.0
"""Seconds to wait for another process's write."""


class Schema(NamedTuple):
    """What a file of lmdiag's holds."""

    format: int
    """Kept as user_version; a file of another format is put aside."""
    tables: str
    """The statements that create what is not there yet."""
    columns: Mapping[str, str]
    """table: its columns, all of which must be there."""


def open_database(path: str, schema: Schema, *, durable: bool) -> tuple[sqlite3.Connection, str]:
    """Open or create a database; return it, and what became of one that was damaged ("": nothing).

    `durable`: a commit survives a power cut, at the price of waiting for the disk; else only a kill. Raises StateError if
    it cannot be opened at all.
    """
    try:
        return _sound(path, schema, durable=durable), ""
    except sqlite3.DatabaseError as error:
        # the general code is that of a statement which does not fit: the tables are another program's
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            hint = "close what has it open" if "locked" in str(error) else "check the file system and its free space"
            raise StateError(f"{path}: {error}; {hint}") from error
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.replace(path + suffix, f"{path}.damaged{suffix}")
        name = os.path.basename(path)
        problem = f"{path}: {error}; it was put aside as {name}.damaged, and a new one begun"
        return connect(path, schema, durable=durable), problem


def _sound(path: str, schema: Schema, *, durable: bool) -> sqlite3.Connection:
    db = connect(path, schema, durable=durable)
    try:
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        try:
            for table, columns in schema.columns.items():
                db.execute(f"SELECT {columns} FROM {table} LIMIT 1")  # noqa: S608 (constants)
        except sqlite3.OperationalError as error:
            raise sqlite3.DatabaseError(f"it is not lmdiag's: {error}") from error
    except sqlite3.Error:
        db.close()
        raise
    return db


def connect(path: str, schema: Schema, *, durable: bool) -> sqlite3.Connection:
    """Open a database that is known to be sound, such as one that this process has open already."""
    existed = os.path.exists(path)
    db = sqlite3.connect(path, timeout=WAIT)
    try:
        os.chmod(path, 0o600)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        db.execute("PRAGMA journal_size_limit = 4194304")
        db.execute("PRAGMA cache_size = -1024")  # KiB
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if existed and found not in (0, schema.format):
            raise sqlite3.DatabaseError(f"its format is {found}, and this lmdiag writes {schema.format}")
        with closing(db.cursor()) as cursor:
            cursor.executescript(schema.tables)
        db.execute(f"PRAGMA user_version = {schema.format}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a database in WAL mode to look into it, and leave no file: one of root's would keep the daemon's user out.

    Where nobody has it open, SQLite would make its two helpers, unless it is told that nobody writes; but then it
    does not look into the WAL (sqlite.org/wal.html, section 8). A process that was killed has left both, with what it
    wrote last; of a copy the WAL alone may be there, and the other one is made. Raises OSError and sqlite3.Error.
    """
    wal, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    written = wal.exists() and (index.exists() or wal.stat().st_size > 0)
    mode = "mode=ro" if written else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=2.0)
