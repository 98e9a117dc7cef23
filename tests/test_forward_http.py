"""One POST against receivers that behave, and against all those that do not."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from receiver import Answer, Receiver, endless, half, hang, reset

from lmdiag import __version__
from lmdiag.config import SinkConfig
from lmdiag.forward.http import MAX_BODY, Request, post, shown
from lmdiag.forward.http import Answer as Got
from lmdiag.forward.http_route import proxy_of

SHORT = 0.5
"""Seconds, for receivers that would never end."""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_thread_is_left_behind() -> Iterator[None]:
    """Also one whose time was up ends, since its connection is cut. Those of other tests are no concern of these."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name == "x-post":
            thread.join(20)
            assert not thread.is_alive()


def send(url: str, timeout: float = 20, headers: tuple[tuple[str, str], ...] = (), **more: Any) -> Got:
    request = Request(url, b'{"a": 1}', headers, ())
    return post(request, SinkConfig(name="x", type="webhook", timeout=timeout, **more))


def test_posts_the_body_and_returns_the_answer() -> None:
    with Receiver([Answer(202, (("X-Note", "thanks"),), b"taken")]) as receiver:
        got = send(f"{receiver.url}/hook?a=b", headers=(("Content-Type", "application/json"),))
    assert got == Got(202, got.headers, b"taken", "")
    assert got.headers["x-note"] == "thanks"
    (taken,) = receiver.taken
    assert (taken.method, taken.path, taken.body) == ("POST", "/hook?a=b", b'{"a": 1}')
    assert taken.headers["user-agent"] == f"lmdiag/{__version__}"
    assert taken.headers["content-type"] == "application/json"
    assert taken.headers["connection"] == "close"


@pytest.mark.parametrize("status", [400, 410, 429, 500, 503])
def test_a_status_is_an_answer_and_nothing_is_repeated(status: int) -> None:
    with Receiver(default=Answer(status, (("Retry-After", "0"),))) as receiver:
        got = send(receiver.url)
    assert (got.status, got.problem, got.headers["retry-after"]) == (status, "", "0")
    assert len(receiver.taken) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_not_followed(status: int) -> None:
    with Receiver() as other, Receiver([Answer(status, (("Location", f"{other.url}/x"),))]) as receiver:
        got = send(receiver.url, headers=(("Authorization", "Bearer abc"),))
    assert got.status == status
    assert other.taken == []


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert send(f"http://127.0.0.1:{port}").problem == f"connection refused by 127.0.0.1:{port}"


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert send("https://hooks.example.org/secret").problem == "the name hooks.example.org cannot be resolved"


def test_a_name_whose_look_up_hangs_is_given_up_and_nothing_is_sent_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    found = socket.getaddrinfo

    def late(host: str, *arguments: Any) -> Any:
        release.wait(30)
        return found("127.0.0.1", *arguments)

    with Receiver() as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", late)
        request = Request(f"http://hooks.example.org:{receiver.port}/", b"", (), ())
        got = post(request, SinkConfig(name="unresolved", type="webhook", timeout=SHORT))
        (thread,) = [one for one in threading.enumerate() if one.name == "unresolved-post"]
        release.set()
        thread.join(30)
    assert not thread.is_alive()
    assert got.problem == f"no connection to hooks.example.org:{receiver.port} within 0.5s"
    assert receiver.taken == []


def test_a_host_that_is_no_name() -> None:
    label = "a" * 70
    problem = send(f"http://{label}.example.org/secret").problem
    assert "no valid name" in problem
    assert "secret" not in problem


def test_hangs() -> None:
    with Receiver(default=hang) as receiver:
        got = send(receiver.url, SHORT)
    assert got == Got(None, {}, b"", "no answer within 0.5s")


def test_resets() -> None:
    with Receiver(default=reset) as receiver:
        got = send(receiver.url)
    assert got.status is None
    assert got.problem == f"127.0.0.1:{receiver.port} closed the connection before it answered"


def test_breaks_off_before_the_status_has_come() -> None:
    with Receiver(default=lambda connection: connection.sendall(b"HTTP/1.1 20")) as receiver:
        got = send(receiver.url)
    assert got.status is None
    assert got.problem == f"127.0.0.1:{receiver.port} does not answer in HTTP"


@pytest.mark.parametrize(
    "behaviour",
    [
        half,
        lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"),
        lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz"),
    ],
)
def test_a_status_counts_although_the_rest_breaks_off(behaviour: Callable[[socket.socket], None]) -> None:
    with Receiver(default=behaviour) as receiver:
        got = send(receiver.url)
    assert (got.status, got.problem) == (200, "")
    assert got.body in (b"", b"short")


