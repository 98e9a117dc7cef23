"""Looks into an outbox without a trace: no file is made, changed or put aside, and nobody who writes has to wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lmdiag.database import connect_readonly
from lmdiag.errors import UsageError
from lmdiag.forward.outbox import FILE
from lmdiag.forward.rows import Delivery

_COLUMNS = ", ".join(Delivery._fields)
_PAGE = 100
"""Rows that are read at once: a reader that waits for its terminal must not hold a transaction open."""


class OutboxReader:
    """An outbox that is only read. Raises UsageError if that is not possible."""

    def __init__(self, directory: str) -> None:
        """Raises UsageError, also where there is no outbox: see `exists`."""
        self.path = Path(directory).absolute() / FILE
        try:
            self._db = connect_readonly(self.path)
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(self.path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def counts(self, sink: str) -> dict[str, int]:
        """Return how many deliveries there are in each status, of one sink or ("") of all."""
        where, values = (" WHERE sink = ?", (sink,)) if sink else ("", ())
        return dict(self._ask(f"SELECT status, count(*) FROM deliveries{where} GROUP BY status", values))  # noqa: S608

    def select(self, sink: str, statuses: Sequence[str], limit: int | None = None) -> Iterator[Delivery]:
        """Yield deliveries in these statuses, the oldest first, `limit` at most; few of them are in memory at once."""
        marks = ", ".join("?" * len(statuses))
        where = f"number > ? AND status IN ({marks})" + (" AND sink = ?" if sink else "")
        last, left = -1, limit
        while left is None or left > 0:
            values = (last, *statuses, *((sink,) if sink else ()), _PAGE if left is None else min(left, _PAGE))
            page = self._deliveries(f"{where} ORDER BY number LIMIT ?", values)
            yield from page
            if len(page) < values[-1]:
                return
            last, left = page[-1].number, None if left is None else left - len(page)

    def find(self, name: str) -> list[Delivery]:
        """Return the deliveries of a number, a key or an incident's id, the oldest first."""
        where = "CAST(number AS TEXT) = ? OR key = ? OR incident = ? ORDER BY number"
        return self._deliveries(where, (name, name, name))

    def _deliveries(self, where: str, values: Sequence[object]) -> list[Delivery]:
        return [Delivery._make(row) for row in self._ask(f"SELECT {_COLUMNS} FROM deliveries WHERE {where}", values)]  # noqa: S608

    def _ask(self, question: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(self.path, error) from error


def exists(directory: str) -> bool:
    """Whether there is an outbox. Raises UsageError if that may not be asked."""
    path = Path(directory) / FILE
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from error
    return True


def _unreadable(path: Path, error: OSError | sqlite3.Error) -> UsageError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(
        f"cannot read the outbox at {path}: {why}; "
        "name the daemon's state directory with --state, and ask as its user or as root"
    )
