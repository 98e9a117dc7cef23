"""What is asked of an outbox alike by those who write to it and those who only look."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from lmdiag.errors import LmdiagError
from lmdiag.forward.rows import Delivery

_COLUMNS = ", ".join(Delivery._fields)


class Reading:
    """Questions to an open outbox. `failed` makes the error that is raised where it cannot be read."""

    def __init__(self, db: sqlite3.Connection, failed: Callable[[sqlite3.Error], LmdiagError]) -> None:
        self._db = db
        self._failed = failed

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def find(self, name: str) -> list[Delivery]:
        """Return the deliveries of a number, a key or an incident's id, the oldest first."""
        return self._deliveries("CAST(number AS TEXT) = ? OR key = ? OR incident = ? ORDER BY number", (name,) * 3)

    def _page(self, sink: str | None, statuses: Sequence[str], *, after: int = -1, limit: int = -1) -> list[Delivery]:
        """Return deliveries of one sink or all, in these statuses, behind a number, the oldest first; -1: no limit."""
        marks = ", ".join("?" * len(statuses))
        where = f"number > ? AND status IN ({marks})" + (" AND sink = ?" if sink else "") + " ORDER BY number LIMIT ?"
        return self._deliveries(where, (after, *statuses, *((sink,) if sink else ()), limit))

    def _deliveries(self, where: str, values: Sequence[object]) -> list[Delivery]:
        return [Delivery._make(row) for row in self._ask(f"SELECT {_COLUMNS} FROM deliveries WHERE {where}", values)]  # noqa: S608

    def _ask(self, question: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error