def test_an_endless_body_is_left_unread() -> None:
    with Receiver(default=endless) as receiver:
        got = send(receiver.url)
    assert (got.status, len(got.body)) == (200, MAX_BODY)


def test_a_compressed_answer_is_not_unpacked() -> None:
    with Receiver([Answer(200, (("Content-Encoding", "gzip"),), b"no gzip at all")]) as receiver:
        got = send(receiver.url)
    assert (got.status, got.body) == (200, b"no gzip at all")
    assert receiver.taken[0].headers["accept-encoding"] == "identity"


def drip(head: bytes) -> Callable[[socket.socket], None]:
    """Send the head, then a byte now and then until the client is gone."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(head)
        connection.settimeout(0.02)
        while True:
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                try:
                    connection.sendall(b"x")
                except OSError:
                    return
            except OSError:
                return

    return behave


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nX-Drip: "])
def test_a_head_that_drips_ends_with_the_time(head: bytes) -> None:
    with Receiver(default=drip(head)) as receiver:
        got = send(receiver.url, SHORT)
    assert got == Got(None, {}, b"", "no answer within 0.5s")


def test_a_body_that_drips_ends_with_the_time_and_is_delivered() -> None:
    with Receiver(default=drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthanks ")) as receiver:
        got = send(receiver.url, SHORT)
    assert (got.status, got.problem) == (200, "")
    assert got.body.startswith(b"thanks x")


def test_continues_without_an_end() -> None:
    def go_on(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        except OSError:
            return

    with Receiver(default=go_on) as receiver:
        got = send(receiver.url, SHORT)
    assert got.problem == "no answer within 0.5s"


def test_a_receiver_that_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        request = Request(f"http://127.0.0.1:{server.getsockname()[1]}", b"x" * (16 << 20), (), ())
        got = post(request, SinkConfig(name="x", type="webhook", timeout=SHORT))
    assert got.problem == "no answer within 0.5s"


FRAGMENTS = [
    b"HTTP/1.1 ", b"HTTP/1.0 200 OK\r\n", b"HTTP/9.9 ", b"HTTP/1.1 200", b"HTTP/1.1 100 Continue\r\n\r\n", b"429 Too Many\r\n", b"\r\n",
    b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: 6\r\n", b"Content-Length: -1, x\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n", b"Content-Encoding: gzip\r\n", b"Location: http://[\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n",
    b"ffffffffffffffff\r\n", b"X" * 70_000, b"A: b\r\n" * 200, b": \r\n", b" folded\r\n", b"X-\xff: \x00\r\n", b"\x00",
]  # fmt: skip


def test_no_answer_is_a_surprise() -> None:
    """Whatever a receiver writes, it is an answer or a problem."""
    written = [b""]
    with Receiver(default=lambda connection: connection.sendall(written[0])) as receiver:

        @settings(max_examples=80, deadline=None)
        @given(st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=20), max_size=8))
        def check(fragments: list[bytes]) -> None:
            written[0] = b"".join(fragments)
            got = send(receiver.url)
            assert (got.status is None) == bool(got.problem)
            assert got.problem.isprintable()
            assert "cannot be reached" not in got.problem
            assert len(got.body) <= MAX_BODY

        check()


class Pki(NamedTuple):
    """A certificate of ours for 127.0.0.1, which is its own authority, and one for another name."""

    cert: str
    key: str
    other: str

    def server(self, name: str = "cert", *, clients: bool = False) -> ssl.SSLContext:
        """Make a receiver's context; `clients`: it wants to see the client's certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(getattr(self, name), self.key)
        if clients:
            context.load_verify_locations(self.cert)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    base = tmp_path_factory.mktemp("pki")
    key = base / "key.pem"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key))
    for name, host in (("cert", "IP:127.0.0.1"), ("other", "DNS:other.example.org")):
        openssl(
            "req", "-x509", "-key", str(key), "-out", str(base / f"{name}.pem"), "-days", "2", "-subj", f"/CN={name}",
            "-addext", f"subjectAltName={host}", "-addext", "keyUsage=digitalSignature,keyCertSign",
        )  # fmt: skip
    return Pki(str(base / "cert.pem"), str(key), str(base / "other.pem"))


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def test_an_authority_of_its_own(pki: Pki) -> None:
    with Receiver(tls=pki.server()) as receiver:
        assert send(receiver.url, ca_file=pki.cert).status == 200
    assert len(receiver.taken) == 1


