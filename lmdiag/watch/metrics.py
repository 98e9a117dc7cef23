"""`/metrics` and `/healthz`: what Prometheus scrapes, and what a supervisor asks."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from lmdiag.errors import UsageError
from lmdiag.report.control import one_line
from lmdiag.settings.values import address as split_address
from lmdiag.watch.health import Health

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from lmdiag.watch.counters import Counters, DaemonStatus

_THREADS = 4
"""Requests that are answered at the same time; more than these are turned away."""
_REQUEST_SECONDS = 10.0
"""After this a connection is closed, whatever it is doing."""
_PLAIN = "text/plain; charset=utf-8"


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


def _registry(monitor: Monitor) -> Any:
    from prometheus_client import CollectorRegistry, ProcessCollector

    from lmdiag.watch.families import Families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(monitor.counters, lambda: monitor.status))
    ProcessCollector(registry=registry)
    return registry


class MetricsServer:
    """The HTTP server, in threads that end with the process."""

    def __init__(self, listen: str, monitor: Monitor) -> None:
        """Bind to `listen`, `host:port` or `[address]:port`; port 0 takes a free one. Raises UsageError."""
        found = split_address(listen)
        if found is None:
            raise UsageError(f"cannot listen on {listen!r}: it must be host:port, as 127.0.0.1:9477 or [::1]:9477")
        host, port = found
        self._server = _bind(host, port, listen, monitor)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering; takes up to half a second."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _bind(host: str, port: int, listen: str, monitor: Monitor) -> _Server:
    import socket

    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]  # fmt: skip
        return _Server(family, (str(address[0]), port), monitor)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {listen} for metrics: {error.strerror or error}; "
            'if another lmdiag or program has that address, set `listen` to another one, or to "" for none'
        ) from error


class _Server(ThreadingHTTPServer):
    """A few threads, and no connection for ever."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int], monitor: Monitor) -> None:
        self.address_family = family
        self.monitor = monitor
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own looks the host's name up, which can take seconds where DNS does not answer.
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = len(self._open) >= _THREADS
            if not full:
                self._open[request] = time.monotonic()
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that take too long: one byte now and then keeps any timeout of a single read from striking."""
        import contextlib
        import socket

        with self._lock:
            overdue = [one for one, since in self._open.items() if time.monotonic() - since > _REQUEST_SECONDS]
        for connection in overdue:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        import sys

        if not isinstance(sys.exc_info()[1], OSError):  # a client that went away is no fault of ours
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0
    server_version = "lmdiag"
    sys_version = ""
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            content_type, body = self.server.monitor.metrics(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, body)
        elif path == "/healthz":
            code, text = self.server.monitor.health()
            self._answer(code, _PLAIN, text.encode("utf-8", "replace"))
        else:
            self._answer(HTTPStatus.NOT_FOUND, _PLAIN, b"there are /metrics and /healthz\n")

    do_HEAD = do_GET  # noqa: N815 (the name is http.server's)

    def _answer(self, code: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep no access log: a scrape every few seconds is nothing to tell."""
