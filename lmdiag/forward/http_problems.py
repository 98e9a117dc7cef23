"""Why a request got no answer, in words for a person at night: without a path, a header or anything else secret."""

from __future__ import annotations

import ssl
from http.client import HTTPException, RemoteDisconnected
from urllib.parse import urlsplit

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from lmdiag.report.control import clip, one_line

_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
"""X509_V_ERR_…: self-signed certificates and unknown issuers (openssl-verify(1)), which `ca-file` can cure."""


def origin(url: str) -> str:
    """Give scheme, host and port of a URL: no user, no path, no query, any of which may be secret."""
    return f"{urlsplit(url).scheme}://{netloc(url)}"


def netloc(url: str) -> str:
    """Give host and port of a URL, as it has them."""
    return urlsplit(url).netloc.rpartition("@")[2]


def explain(error: Exception, url: str, proxy: str | None) -> str:
    """Say why a request to the URL failed, with whom, and what to do where that is known."""
    if isinstance(error, ProxyError):
        return f"through the proxy: {_explain(_cause(error.original_error), proxy or url)}"
    return _explain(_cause(error), url)


def _explain(error: BaseException, url: str) -> str:
    host, peer = urlsplit(url).hostname or "", _peer(url)
    match error:
        case NameResolutionError():
            return f"the name {host} cannot be resolved"
        case LocationValueError():
            return f"the url cannot be used: its host {clip(host, 80)!r} is no valid name"
        case ssl.SSLCertVerificationError():
            return _untrusted(error, host)
        case ConnectionResetError() | BrokenPipeError() | RemoteDisconnected() | ssl.SSLEOFError():
            return f"{peer} closed the connection before it answered"
        case ssl.SSLError() if not error.reason:  # an end in the middle of a handshake, before Python 3.11.4
            return f"{peer} closed the connection before it answered"
        case ssl.SSLError():
            return f"TLS with {peer} failed: {error.reason.replace('_', ' ').lower()}"
        case ConnectionRefusedError():
            return f"connection refused by {peer}"
        case ConnectTimeoutError() | ReadTimeoutError():
            return f"no answer from {peer}"
        case HTTPException() | HTTPError():
            return f"{peer} does not answer in HTTP"
        case OSError():
            return f"{peer} cannot be reached: {one_line(clip(error.strerror or str(error), 200))}"
        case _:
            return f"{peer} cannot be reached: {type(error).__name__}"


def _cause(error: BaseException) -> BaseException:
    """Unwrap what urllib3 puts around the error of the socket."""
    inner: object = None
    if isinstance(error, SSLError | ProtocolError):
        inner = error.args[-1]
    elif isinstance(error, NewConnectionError) and not isinstance(error, NameResolutionError):
        inner = error.__cause__
    return _cause(inner) if isinstance(inner, BaseException) else error


def _peer(url: str) -> str:
    """Give host and port, the port also where the URL leaves it out."""
    default = {"http": 80, "https": 443}.get(urlsplit(url).scheme)
    return netloc(url) if urlsplit(url).port else f"{netloc(url)}:{default}"


def _untrusted(error: ssl.SSLCertVerificationError, host: str) -> str:
    advice = "; name your authority with ca-file" if error.verify_code in _UNKNOWN_AUTHORITY else ""
    return f"the certificate of {host} is not trusted: {one_line(error.verify_message)}{advice}"
