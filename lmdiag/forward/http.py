"""One POST and its answer: verified, never redirected, never repeated, and over when its time is.

urllib3 limits the pauses of a connection, not the whole, and nothing limits the look-up of a name. So a request has a
thread of its own; when the time is up its connection is cut, and what came so far is the answer.

Only the sinks import this module, and those are loaded when the configuration names them: a scan needs no urllib3.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from urllib3 import BaseHTTPResponse, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from lmdiag import __version__
from lmdiag.config import SinkConfig
from lmdiag.forward.credentials import CredentialError, masked
from lmdiag.forward.http_problems import explain, netloc, origin
from lmdiag.forward.http_route import manager, proxy_of, proxy_secrets
from lmdiag.report.control import one_line, visible

MAX_BODY = 16 << 10
"""Bytes of an answer that are read."""

# urllib3 logs whole URLs, and a webhook's path may be its password.
logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)


class Request(NamedTuple):
    """What is posted."""

    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]
    """What must be masked wherever the request or its answer is shown; the URL is one of them if it is a secret."""


class Answer(NamedTuple):
    """What came back."""

    status: int | None
    """None: no answer."""
    headers: Mapping[str, str]
    """Their names in lower case."""
    body: bytes
    """At most the first MAX_BODY bytes, fewer where it broke off."""
    problem: str
    """Why there is no answer: one line without secrets; "" if there is one."""


def post(request: Request, config: SinkConfig) -> Answer:
    """Send the request and wait for its answer, `config.timeout` seconds at most for everything.

    No receiver can cause an exception. Once a status has come it counts, whatever becomes of the rest. Secrets that the
    answer repeats are masked in all of it.
    """
    exchange = _Exchange(request, config)
    exchange.start()
    return _masked(exchange.wait(), (*request.secrets, *proxy_secrets(request.url)))


def shown(request: Request) -> str:
    """Write the request as a person reads it, with its secrets masked."""
    url = f"{origin(request.url)}/[…]" if request.url in request.secrets else request.url
    head = "".join(f"{name}: {value}\n" for name, value in request.headers)
    rest = masked(f"{head}\n{request.body.decode('utf-8', 'replace')}", request.secrets)
    return f"POST {visible(url)}\n{visible(rest)}"


def _masked(answer: Answer, secrets: tuple[str, ...]) -> Answer:
    body = masked(answer.body.decode("utf-8", "surrogateescape"), secrets).encode("utf-8", "surrogateescape")
    headers = {name: masked(value, secrets) for name, value in answer.headers.items()}
    return answer._replace(headers=headers, body=body, problem=masked(answer.problem, secrets))


class _Exchange(threading.Thread):
    """A request on its way. The thread may outlive its time, waiting for a name's look-up, but sends nothing then."""

    def __init__(self, request: Request, config: SinkConfig) -> None:
        super().__init__(name=f"{config.name}-post", daemon=True)
        self._request = request
        self._config = config
        self._answer: Answer | None = None
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._over = False

    def wait(self) -> Answer:
        """Return the answer, or what there is of it when the time is up."""
        done = self._done.wait(self._config.timeout)
        connected = self._cut()
        if self._answer is not None:
            return self._answer
        assert not done, "an error of our own: its traceback is printed"
        what = "answer" if connected else f"connection to {netloc(self._request.url)}"
        return _no_answer(f"no {what} within {self._config.timeout:g}s")

    def run(self) -> None:
        """Send the request and take in the answer, piece by piece."""
        try:
            with manager(self._request.url, self._config) as pools:
                self._exchange(pools)
        except CredentialError as error:
            self._take(_no_answer(one_line(str(error))))
        except (HTTPError, OSError) as error:
            if self._answer is None:
                self._take(_no_answer(explain(error, self._request.url, proxy_of(self._request.url))))
        finally:
            self._done.set()
            self._cut()

    def watch(self, connection: socket.socket) -> socket.socket:
        """Note a new connection, to cut it when the time is up."""
        with self._lock:
            if self._over:
                connection.close()
                raise TimeoutError
            # A duplicate: TLS takes the connection out of the socket that was opened.
            self._connection = connection.dup()
        return connection

    def _cut(self) -> bool:
        """End the connection, in whatever step it is, and allow no other; say whether there was one."""
        with self._lock:
            self._over = True
            if self._connection is None:
                return False
            with suppress(OSError):  # the receiver was faster
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()
            self._connection = None
            return True

    def _exchange(self, pools: PoolManager) -> None:
        pool = pools.connection_from_url(self._request.url)
        pool.ConnectionCls = _Tls if isinstance(pool, HTTPSConnectionPool) else _Plain
        pool.conn_kw["exchange"] = self
        response = pools.urlopen(
            "POST",
            self._request.url,
            body=self._request.body,
            headers=self._headers(),
            timeout=self._config.timeout + 1,  # of one step; it only lets a thread end that is not waited for any more
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,  # what is not unpacked cannot swell
        )
        try:
            self._read(response)
        finally:
            response.close()

    def _headers(self) -> dict[str, str]:
        return {"User-Agent": f"lmdiag/{__version__}", "Connection": "close"} | dict(self._request.headers)

    def _read(self, response: BaseHTTPResponse) -> None:
        answer = Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, b"", "")
        while self._take(answer) and (piece := response.read1(MAX_BODY - len(answer.body))):
            answer = answer._replace(body=answer.body + piece)

    def _take(self, answer: Answer) -> bool:
        """Note what has come so far, unless the time is up: a connection that is cut looks like one that has ended."""
        with self._lock:
            if not self._over:
                self._answer = answer
            return not self._over


def _no_answer(problem: str) -> Answer:
    return Answer(None, {}, b"", problem)


class _Plain(HTTPConnection):
    """A connection that an exchange can cut."""

    def __init__(self, *arguments: Any, exchange: _Exchange, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._exchange = exchange

    def _new_conn(self) -> socket.socket:
        return self._exchange.watch(super()._new_conn())


class _Tls(HTTPSConnection):
    """The same with TLS: what is watched is the connection below it, also during the handshake."""

    def __init__(self, *arguments: Any, exchange: _Exchange, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._exchange = exchange

    def _new_conn(self) -> socket.socket:
        return self._exchange.watch(super()._new_conn())
