"""A receiver on loopback that a test programs: what it answers, and what it was sent."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from planted import assert_clean


class Taken(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Their names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Answer(NamedTuple):
    """What the receiver answers."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


_OK = Answer()
Behaviour = Answer | Callable[[socket.socket], None]
"""An answer, or what is done with the connection instead of one."""


class Receiver:
    """Answers with what stands in `answers`, one after the other, then for ever with `default`.

    What it was sent is in `taken`, also what it answered with an error. When it closes it looks for the planted secrets.
    """

    def __init__(
        self,
        answers: Sequence[Behaviour] = (),
        default: Behaviour = _OK,
        *,
        tls: ssl.SSLContext | None = None,
        own: Sequence[str] = (),
    ) -> None:
        """`own`: those of planted.CREDENTIALS that it is to be sent."""
        self._own = own
        self.answers = list(answers)
        self.default = default
        self.taken: list[Taken] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.receiver = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if kind is None:
            for one in self.taken:
                assert_clean(one.body, "the body of a request", own=self._own)
                assert_clean(f"{one.path}{dict(one.headers)}", "the head of a request", own=self._own)

    def take(self, request: Taken) -> Behaviour:
        """Note a request, and say what is answered."""
        with self._lock:
            self.taken.append(request)
            self._arrived.notify_all()
            return self.answers.pop(0) if self.answers else self.default

    def wait_for(self, count: int, seconds: float = 30) -> list[Taken]:
        """Wait until so many requests have come, and return them."""
        with self._arrived:
            found = self._arrived.wait_for(lambda: len(self.taken) >= count, seconds)
            assert found, f"only {len(self.taken)} of {count} requests came in {seconds} s"
            return list(self.taken)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    receiver: Receiver

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        behaviour = self.server.receiver.take(Taken(self.command, self.path, headers, body))
        if not isinstance(behaviour, Answer):
            behaviour(self.connection)
            self.close_connection = True
            return
        self.send_response(behaviour.status)
        for name, value in behaviour.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(behaviour.body)))
        self.end_headers()
        self.wfile.write(behaviour.body)

    do_GET = do_POST = do_PUT = _any  # noqa: N815 (the names are http.server's)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def hang(connection: socket.socket) -> None:
    """Answer nothing until the client gives up."""
    while connection.recv(4096):
        pass


def reset(connection: socket.socket) -> None:
    """End the connection with RST instead of an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


def half(connection: socket.socket) -> None:
    """Break off in the middle of the answer's head."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


def endless(connection: socket.socket) -> None:
    """Answer 200 and a body without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    try:
        while True:
            connection.sendall(b"x" * 65536)
    except OSError:
        return
