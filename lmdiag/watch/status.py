"""`lmdiag status`: what the daemon said of itself last, and whether it runs at all."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lmdiag.errors import UsageError
from lmdiag.report.amounts import size
from lmdiag.report.control import clip
from lmdiag.report.layout import Block, Span
from lmdiag.watch.counters import DaemonStatus, status_from_json, status_object
from lmdiag.watch.health import current_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmdiag.forward.status import SinkStatus
    from lmdiag.watch.counters import IncidentStatus, SourceStatus

RUNNING, TROUBLED, STOPPED = 0, 1, 3
"""Exit codes; 3 is what `systemctl status` says of a service that does not run (LSB)."""

_SHOWN_SOURCES = 100
_SHOWN_INCIDENTS = 10
_TITLE_LIMIT = 120
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))


def status(
    state_directory: str,
    format: str,
    color: bool | None,
    width: int | None,
    out: TextIO,
    *,
    clock: Callable[[], float] = time.time,
) -> int:
    """Write the status kept in `state_directory` as text, or as one JSON object where `format` is jsonl.

    Returns RUNNING, TROUBLED or STOPPED. Raises UsageError if the state cannot be read, or is not lmdiag's.
    """
    running = is_running(state_directory)
    known = read_status(state_directory, running=running)
    problems = current_problems(known, clock()) if known and running else []
    if format == "jsonl":
        from lmdiag.report.jsonl import dumps

        told = status_object(known) if known else None
        out.write(dumps({"kind": "status", "running": running, "problems": problems, "status": told}) + "\n")
    else:
        from lmdiag.report.text import print_blocks

        blocks = status_blocks(known, problems, clock(), running=running, state_directory=state_directory)
        print_blocks(blocks, file=out, color=color, width=width)
    return STOPPED if not running else TROUBLED if problems or known is None else RUNNING


def is_running(state_directory: str) -> bool:
    """Whether a daemon holds the lock of the state directory. Raises UsageError if that may not be asked."""
    import fcntl

    try:
        with (Path(state_directory) / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back at once, with the file
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(state_directory, error.strerror or str(error)) from error
    return False


def read_status(state_directory: str, *, running: bool) -> DaemonStatus | None:
    """Read the last status; None: there is no state, or a daemon that has only just begun. Raises UsageError."""
    import sqlite3

    path = Path(state_directory) / "state.db"
    if not path.exists():
        return None
    try:
        text = _stored(path)
        return status_from_json(text) if text is not None else None
    except (sqlite3.Error, ValueError) as error:
        if running and "no such table" in str(error):  # it is just being made
            return None
        raise _unreadable(str(path), str(error)) from error


def _stored(path: Path) -> str | None:
    from contextlib import closing

    from lmdiag.database import connect_readonly

    with closing(connect_readonly(path)) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'status'").fetchone()
    return None if row is None else str(row[0])


def _unreadable(path: str, why: str) -> UsageError:
    return UsageError(
        f"cannot read the state at {path}: {why}; "
        "name the daemon's state directory with --state, and ask as its user or as root"
    )


def status_blocks(
    known: DaemonStatus | None, problems: Sequence[str], now: float, *, running: bool, state_directory: str
) -> list[Block]:
    """Build the report: whether it runs, what is wrong, sources, incidents, drops. `now` is in unix seconds."""
    if known is None:
        told = "the daemon has not told anything yet" if running else f"no daemon has run with {state_directory}"
        return [_title(running=running, troubled=running), Block("paragraph", (Span(told),))]
    blocks = [_title(running=running, troubled=bool(problems)), *_daemon(known, now, running=running)]
    blocks += _section("Problems", [_item(Span(problem, "log")) for problem in problems])
    blocks += _section("Sources", [_source(source, now) for source in known.sources[:_SHOWN_SOURCES]])
    blocks += _more(len(known.sources) - _SHOWN_SOURCES, "sources")
    blocks += _section("Sinks", [_sink(sink, now) for sink in known.sinks])
    open_now = [incident for incident in known.incidents if incident.state != "resolved"]
    blocks += _section("Open incidents", [_incident(incident, now) for incident in open_now])
    last = [incident for incident in known.incidents if incident.state == "resolved"]
    blocks += _section("Resolved", [_incident(incident, now) for incident in last[:_SHOWN_INCIDENTS]])
    drops = [_item(Span(source, "log"), Span(f": {count:,} ({reason})")) for source, reason, count in known.dropped]
    return blocks + _section("Dropped", drops[:_SHOWN_SOURCES]) + _more(len(drops) - _SHOWN_SOURCES, "reasons")


def _title(*, running: bool, troubled: bool) -> Block:
    if not running:
        return Block("title", (Span("STOPPED", "error"),))
    return Block("title", (Span("RUNNING", "warning" if troubled else "strong"),))


def _daemon(known: DaemonStatus, now: float, *, running: bool) -> list[Block]:
    since = f"for {duration(now - known.started_at)}" if running else f"was seen {duration(now - known.now)} ago"
    reading = "" if known.ready or not running else ", still starting"
    return [
        _field("Process", Span(f"{known.pid}, {since}{reading}, lmdiag {known.version}")),
        _field("As of", Span(f"{duration(now - known.now)} ago")),
        _field("Reports", Span(f"{known.queue:,} waiting" if known.queue else "none waiting")),
    ]


def _source(source: SourceStatus, now: float) -> Block:
    state = Span("unreadable", "error") if source.problem else Span("read")
    facts = [f"{source.lines_per_second:,.1f} lines/s", f"{size(source.lag)} behind", f"at {size(source.offset)}"]
    if source.last_line_at:
        facts.append(f"last line {duration(now - source.last_line_at)} ago")
    if source.open_incidents:
        facts.append(f"{source.open_incidents} open")
    return _item(Span(source.name, "log"), Span(": "), state, Span(", " + ", ".join(facts)))


def _sink(sink: SinkStatus, now: float) -> Block:
    facts = [f"{dict(sink.results).get('delivered', 0):,} delivered", f"{sink.waiting:,} waiting"]
    if sink.oldest_at:
        facts[-1] += f" for {duration(now - sink.oldest_at)}"
    if sink.dead:
        facts.append(f"{sink.dead:,} dead letters (lmdiag outbox list)")
    problem = (Span(": "), Span(sink.problem, "log")) if sink.problem else ()
    return _item(Span(sink.name, "log"), Span(f" ({sink.type}): " + ", ".join(facts)), *problem)


def _incident(incident: IncidentStatus, now: float) -> Block:
    times = f", {incident.count:,} times" if incident.count > 1 else ""
    loop = f", crash loop: {incident.loop.times} in {duration(incident.loop.seconds)}" if incident.loop else ""
    return _item(
        Span(incident.severity.upper(), incident.severity),
        Span(" "),
        Span(clip(incident.title, _TITLE_LIMIT), "log"),
        Span(" in "),
        Span(incident.source, "log"),
        Span(f"{times}{loop}, last {duration(now - incident.last_at)} ago ({incident.id})"),
    )


def _field(label: str, *spans: Span) -> Block:
    return Block("field", spans, label)


def _item(*spans: Span) -> Block:
    return Block("item", spans, "-")


def _section(title: str, body: list[Block]) -> list[Block]:
    return [Block("heading", (Span(title),)), *body] if body else []


def _more(count: int, what: str) -> list[Block]:
    return [_item(Span(f"and {count} more {what}", "dim"))] if count > 0 else []


def duration(seconds: float) -> str:
    """Say a time span in its two largest units: `3 h 12 min`; the clock's steps back are 0 s."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for name, length in _UNITS:
        if left >= length and len(parts) < 2:
            parts.append(f"{left // length} {name}")
            left %= length
    return " ".join(parts) if parts else f"{left} s"
