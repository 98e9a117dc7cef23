"""`lmdiag receive`: the process around the receiver."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from lmdiag import __version__
from lmdiag.errors import UsageError
from lmdiag.forward.credentials import token
from lmdiag.http_server import HttpServer
from lmdiag.match.library import check_directories, open_library
from lmdiag.receive.receiver import QUEUE, SECONDS, Receiver
from lmdiag.report.control import one_line
from lmdiag.settings.values import address, is_loopback

if TYPE_CHECKING:
    from lmdiag.receive.config import ReceiveConfig
    from lmdiag.scan import Forward

_MAX_BODY = 1 << 20
_THREADS = 1 + QUEUE + 4
"""One that looks, those that wait, and some to turn others away."""


def receive(config: ReceiveConfig, out: TextIO, err: TextIO, forward: Forward | None = None) -> int:
    """Answer alerts until a signal ends it, and return 0. A line about each request goes to `out`.

    `forward` is given what was found, for one request at a time. Raises UsageError, and CredentialError for a token
    that cannot be read.
    """
    _check(config)
    library = open_library(config.rules, config.disabled)
    for problem in library.problems:
        err.write(f"lmdiag: {one_line(str(problem))}\n")

    def say(line: str) -> None:
        with suppress(OSError):  # nobody reads it any more, or its disk is full: the alerts are answered all the same
            out.write(f"lmdiag: {one_line(line)}\n")
            out.flush()

    receiver = Receiver(config, library, forward, say)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server = HttpServer(
        config.listen,
        receiver.respond,
        purpose="alerts",
        advice="choose another one with --listen",
        threads=_THREADS,
        seconds=2 * SECONDS,
        max_body=_MAX_BODY,
    )
    err.write(f"lmdiag {__version__}: alerts are taken at http://{server.address}/\n")
    err.flush()
    stopped.wait()
    server.close()
    return 0


def _check(config: ReceiveConfig) -> None:
    """Refuse what would leave the logs open to anybody, or look at none. Raises UsageError and CredentialError."""
    if bool(config.paths) == bool(config.logs):
        raise UsageError("name the logs: either as PATH, or by --logs with labels of the alerts in it")
    if "-" in config.paths:
        raise UsageError("standard input has no past to look at; name files")
    check_directories(config.rules)
    if config.token_file:
        token(config.token_file, "token-file")
    elif not config.no_token:
        raise UsageError("a token is needed: --token-file FILE; or --no-token, if every user of this machine may ask")
    elif not is_loopback((address(config.listen) or ("", 0))[0]):
        raise UsageError(f"--no-token: {config.listen} can be reached from elsewhere; use --token-file FILE")
