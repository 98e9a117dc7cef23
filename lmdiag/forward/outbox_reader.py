"""Looks into an outbox without a trace: no file is made, changed or put aside, and nobody who writes has to wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmdiag.database import connect_readonly
from lmdiag.errors import UsageError
from lmdiag.forward.outbox import FILE
from lmdiag.forward.reading import Reading
from lmdiag.forward.rows import Delivery

_PAGE = 100
"""Rows that are read at once: a reader that waits for its terminal must not hold a transaction open."""


class OutboxReader(Reading):
    """An outbox that is only read. Raises UsageError if that is not possible."""

    def __init__(self, directory: str) -> None:
        """Raises UsageError, also where there is no outbox: see `exists`."""
        path = Path(directory).absolute() / FILE
        try:
            db = connect_readonly(path)
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(path, error) from error
        super().__init__(db, lambda error: _unreadable(path, error))

    def counts(self, sink: str) -> dict[str, int]:
        """Return how many deliveries there are in each status, of one sink or ("") of all."""
        where, values = (" WHERE sink = ?", (sink,)) if sink else ("", ())
        return dict(self._ask(f"SELECT status, count(*) FROM deliveries{where} GROUP BY status", values))  # noqa: S608

    def select(self, sink: str, statuses: Sequence[str], limit: int | None = None) -> Iterator[Delivery]:
        """Yield deliveries in these statuses, the oldest first, `limit` at most; few of them are in memory at once."""
        last, left = -1, limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            page = self._page(sink, statuses, after=last, limit=size)
            yield from page
            if len(page) < size:
                return
            last, left = page[-1].number, None if left is None else left - len(page)


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
