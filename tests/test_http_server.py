"""The bounded HTTP server: what it passes on, and what it turns away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from lmdiag import http_server
from lmdiag.errors import UsageError
from lmdiag.http_server import HttpServer, Reply, Request
from lmdiag.settings.values import address

MAX_BODY = 1000


class Echo:
    """Answers with what it was asked, and keeps it."""

    def __init__(self) -> None:
        self.taken: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        """Answer with the body."""
        self.taken.append(request)
        if request.path == "/bug":
            raise RuntimeError("PLANTED a bug's text")
        return Reply(HTTPStatus.OK, request.body, headers=(("X-Own", "1"),))


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def server(echo: Echo) -> Iterator[HttpServer]:
    running = HttpServer("127.0.0.1:0", echo, purpose="tests", advice="give up", threads=3, max_body=MAX_BODY)
    yield running
    running.close()


def exchange(server: HttpServer, sent: bytes) -> bytes:
    """Send bytes and return all that is answered until the connection ends."""
    with socket.create_connection(address(server.address) or ("", 0), timeout=30) as connection:
        connection.sendall(sent)
        answer = b""
        while data := connection.recv(4096):
            answer += data
    return answer


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def test_a_request_is_passed_on_and_answered(server: HttpServer, echo: Echo) -> None:
    answer = exchange(server, b"POST /a/b?c=d%20e&f HTTP/1.1\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello")
    (taken,) = echo.taken
    assert (taken.method, taken.path, taken.query, taken.body) == ("POST", "/a/b", "c=d%20e&f", b"hello")
    assert taken.headers["x-a"] == "b"
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (status(answer), body) == (200, b"hello")
    assert b"X-Own: 1" in head
    assert b"Python" not in head


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (b"Content-Length: -1\r\n\r\n", 400),
        (b"Content-Length: 1e3\r\n\r\n", 400),
        (b"Content-Length: \xb2\r\n\r\n", 400),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"Content-Length: 1001\r\n\r\n" + 1001 * b"x", 413),
        (b"Content-Length: 5000000\r\n\r\n" + 5_000_000 * b"x", 413),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 411),
        (b"X: y\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_a_body_that_is_not_taken_is_answered(server: HttpServer, echo: Echo, headers: bytes, expected: int) -> None:
    assert status(exchange(server, b"POST / HTTP/1.1\r\n" + headers)) == expected
    assert echo.taken == []


def test_a_body_that_breaks_off_is_not_passed_on(server: HttpServer, echo: Echo) -> None:
    with socket.create_connection(address(server.address) or ("", 0), timeout=30) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_WR)
        assert status(connection.recv(4096)) == 400
    assert echo.taken == []


def test_a_slow_body_is_cut_off(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server._Handler, "timeout", 60.0)
    monkeypatch.setattr(http_server, "_REQUEST_SECONDS", 0.0)
    assert exchange(server, b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nx")[:12] in (b"", b"HTTP/1.0 400")


def test_a_bug_is_not_shown_to_the_client(server: HttpServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert exchange(server, b"GET /bug HTTP/1.1\r\n\r\n") == b""
    assert "PLANTED a bug's text" in capfd.readouterr().err
    assert status(exchange(server, b"GET / HTTP/1.1\r\n\r\n")) == 200


@pytest.mark.parametrize("listen", ["", "localhost", "1.2.3.4:x", "127.0.0.1:70000"])
def test_what_is_no_address_is_refused(listen: str, echo: Echo) -> None:
    with pytest.raises(UsageError, match="host:port"):
        HttpServer(listen, echo, purpose="tests", advice="give up", threads=1)


def test_an_address_that_is_taken_is_refused(server: HttpServer, echo: Echo) -> None:
    with pytest.raises(UsageError, match=r"for tests: .*give up"):
        HttpServer(server.address, echo, purpose="tests", advice="give up", threads=1)
