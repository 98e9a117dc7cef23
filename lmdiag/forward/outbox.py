"""What is to be delivered, in one SQLite file: nothing is lost by a kill or a power cut, and nothing waits in memory.

Each process and each thread opens it for itself. What is written is one transaction at a time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from lmdiag.database import Schema, connect, open_database
from lmdiag.errors import StateError
from lmdiag.forward.message import Message
from lmdiag.forward.reading import Reading
from lmdiag.forward.rows import Alert, Count, Delivery, encoded

FILE = "outbox.db"
WAITING, DEAD, DELIVERED, MERGED = "waiting", "dead", "delivered", "merged"
STATUSES = (WAITING, DEAD, DELIVERED, MERGED)
"""merged: it is part of a summary, which is a delivery of its own."""
KEPT = 7 * 86400.0
"""Seconds for which the key of what is done is remembered after the same report came last: it is not sent again."""
_KEPT_COUNT = 20_000
_OVERHEAD = 500
"""Bytes that a row is counted for beside its body."""
_SCHEMA = Schema(
    format=1,
    tables="""
CREATE TABLE IF NOT EXISTS deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, key TEXT NOT NULL, incident TEXT NOT NULL,
    status TEXT NOT NULL, created_at REAL NOT NULL, attempts INTEGER NOT NULL, next_at REAL NOT NULL, done_at REAL,
    seen_at REAL NOT NULL, detail TEXT NOT NULL, body BLOB, UNIQUE (sink, key)
);
CREATE INDEX IF NOT EXISTS by_status ON deliveries (sink, status, number);
CREATE TABLE IF NOT EXISTS alerts (
    sink TEXT NOT NULL, incident TEXT NOT NULL, alert TEXT NOT NULL, since REAL NOT NULL, told_at REAL NOT NULL,
    severity TEXT NOT NULL, looping INTEGER NOT NULL, sent INTEGER NOT NULL, resolved INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (sink, incident)
);
CREATE TABLE IF NOT EXISTS disabled (sink TEXT PRIMARY KEY, target TEXT NOT NULL, detail TEXT NOT NULL);
""",
    columns={
        "deliveries": f"{', '.join(Delivery._fields)}, seen_at",
        "alerts": ", ".join(Alert._fields),
        "disabled": "sink, target, detail",
    },
)
_REVIVE = """
UPDATE deliveries SET status = 'waiting', created_at = :now, next_at = :now, attempts = 0, done_at = NULL
WHERE number = :number AND status IN ('waiting', 'dead') AND NOT EXISTS (
    SELECT 1 FROM deliveries later WHERE later.sink = :sink AND later.incident = :incident AND later.number > :number
    AND later.status IN ('delivered', 'merged')
)
"""
_ALERT = ", ".join(Alert._fields)


class Outbox(Reading):
    """An open outbox. Raises StateError where the file cannot be used."""

    def __init__(self, directory: str, *, checked: bool = True, timeout: float = 5.0) -> None:
        """`checked`: look whether it is damaged, as the first one in a process does.

        `timeout`: seconds to wait for another writer, once it is open.
        """
        self.path = os.path.join(directory, FILE)
        self.problem = ""
        """What became of a file that could not be used."""
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            if checked:
                db, self.problem = open_database(self.path, _SCHEMA, durable=True)
            else:
                db = connect(self.path, _SCHEMA, durable=True)
            db.execute(f"PRAGMA busy_timeout = {round(1000 * timeout)}")
            self._file = os.stat(self.path)
        except (OSError, sqlite3.Error) as error:
            raise StateError(f"{self.path}: {error}; see that this user may write there") from error
        super().__init__(db, lambda error: StateError(f"{self.path}: it cannot be read: {error}"))

    def is_there(self) -> bool:
        """Whether the file is still the one that was opened: what is written into a removed one is found by nobody."""
        try:
            return os.path.samestat(os.stat(self.path), self._file)
        except OSError:
            return False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all that is written within at once or not at all, without another writer in between."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: it cannot be written: {error}") from error

    # -- what is to be sent ------------------------------------------------------------------------------------------

    def add(self, sink: str, message: Message, now: float) -> bool:
        """Put a message there, unless its key is known; return whether it is new. Within a transaction."""
        row = (sink, message.key, message.incident.id, WAITING, now, now, now, encoded(message))
        added = self._db.execute(
            "INSERT OR IGNORE INTO deliveries"
            " (sink, key, incident, status, created_at, attempts, next_at, seen_at, detail, body)"
            " VALUES (?, ?, ?, ?, ?, 0, ?, ?, '', ?)",
            row,
        ).rowcount
        if not added:
            seen = (now, sink, message.key)
            self._db.execute("UPDATE deliveries SET seen_at = ? WHERE sink = ? AND key = ?", seen)
        return bool(added)

    def waiting(self, sink: str, limit: int) -> list[Delivery]:
        """Return what a sink is to be sent next, in its order."""
        return self._page(sink, [WAITING], limit=limit)

    def finish(
        self, deliveries: Iterable[Delivery], status: str, now: float, detail: str = "", *, tried: bool = True
    ) -> None:
        """Note what became of deliveries: delivered, merged or dead; `tried`: by an attempt."""
        with self.transaction():
            for one in deliveries:
                self._db.execute(
                    "UPDATE deliveries SET status = ?, done_at = ?, detail = ?, attempts = attempts + ?"
                    " WHERE number = ? AND status = ?",
                    (status, now, detail, int(tried), one.number, WAITING),
                )
                self._settle(one, sent=status == DELIVERED)

    def _settle(self, one: Delivery, *, sent: bool) -> None:
        """Note that a sink knows of an incident; forget it once its end was told."""
        message = one.message
        if message is None or message.members:
            return
        key = (one.sink, one.incident)
        if message.incident.state == "resolved":
            self._db.execute("DELETE FROM alerts WHERE sink = ? AND incident = ? AND resolved", key)
        elif sent:
            self._db.execute("UPDATE alerts SET sent = 1 WHERE sink = ? AND incident = ?", key)

    def postpone(self, one: Delivery, next_at: float, detail: str) -> None:
        """Note that an attempt failed, and when the next one is due."""
        with self.transaction():
            self._db.execute(
                "UPDATE deliveries SET attempts = attempts + 1, next_at = ?, detail = ? WHERE number = ?",
                (next_at, detail, one.number),
            )

    def merge(self, deliveries: Sequence[Delivery], summary: Message, now: float) -> None:
        """Put a summary in the place of deliveries: incidents that were not told on their own are known by it from now on."""
        sink = deliveries[0].sink
        with self.transaction():
            self.add(sink, summary, now)
            for one in deliveries:
                self._db.execute(
                    "UPDATE deliveries SET status = ?, done_at = ?, detail = ? WHERE number = ?",
                    (MERGED, now, f"in the summary {summary.key}", one.number),
                )
                self._db.execute(
                    "UPDATE alerts SET alert = ?, sent = 1 WHERE sink = ? AND incident = ? AND NOT sent",
                    (summary.alert, sink, one.incident),
                )
                self._settle(one, sent=False)

    def delivered_between(self, sink: str, since: float, until: float) -> list[float]:
        """Return when messages were delivered, the first one first; a clock that was set back has some in the future."""
        rows = self._ask(
            "SELECT done_at FROM deliveries WHERE sink = ? AND status = ? AND done_at > ? AND done_at <= ? ORDER BY done_at",
            (sink, DELIVERED, since, until),
        )
        return [at for (at,) in rows]

    def is_delivered(self, sink: str, key: str) -> bool:
        """Whether a sink has taken the message of a key."""
        return bool(
            self._ask("SELECT 1 FROM deliveries WHERE sink = ? AND key = ? AND status = ?", (sink, key, DELIVERED))
        )

    # -- what sinks were told ----------------------------------------------------------------------------------------

    def alerts(self, sink: str) -> dict[str, Alert]:
        """Return what a sink was told and not yet told to be over, by incident."""
        rows = self._ask(f"SELECT {_ALERT} FROM alerts WHERE sink = ?", (sink,))  # noqa: S608
        return {one.incident: one for one in map(Alert._make, rows)}

    def alert(self, sink: str, incident: str) -> Alert | None:
        """Return what a sink was told of an incident and not yet told to be over."""
        rows = self._ask(f"SELECT {_ALERT} FROM alerts WHERE sink = ? AND incident = ?", (sink, incident))  # noqa: S608
        return Alert._make(rows[0]) if rows else None

    def is_shared(self, alert: Alert) -> bool:
        """Whether the service knows other incidents by the same alert."""
        question = "SELECT 1 FROM alerts WHERE sink = ? AND alert = ? AND incident != ? LIMIT 1"
        return bool(self._ask(question, (alert.sink, alert.alert, alert.incident)))

    def set_alert(self, alert: Alert) -> None:
        """Keep what a sink is told. Within a transaction."""
        self._db.execute("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", alert)

    def drop_alert(self, sink: str, incident: str) -> None:
        """Forget an alert whose end the sink does not want to know. Within a transaction."""
        self._db.execute("DELETE FROM alerts WHERE sink = ? AND incident = ?", (sink, incident))

    # -- sinks that want nothing more --------------------------------------------------------------------------------

    def disable(self, sink: str, target: str, detail: str) -> None:
        """Note that the receiver at `target` wants nothing more."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO disabled VALUES (?, ?, ?)", (sink, target, detail))

    def disabled(self, sink: str) -> tuple[str, str] | None:
        """Return the (target, detail) of a sink that is disabled: another target is a new beginning."""
        rows = self._ask("SELECT target, detail FROM disabled WHERE sink = ?", (sink,))
        return (rows[0][0], rows[0][1]) if rows else None

    # -- bounds, and what a person asks ------------------------------------------------------------------------------

    def count(self, sink: str) -> Count:
        """Return how much there is for a sink."""
        rows = self._ask(
            "SELECT status, count(*), min(created_at) FROM deliveries WHERE sink = ? AND status IN (?, ?) GROUP BY status",
            (sink, WAITING, DEAD),
        )
        found = {status: (count, oldest) for status, count, oldest in rows}
        waiting, oldest = found.get(WAITING, (0, None))
        return Count(waiting, found.get(DEAD, (0, None))[0], oldest)

    def trim(self, now: float, *, age: float, size: int) -> list[tuple[str, str]]:
        """Drop what is done and old, and dead letters beyond `age` (seconds), and keep all messages within `size` (bytes).

        What is done makes room first, and keeps only its key; then the oldest dead letters go, then the oldest that wait.
        Returns the (sink, status) of each that was lost so.
        """
        with self.transaction():
            self._db.execute(
                "DELETE FROM deliveries WHERE status IN (?, ?) AND (seen_at < ? OR number <= "
                "(SELECT max(number) FROM deliveries) - ?)",
                (DELIVERED, MERGED, now - KEPT, _KEPT_COUNT),
            )
            lost = self._deliveries("status = ? AND done_at < ?", (DEAD, now - age))
            self._delete(lost)
            for one in self._beyond(size):
                if one.status in (WAITING, DEAD):
                    self._delete([one])
                    lost.append(one)
                else:
                    self._db.execute("UPDATE deliveries SET body = NULL WHERE number = ?", (one.number,))
        return [(one.sink, one.status) for one in lost]

    def _beyond(self, size: int) -> list[Delivery]:
        """Return what does not fit into so many bytes, the most important being kept."""
        rows = self._ask(
            "SELECT number, length(body) FROM deliveries WHERE body IS NOT NULL"
            " ORDER BY status = 'waiting' DESC, status = 'dead' DESC, number DESC"
        )
        totals = accumulate(length + _OVERHEAD for _, length in rows)
        numbers = [number for (number, _), total in zip(rows, totals, strict=True) if total > size]
        return [one for number in numbers for one in self._deliveries("number = ?", (number,))]

    def abandon(self, sinks: Sequence[str], before: float, now: float) -> None:
        """Make dead letters of what has waited since then for sinks that are none of these: nobody delivers it."""
        marks = ", ".join("?" * len(sinks))
        with self.transaction():
            self._db.execute(
                "UPDATE deliveries SET status = ?, done_at = ?, detail = ? WHERE status = ? AND created_at < ?"  # noqa: S608
                f" AND sink NOT IN ({marks})",
                (DEAD, now, "no sink of this name is configured", WAITING, before, *sinks),
            )
            self._db.execute(f"DELETE FROM alerts WHERE told_at < ? AND sink NOT IN ({marks})", (before, *sinks))  # noqa: S608

    def select(self, sink: str | None, statuses: Sequence[str]) -> list[Delivery]:
        """Return deliveries of one sink or all, in these statuses, the oldest first."""
        return self._page(sink, statuses)

    def revive(self, deliveries: Iterable[Delivery], now: float) -> int:
        """Let dead letters, and what waits for its next attempt, be sent at once; their 24 hours begin anew.

        Their sinks are enabled again. Returns how many there are: not those that a later report of the same incident
        has overtaken, for the sink would take what is over for what is.
        """
        count = 0
        with self.transaction():
            for one in deliveries:
                count += self._db.execute(_REVIVE, {"now": now, **one._asdict()}).rowcount
                self._db.execute("DELETE FROM disabled WHERE sink = ?", (one.sink,))
        return count

    def drop(self, deliveries: Iterable[Delivery]) -> int:
        """Remove dead letters and what waits, for good; return how many."""
        with self.transaction():
            return self._delete(deliveries)

    def _delete(self, deliveries: Iterable[Delivery]) -> int:
        """Remove what is not done, and what the sink would have known by it."""
        count = 0
        for one in deliveries:
            row = (one.number, WAITING, DEAD)
            if not self._db.execute("DELETE FROM deliveries WHERE number = ? AND status IN (?, ?)", row).rowcount:
                continue  # it was delivered meanwhile
            count += 1
            message = one.message
            if message is not None and message.members:
                self._db.execute("DELETE FROM alerts WHERE sink = ? AND alert = ?", (one.sink, message.alert))
                continue
            over = message is not None and message.incident.state == "resolved"
            self._db.execute(
                f"DELETE FROM alerts WHERE sink = ? AND incident = ? AND {'resolved' if over else 'NOT sent'}",  # noqa: S608
                (one.sink, one.incident),
            )
        return count
