"""A small HTTP server with bounds: a few threads, requests of a bounded size, and no connection for ever."""

from __future__ import annotations

import re
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.errors import UsageError
from lmdiag.settings.values import address as split_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from email.message import Message

PLAIN = "text/plain; charset=utf-8"
_REQUEST_SECONDS = 10.0
"""In which a request must have come, and its answer have gone; what is in between has its own bound."""
_DISCARDED = 16 << 20
"""Bytes of a body that is too large which are still taken, so that its sender reads the answer and no reset."""
_LENGTH = re.compile(r"[0-9]{1,18}")


class Request(NamedTuple):
    """What a client wants."""

    method: str
    path: str
    query: str
    """What stands behind the `?`, as it was sent."""
    headers: Message
    body: bytes


class Reply(NamedTuple):
    """What it gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()


class HttpServer:
    """The server, in threads that end with the process. It keeps no access log."""

    def __init__(
        self,
        listen: str,
        respond: Callable[[Request], Reply],
        *,
        purpose: str,
        advice: str,
        threads: int,
        seconds: float = 0.0,
        max_body: int = 0,
    ) -> None:
        """Bind to `listen`, `host:port` or `[address]:port`; port 0 takes a free one. Raises UsageError.

        `respond` is called in a thread of each of at most `threads` requests, others are turned away; it takes up to
        `seconds`. A body has at most `max_body` bytes. An error says by `purpose` what the address is wanted for, and
        by `advice` what to do if another program has it.
        """
        found = split_address(listen)
        if found is None:
            raise UsageError(f"cannot listen on {listen!r}: it must be host:port, as 127.0.0.1:9477 or [::1]:9477")
        host, port = found
        self._server = _bind(host, port, f"cannot listen on {listen} for {purpose}", advice)
        self._server.respond, self._server.threads = respond, threads
        self._server.seconds, self._server.max_body = seconds, max_body
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name=purpose, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering; takes up to half a second."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _bind(host: str, port: int, failed: str, advice: str) -> _Server:
    import socket

    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]  # fmt: skip
        return _Server(family, (str(address[0]), port))
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"{failed}: {reason}; if another lmdiag or program has that address, {advice}") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16
    respond: Callable[[Request], Reply]
    threads: int
    seconds: float
    max_body: int

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int]) -> None:
        self.address_family = family
        self._open: dict[socket.socket, float] = {}  # until when
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own looks the host's name up, which can take seconds where DNS does not answer.
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = len(self._open) >= self.threads
            if not full:
                self._open[request] = time.monotonic() + _REQUEST_SECONDS
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def allow(self, request: Any, seconds: float) -> None:
        """Give a connection so long from now on."""
        with self._lock:
            if request in self._open:
                self._open[request] = time.monotonic() + seconds

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that take too long: one byte now and then keeps any timeout of a single read from striking."""
        import contextlib
        import socket

        with self._lock:
            overdue = [one for one, until in self._open.items() if time.monotonic() > until]
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

    def _any(self) -> None:
        body = self._body()
        if isinstance(body, Reply):
            self._reply(body)
            return
        self.server.allow(self.connection, self.server.seconds + _REQUEST_SECONDS)
        path, _, query = self.path.partition("?")
        reply = self.server.respond(Request(self.command, path, query, self.headers, body))
        self.server.allow(self.connection, _REQUEST_SECONDS)
        self._reply(reply)

    do_GET = do_HEAD = do_POST = _any  # noqa: N815 (the names are http.server's)

    def _body(self) -> bytes | Reply:
        """Read the body, or say why it is not taken."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers:
            return Reply(HTTPStatus.LENGTH_REQUIRED, b"the body needs a Content-Length\n")
        if not lengths:
            return b""
        if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
            return Reply(HTTPStatus.BAD_REQUEST, b"Content-Length is no number\n")
        length = int(lengths[0])
        if length > self.server.max_body:
            self._discard(min(length, _DISCARDED))
            text = f"the body has more than {self.server.max_body} bytes\n"
            return Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text.encode())
        body = self.rfile.read(length)
        if len(body) < length:
            return Reply(HTTPStatus.BAD_REQUEST, b"the body breaks off\n")
        return body

    def _discard(self, size: int) -> None:
        while size > 0 and (data := self.rfile.read(min(size, 1 << 16))):
            size -= len(data)

    def _reply(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Keep no access log: a scrape every few seconds is nothing to tell."""
