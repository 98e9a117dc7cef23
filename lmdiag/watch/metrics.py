"""`/metrics` and `/healthz`: what Prometheus scrapes, and what a supervisor asks."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from lmdiag.http_server import HttpServer, Reply, Request
from lmdiag.report.control import one_line
from lmdiag.watch.health import Health

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmdiag.watch.counters import Counters, DaemonStatus

_THREADS = 4
"""Requests that are answered at the same time; more than these are turned away."""


class Monitor:
    """What the server shows. The loop gives it each new status; the server's threads ask."""

    def __init__(self, counters: Counters, status: DaemonStatus, *, clock: Callable[[], float] = time.time) -> None:
        self.counters = counters
        self.status = status
        self._clock = clock
        self._health = Health()
        self._registry: Any = None
        self._lock = threading.Lock()
        self.update(status)

    def update(self, status: DaemonStatus) -> None:
        """Take the newest status; to be called each second."""
        self.status = status
        self._health.update(status)

    def health(self) -> tuple[HTTPStatus, str]:
        """Answer /healthz: 200 and "ok", or 503 and one line for each problem."""
        problems = self._health.problems(self._clock(), self.counters.last_step)
        if not problems:
            return HTTPStatus.OK, "ok\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, "".join(one_line(problem) + "\n" for problem in problems)

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """Answer /metrics: (content type, body), in the format that the header `accept` asks for."""
        # Imported with the first scrape: it costs 5 MB, which a node without Prometheus need not pay.
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        with self._lock:
            if self._registry is None:
                self._registry = _registry(self)
        return content_type, encode(self._registry)

    def respond(self, request: Request) -> Reply:
        """Answer a request for either of them."""
        if request.method not in ("GET", "HEAD"):
            return Reply(HTTPStatus.NOT_IMPLEMENTED, b"there is nothing to send here\n")
        if request.path == "/metrics":
            content_type, body = self.metrics(request.headers.get("Accept", ""))
            return Reply(HTTPStatus.OK, body, content_type)
        if request.path == "/healthz":
            code, text = self.health()
            return Reply(code, text.encode("utf-8", "replace"))
        return Reply(HTTPStatus.NOT_FOUND, b"there are /metrics and /healthz\n")


def _registry(monitor: Monitor) -> Any:
    from prometheus_client import CollectorRegistry, ProcessCollector

    from lmdiag.watch.families import Families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(monitor.counters, lambda: monitor.status))
    ProcessCollector(registry=registry)
    return registry


class MetricsServer(HttpServer):
    """The HTTP server of a monitor."""

    def __init__(self, listen: str, monitor: Monitor) -> None:
        """Bind to `listen`; see HttpServer. Raises UsageError."""
        advice = 'set `listen` to another one, or to "" for none'
        super().__init__(listen, monitor.respond, purpose="metrics", advice=advice, threads=_THREADS)