def test_the_systems_authorities_can_be_named_as_for_openssl(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", pki.cert)
    with Receiver(tls=pki.server()) as receiver:
        assert send(receiver.url).status == 200


def test_a_certificate_that_nobody_vouches_for(pki: Pki) -> None:
    with Receiver(tls=pki.server()) as receiver:
        got = send(f"{receiver.url}/secret")
    assert got.status is None
    assert got.problem == (
        "the certificate of 127.0.0.1 is not trusted: self-signed certificate; name your authority with ca-file"
    )
    assert receiver.taken == []


def test_a_certificate_of_another_host(pki: Pki) -> None:
    with Receiver(tls=pki.server("other")) as receiver:
        got = send(receiver.url, ca_file=pki.other)
    assert got.problem.startswith("the certificate of 127.0.0.1 is not trusted: IP address mismatch")
    assert "ca-file" not in got.problem, "which would not help"
    assert receiver.taken == []


def test_our_own_certificate(pki: Pki) -> None:
    with Receiver(tls=pki.server(clients=True)) as receiver:
        without = send(receiver.url, ca_file=pki.cert)
        got = send(receiver.url, ca_file=pki.cert, cert_file=pki.cert, key_file=pki.key)
    assert without.status is None
    assert without.problem
    assert got.status == 200
    assert len(receiver.taken) == 1


def test_a_key_that_is_encrypted_asks_nobody_for_its_password(pki: Pki, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    openssl("pkey", "-in", pki.key, "-aes256", "-passout", "pass:abcd", "-out", str(locked))
    got = send("https://127.0.0.1:1", cert_file=pki.cert, key_file=str(locked))
    assert got.problem.startswith(f"cert-file: {pki.cert} and its key cannot be used: ")
    assert "not encrypted" in got.problem


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), ("no certificate", "no certificate or crl found")]
)
def test_an_authority_that_cannot_be_read(tmp_path: Path, content: str | None, why: str) -> None:
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    got = send("https://127.0.0.1:1", ca_file=str(path))
    assert got.problem.startswith(f"ca-file: {path} cannot be used: {why}")


def test_a_receiver_without_tls() -> None:
    with Receiver() as receiver:
        got = send(receiver.url.replace("http:", "https:"))
    assert got.problem == f"TLS with 127.0.0.1:{receiver.port} failed: wrong version number"


