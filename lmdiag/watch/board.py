"""What the daemon shows of itself: its status each second, to the state, to /metrics and to the live view."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

from lmdiag import __version__
from lmdiag.errors import UsageError
from lmdiag.watch.counters import DaemonStatus, IncidentStatus, SourceStatus, status_to_json
from lmdiag.watch.tracker import loop_of

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.forward.status import SinkStatus
    from lmdiag.watch.daemon import Daemon
    from lmdiag.watch.live import LiveView
    from lmdiag.watch.stream import Stream
    from lmdiag.watch.tracker import Tracked

EVERY = 1.0
IDLE_EVERY = 15.0
"""Seconds between two statuses while nothing happens: an idle daemon writes nearly nothing."""
_MAX_INCIDENTS = 50
_RATE_SECONDS = 10.0


class Board:
    """Keeps the daemon's status and gives it to those who look."""

    def __init__(self, daemon: Daemon, config: WatchConfig, out: TextIO, now: float, stack: ExitStack) -> None:
        self.config_problem = ""
        self._daemon = daemon
        self._started_at = now
        self._shown_at = 0.0
        self._shown: Any = None
        self._rates: dict[str, tuple[float, int, float]] = {}  # source: when, how many lines, lines a second
        self._monitor: Any = None
        self.problem = ""
        self.address = ""
        """Where it serves, to be told behind a comma; "" for nowhere."""
        if config.listen:
            from lmdiag.watch.metrics import MetricsServer, Monitor

            self._monitor = Monitor(daemon.counters, self.status(now))
            try:
                server = MetricsServer(config.listen, self._monitor)
            except UsageError as error:  # who has the port may be gone at the next start; the logs cannot wait
                self.problem = str(error)
                daemon.say("metrics", f"{error}; going on without /metrics and /healthz")
            else:
                stack.callback(server.close)
                self.address = f", http://{server.address}/metrics"
        self._live = _live_view(config, out, stack)
        if self._live is not None:
            daemon.outlet.live = self._live.print_report

    def update(self, now: float) -> None:
        """Show what has changed, at most once a second."""
        if now - self._shown_at < EVERY:
            return
        counters = self._daemon.counters
        counters.muted_patterns = sum(count for _, count in self._daemon.library.muted_patterns)
        sinks = self._sinks()
        mark = (
            sum(counters.lines.values()),
            sum(counters.reports.values()),
            self.config_problem,
            self._problems(),
            sinks,
        )
        if mark == self._shown and now - self._shown_at < IDLE_EVERY:
            return
        self._shown, self._shown_at = mark, now
        self.show(now)

    def show(self, now: float) -> None:
        """Show how things are, whatever was shown before; also the last thing to be done."""
        status = self.status(now)
        self._daemon.keep_status(status_to_json(status))
        if self._monitor is not None:
            self._monitor.update(status)
        if self._live is not None:
            self._live.update(status)

    def _sinks(self) -> tuple[SinkStatus, ...]:
        forwarder = self._daemon.handover.forwarder
        return forwarder.statuses() if forwarder else ()

    def _problems(self) -> tuple[str, ...]:
        return tuple(stream.source.problem for stream in self._daemon.streams.all())

    def status(self, now: float) -> DaemonStatus:
        """Return what there is to say of the daemon now."""
        daemon = self._daemon
        incidents = daemon.tracker.incidents
        shown = sorted(incidents, key=lambda item: not item.open)[:_MAX_INCIDENTS]
        return DaemonStatus(
            pid=os.getpid(),
            version=__version__,
            started_at=self._started_at,
            now=time.time(),  # it is read by the machine's clock
            sources=tuple(self._source(stream, now, incidents) for stream in daemon.streams.all()),
            incidents=tuple(_incident(item) for item in shown),
            queue=len(daemon.untold),
            dropped=tuple((source, why, count) for (source, why), count in daemon.counters.dropped.items() if count),
            config_problem=self.config_problem or self.problem,
            sinks=self._sinks(),
            ready=all(stream.caught_up for stream in daemon.streams.all()),
        )

    def _source(self, stream: Stream, now: float, incidents: list[Tracked]) -> SourceStatus:
        source, counters = stream.source, self._daemon.counters
        position = source.position()
        return SourceStatus(
            name=source.name,
            kind=stream.kind,
            problem=source.problem,
            required=source.required,
            generation=source.generation,
            offset=position.get("offset", 0),
            lag=source.lag(),
            lines=counters.lines.get(source.name, 0),
            bytes=counters.bytes.get(source.name, 0),
            lines_per_second=self._rate(source.name, counters.lines.get(source.name, 0), now),
            last_line_at=stream.read_at,
            open_incidents=sum(item.open and item.source == source.name for item in incidents),
        )

    def _rate(self, name: str, lines: int, now: float) -> float:
        since, before, rate = self._rates.get(name, (self._started_at, 0, 0.0))
        if now - since >= _RATE_SECONDS:
            rate = (lines - before) / (now - since)
            self._rates[name] = (now, lines, rate)
        elif name not in self._rates:
            self._rates[name] = (since, before, rate)
        return rate


def _incident(item: Tracked) -> IncidentStatus:
    incident = item.incident
    return IncidentStatus(
        id=item.id,
        state="resolved" if not item.open else "repeated" if item.count > 1 else "opened",
        severity=incident.severity,
        card=incident.card,
        title=incident.title,
        source=item.source,
        count=item.count,
        opened_at=item.opened_at,
        last_at=item.last_at,
        outcome=item.outcome,
        loop=loop_of(item),
    )


def _live_view(config: WatchConfig, out: TextIO, stack: ExitStack) -> LiveView | None:
    wanted = config.live if config.live is not None else out.isatty() and config.format == "text" and not config.once
    if not wanted:
        return None
    from rich.console import Console

    from lmdiag.watch.live import LiveView

    view = LiveView(Console(file=out, width=config.width))
    stack.callback(view.stop)
    return view
