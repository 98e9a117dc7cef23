"""Answers a request with alerts: who may ask, how many at a time, and what is done with each alert."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from lmdiag.errors import LmdiagError
from lmdiag.forward.credentials import token
from lmdiag.http_server import PLAIN, Reply
from lmdiag.receive.answer import Answered, as_json, as_text
from lmdiag.receive.look import Look, logs_of, look
from lmdiag.receive.payload import PayloadError, alerts_of
from lmdiag.receive.template import LabelError, LogTemplate
from lmdiag.report.control import one_line
from lmdiag.report.sections import counted

if TYPE_CHECKING:
    from lmdiag.http_server import Request
    from lmdiag.match.library import Library
    from lmdiag.read.discover import Found
    from lmdiag.receive.config import ReceiveConfig
    from lmdiag.receive.payload import Alert
    from lmdiag.scan import Forward

SECONDS = 60.0
"""For a whole answer. Alertmanager waits for at least its `group_interval`, which is five minutes by default."""
MAX_ALERTS = 64
QUEUE = 4
"""Requests that wait for the one that is answered; others are asked to come again."""
_JSON = "application/json"


class Receiver:
    """Takes the payload of Alertmanager's webhook with POST / and answers with incidents and cards."""

    def __init__(
        self,
        config: ReceiveConfig,
        library: Library,
        forward: Forward | None,
        say: Callable[[str], None],
    ) -> None:
        """`forward` gets what was found for a request, before it is answered; `say` a line. Raises UsageError."""
        self._config = config
        self._library = library
        self._forward = forward
        self._say = say
        self._template = LogTemplate(config.logs) if config.logs else None
        self._places = threading.BoundedSemaphore(1 + QUEUE)
        self._turn = threading.Lock()

    def respond(self, request: Request) -> Reply:
        """Answer a request; what is wrong with it, or with a log, is a part of the answer."""
        try:
            return self._refused(request) or self._in_turn(request)
        except PayloadError as error:
            return _problem(HTTPStatus.BAD_REQUEST, str(error))
        except LmdiagError as error:  # a card that cannot be read, an outbox that takes nothing
            self._say(str(error))
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), ("Retry-After", "60"))

    def _refused(self, request: Request) -> Reply | None:
        """Say why nothing is done about a request, or None."""
        if request.path != "/":
            return _problem(HTTPStatus.NOT_FOUND, "alerts are taken at /")
        if request.method != "POST":
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED, "alerts are sent with POST", ("Allow", "POST"))
        if not self._is_allowed(request.headers.get("Authorization", "")):
            return _problem(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong", ("WWW-Authenticate", "Bearer"))
        if request.headers.get_content_type() != _JSON:  # what a browser sends for any page that wants it is not
            return _problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the Content-Type must be {_JSON}")
        return None

    def _is_allowed(self, authorization: str) -> bool:
        if not self._config.token_file:
            return True
        kind, _, given = authorization.partition(" ")
        expected = token(self._config.token_file, "token-file")
        # The scheme is case-insensitive (RFC 9110, section 11.1).
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), expected.encode())

    def _in_turn(self, request: Request) -> Reply:
        until = time.monotonic() + SECONDS
        if not self._places.acquire(blocking=False):
            return _busy()
        try:
            if not self._turn.acquire(timeout=SECONDS):
                return _busy()
            try:
                return self._answer(request, until)
            finally:
                self._turn.release()
        finally:
            self._places.release()

    def _answer(self, request: Request, until: float) -> Reply:
        alerts = alerts_of(request.body)
        left_out = max(0, len(alerts) - MAX_ALERTS)
        looks: dict[str, Look] = {}
        answered = [self._look(alert, looks, until) for alert in alerts[:MAX_ALERTS]]
        incidents = [incident for one in looks.values() for incident in one.incidents]
        if self._forward and incidents:
            self._forward(incidents, self._library.card)
        self._say(
            f"{counted(len(alerts), 'alert')}, {counted(len(looks), 'log')}, {counted(len(incidents), 'incident')}"
        )
        for problem in dict.fromkeys(one.problem for one in answered if one.problem):
            self._say(problem)
        if _wants_text(request):
            return Reply(HTTPStatus.OK, as_text(answered, left_out, self._library.card), PLAIN)
        return Reply(HTTPStatus.OK, as_json(answered, left_out), _JSON)

    def _look(self, alert: Alert, looks: dict[str, Look], until: float) -> Answered:
        """Look at the logs of an alert; several alerts of one request may share them."""
        if alert.status == "resolved":
            return Answered(alert)
        try:
            patterns = [self._template.pattern(alert.labels)] if self._template else self._config.paths
        except LabelError as error:
            return Answered(alert, problems=(str(error),))
        found, problems = logs_of(patterns)
        return Answered(alert, tuple(self._look_at(one, looks, until) for one in found), tuple(problems))

    def _look_at(self, found: Found, looks: dict[str, Look], until: float) -> Look:
        if found.path not in looks:
            looks[found.path] = look(found, self._library, until)
        return looks[found.path]


def _wants_text(request: Request) -> bool:
    asked = parse_qs(request.query).get("format", [""])[-1]
    return asked == "text" or (not asked and "text/plain" in request.headers.get("Accept", ""))


def _problem(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Reply:
    return Reply(status, (one_line(text) + "\n").encode("utf-8", "replace"), headers=headers)


def _busy() -> Reply:
    text = "other alerts are being looked at; send this one again"
    return _problem(HTTPStatus.SERVICE_UNAVAILABLE, text, ("Retry-After", "10"))
