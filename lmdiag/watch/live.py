"""The live view of `lmdiag watch` on a terminal: sources and open incidents below, reports scroll above."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lmdiag.report.amounts import size
from lmdiag.report.control import clip, one_line
from lmdiag.report.text import print_blocks
from lmdiag.report.watched import watched_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console, RenderableType

    from lmdiag.model import Card, Incident
    from lmdiag.watch.counters import DaemonStatus, IncidentStatus, SourceStatus

_PAUSE = 0.5
"""Seconds between two refreshes."""
_NARROW = 70
"""Below so many columns a source has two lines."""
_NAME_LIMIT = 200
_TITLE_LIMIT = 100
_STYLES = {"critical": "bold white on red", "error": "bold red", "warning": "yellow", "info": "cyan"}


class _Row(NamedTuple):
    name: str
    problem: str
    rate: str
    lag: str
    last: str


class _View(NamedTuple):
    """What is shown, as text: two equal ones need no refresh. So times are of the clock, and not "3 s ago"."""

    head: str
    rows: tuple[_Row, ...] = ()
    incidents: tuple[tuple[str, str], ...] = ()
    """(severity, text)"""


class LiveView:
    """Owns the terminal's last lines from its making to `stop`. All calls come from one thread."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives the seconds by which refreshes are spread."""
        self._console = console
        self._clock = clock
        self._shown: _View | None = None
        self._shown_size = (0, 0)
        self._refreshed: float | None = None
        # A standard error that goes to a file must go there; on the terminal it would tear the view.
        errors_too = sys.stderr.isatty()
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=errors_too
        )
        self._live.start()

    def update(self, status: DaemonStatus) -> bool:
        """Show the status, unless nothing has changed or the last refresh was just now. Tells whether it was shown."""
        now = self._clock()
        if self._refreshed is not None and now - self._refreshed < _PAUSE:
            return False
        size_now = (self._console.width, self._console.height)
        view = _view(status, max(2, size_now[1] // 3))
        if view == self._shown and size_now == self._shown_size:
            return False
        self._shown, self._shown_size, self._refreshed = view, size_now, now
        self._live.update(_render(view, size_now[0]), refresh=True)
        return True

    def print_report(self, incident: Incident, card: Card | None = None) -> None:
        """Print the incident's report above the view. `card` is the one that `incident.card` names."""
        file = io.StringIO()
        color = self._console.color_system is not None and not self._console.no_color
        blocks = watched_blocks(incident, card)
        print_blocks(blocks, file=file, color=color, width=self._console.width)
        # The text has been made safe, and its colours are our own: none of it is markup.
        self._console.print(Text.from_ansi(file.getvalue() + "\n"), soft_wrap=True, highlight=False)

    def stop(self) -> None:
        """Take the view away, and give the terminal its cursor back. May be called again."""
        self._live.stop()


def _view(status: DaemonStatus, limit: int) -> _View:
    open_now = [incident for incident in status.incidents if incident.state != "resolved"]
    sources = sorted(status.sources, key=_urgency)
    rows = [_row(source) for source in sources[:limit]]
    behind = f", {status.queue} reports waiting" if status.queue else ""
    head = f"lmdiag {one_line(status.version)} · {_count(len(sources), 'source')}"
    if len(sources) > len(rows):
        head += f" ({len(rows)} shown)"
    head += f" · {_count(len(open_now), 'open incident')}{behind}"
    if status.config_problem:
        head += f" · configuration: {one_line(status.config_problem)}"
    shown = tuple((incident.severity, _incident(incident)) for incident in open_now[:limit])
    more = (("info", f"and {len(open_now) - len(shown)} more"),) if len(open_now) > len(shown) else ()
    return _View(head, tuple(rows), shown + more)


def _urgency(source: SourceStatus) -> tuple[bool, bool, float]:
    """What is wrong comes first, then what is busy: a screen may not hold all."""
    return not source.problem, not source.open_incidents, -(source.last_line_at or 0)


def _row(source: SourceStatus) -> _Row:
    last = time.strftime("%H:%M:%S", time.localtime(source.last_line_at)) if source.last_line_at else "-"
    name = clip(one_line(source.name), _NAME_LIMIT)
    problem = clip(one_line(source.problem), _NAME_LIMIT)
    return _Row(name, problem, f"{source.lines_per_second:,.0f}/s", size(source.lag), last)


def _incident(incident: IncidentStatus) -> str:
    times = f" ({incident.count:,} times)" if incident.count > 1 else ""
    title = clip(one_line(incident.title), _TITLE_LIMIT)
    return f"{title}{times} in {clip(one_line(incident.source), _NAME_LIMIT)}"


def _render(view: _View, width: int) -> RenderableType:
    table = _narrow(view.rows) if width < _NARROW else _wide(view.rows)
    incidents = [
        Text.assemble((severity.upper(), _STYLES.get(severity, "")), " ", text, overflow="fold")
        for severity, text in view.incidents
    ]
    head = Text(view.head, style="dim", overflow="fold")
    return Group(head, *([table] if view.rows else []), *incidents)


def _wide(rows: Sequence[_Row]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=False, header_style="dim")
    table.add_column("source", overflow="fold", ratio=1)
    for title in ("lines/s", "behind", "last line"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(_name(row), Text(row.rate), Text(row.lag), Text(row.last))
    return table


def _narrow(rows: Iterable[_Row]) -> Table:
    table = Table.grid(expand=False)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(_name(row))
        table.add_row(Text(f"  {row.rate}, {row.lag} behind, {row.last}", style="dim"))
    return table


def _name(row: _Row) -> Text:
    text = Text(row.name, overflow="fold")
    return text.append(f" {row.problem}", style="red") if row.problem else text


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
