"""The way to a receiver: directly or through the environment's proxy, and whom TLS trusts there."""

from __future__ import annotations

import ssl
from base64 import b64encode
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager

from lmdiag.config import SinkConfig
from lmdiag.forward.credentials import CredentialError, locate


def manager(url: str, config: SinkConfig) -> PoolManager:
    """Make what opens connections to the URL.

    HTTPS_PROXY, HTTP_PROXY and NO_PROXY hold as for urllib.request. Raises CredentialError for a file of TLS or a proxy
    that cannot be used.
    """
    scheme = urlsplit(url).scheme
    # Contexts only where TLS is used: all of the system's authorities are read for each.
    context = _context(config) if scheme == "https" else None
    proxy = proxy_of(url)
    if proxy is None:
        return PoolManager(ssl_context=context)
    address, headers = _proxy(proxy, scheme)
    # The proxy is the system's, and so is its certificate. For an http URL urllib3 takes `ssl_context` for the proxy.
    own = ssl.create_default_context() if address.startswith("https:") else None
    return ProxyManager(address, proxy_headers=headers, proxy_ssl_context=own, ssl_context=context or own)


def proxy_of(url: str) -> str | None:
    """Give the URL of the proxy on the way, which may hold a password, or None for the direct way."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_secrets(url: str) -> tuple[str, ...]:
    """Name what must not be shown of the proxy on the way: a careless one repeats it in its answer."""
    login = _login(proxy_of(url) or "")
    return (login, login.partition(":")[2], _basic(login)) if login else ()


def _proxy(proxy: str, scheme: str) -> tuple[str, dict[str, str]]:
    """Take a proxy's URL apart: the address alone, and the header that logs in there."""
    try:
        parts = urlsplit(proxy)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no number as a port, or half an IPv6 address
        usable = False
    if not usable:
        raise CredentialError(f"{scheme.upper()}_PROXY names no proxy that can be used: http://HOST:PORT or https://…")
    login = _login(proxy)
    address = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{address}", {"Proxy-Authorization": f"Basic {_basic(login)}"} if login else {}


def _login(proxy: str) -> str:
    return unquote(proxy.partition("://")[2].rpartition("@")[0])


def _basic(login: str) -> str:
    return b64encode(login.encode()).decode()


def _context(config: SinkConfig) -> ssl.SSLContext:
    """Trust the system's authorities (OpenSSL's SSL_CERT_FILE holds) or those of `ca_file`; show our certificate."""
    context = _trusting(config.ca_file)
    if config.cert_file:
        key = str(locate(config.key_file)) if config.key_file else None
        try:
            # Without a password OpenSSL would ask the terminal for that of an encrypted key.
            context.load_cert_chain(locate(config.cert_file), key, password=lambda: "")
        except OSError as error:
            raise CredentialError(
                f"cert-file: {locate(config.cert_file)} and its key cannot be used: {_why(error)}; "
                "both must be PEM, and the key not encrypted"
            ) from error
    return context


def _trusting(ca_file: str) -> ssl.SSLContext:
    if not ca_file:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(locate(ca_file)))
    except OSError as error:
        raise CredentialError(
            f"ca-file: {locate(ca_file)} cannot be used: {_why(error)}; it must hold certificates as PEM"
        ) from error


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not understood").replace("_", " ").lower()
    return error.strerror or "not readable"