@contextmanager
def accepting(behaviour: Callable[[socket.socket], None]) -> Iterator[int]:
    """Do that with the first connection; gives the port."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            behaviour(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(30)


@pytest.mark.parametrize("behaviour", [hang, drip(b"\x16\x03\x03\x3f\xff")])
def test_a_handshake_without_an_end(behaviour: Callable[[socket.socket], None]) -> None:
    with accepting(behaviour) as port:
        got = send(f"https://127.0.0.1:{port}", SHORT)
    assert got == Got(None, {}, b"", "no answer within 0.5s")


def test_a_head_that_drips_through_tls(pki: Pki) -> None:
    with Receiver(default=drip(b"HTTP/1.1 200 OK\r\nX-Drip: "), tls=pki.server()) as receiver:
        got = send(receiver.url, SHORT, ca_file=pki.cert)
    assert got == Got(None, {}, b"", "no answer within 0.5s")


def test_a_handshake_that_breaks_off() -> None:
    def leave(connection: socket.socket) -> None:
        connection.recv(4096)

    with accepting(leave) as port:
        got = send(f"https://127.0.0.1:{port}")
    assert got.problem == f"127.0.0.1:{port} closed the connection before it answered"


def basic(login: str) -> str:
    return f"Basic {b64encode(login.encode()).decode()}"


def test_a_proxy_with_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss%C3%A9@127.0.0.1:{proxy.port}")
        got = send("http://hooks.example.org/hook")
    assert got.status == 200
    (taken,) = proxy.taken
    assert taken.path == "http://hooks.example.org/hook"
    assert taken.headers["proxy-authorization"] == basic("me:p@ssé")


def test_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy, Receiver() as receiver:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "example.org,127.0.0.1")
        assert send(receiver.url).status == 200
    assert (len(proxy.taken), len(receiver.taken)) == (0, 1)


@pytest.mark.parametrize("exception", ["::1", "[::1]", "[::1]:9", "example.org, ::1"])
def test_no_proxy_of_an_ipv6_address(monkeypatch: pytest.MonkeyPatch, exception: str) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.org")
    monkeypatch.setenv("no_proxy", exception)
    assert proxy_of("http://[::1]:9/") is None
    assert proxy_of("http://[::2]:9/") == "http://proxy.example.org"


def test_without_tls_no_authorities_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "create_default_context", lambda: pytest.fail("made for nothing"))
    with Receiver() as receiver:
        assert send(receiver.url).status == 200
        monkeypatch.setenv("http_proxy", receiver.url)
        assert send("http://hooks.example.org/hook").status == 200


def test_a_proxy_is_trusted_by_the_systems_authorities(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on the way to a receiver without TLS: `ca-file` is the receiver's."""
    with Receiver(tls=pki.server()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        without = send("http://hooks.example.org/hook", ca_file=pki.cert)
        monkeypatch.setenv("SSL_CERT_FILE", pki.cert)
        got = send("http://hooks.example.org/hook")
    assert "certificate" in without.problem
    assert got.status == 200
    assert [taken.path for taken in proxy.taken] == ["http://hooks.example.org/hook"]


def test_a_tunnel_through_a_proxy(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    def tunnel(connection: socket.socket) -> None:
        heads.append(head(connection))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with pki.server().wrap_socket(connection, server_side=True) as inner:
            heads.append(head(inner, b'{"a": 1}'))  # all of it: closing with something unread is a reset
            inner.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with accepting(tunnel) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"me:secret@127.0.0.1:{port}")
        got = send("https://127.0.0.1:1/hook", ca_file=pki.cert, headers=(("Authorization", "Bearer abc"),))
    assert (got.status, got.problem) == (204, "")
    outer, inner = heads
    assert outer.startswith(b"CONNECT 127.0.0.1:1 HTTP/1.")
    assert basic("me:secret").encode() in outer
    assert b"Bearer" not in outer
    assert inner.startswith(b"POST /hook HTTP/1.1")
    assert b"Proxy-Authorization" not in inner


def head(connection: socket.socket, end: bytes = b"") -> bytes:
    taken = b""
    while b"\r\n\r\n" + end not in taken:
        piece = connection.recv(4096)
        assert piece, taken
        taken += piece
    return taken


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(connection: socket.socket) -> None:
        head(connection)
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with accepting(refuse) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
        got = send("https://hooks.example.org/hook")
    assert got.status is None
    assert got.problem == (
        f"through the proxy: 127.0.0.1:{port} cannot be reached: "
        "Tunnel connection failed: 407 Proxy Authentication Required"
    )


def test_a_proxy_that_repeats_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    told = f"not {basic('me:p@ss')}, me:p@ss".encode()
    with Receiver(default=Answer(407, (("X-Login", basic("me:p@ss")),), told)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        got = send("http://hooks.example.org/hook")
    assert got.body == b"not Basic [secret], [secret]"
    assert got.headers["x-login"] == "Basic [secret]"


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"me:secret@127.0.0.1:{port}")
    assert send("https://hooks.example.org/").problem == f"through the proxy: connection refused by 127.0.0.1:{port}"


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://me:secret@127.0.0.1:1",
        "http://me:secret@",
        "http://me:secret@[::1",
        "http://me:secret@127.0.0.1:99999",
        "me:secret@127.0.0.1:x",
    ],
)
def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    problem = send("http://hooks.example.org/").problem
    assert problem.startswith("HTTP_PROXY names no proxy that can be used")
    assert "secret" not in problem


def test_secrets_are_masked_where_a_request_is_shown() -> None:
    body = b'{"routing_key": "R123", "note": "a\\u0007b \x07"}'
    request = Request("https://hooks.example.org/hook", body, (("Authorization", "Bearer T123"),), ("T123", "R123"))
    assert shown(request) == (
        "POST https://hooks.example.org/hook\n"
        "Authorization: Bearer [secret]\n"
        "\n"
        '{"routing_key": "[secret]", "note": "a\\u0007b "}'
    )


def test_of_a_secret_url_only_the_host_is_shown() -> None:
    url = "https://hooks.example.org:8443/T000/B000?x=1"
    request = Request(url, f'{{"from": "{url}"}}'.encode(), (), (url,))
    assert shown(request) == 'POST https://hooks.example.org:8443/[…]\n\n{"from": "[secret]"}'


def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Receiver(default=lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nbroken head\r\n\r\n")) as receiver:
        assert send(f"{receiver.url}/secret").status == 200
    assert "secret" not in caplog.text


def test_a_scan_imports_no_client() -> None:
    code = "import lmdiag.cli, lmdiag.scan, lmdiag.watch.main, sys; sys.exit('urllib3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
