"""What all sinks that post have in common: URL, credentials, secrets that are masked, and the answer's meaning."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from lmdiag.config import SinkConfig
from lmdiag.forward.answers import outcome_of
from lmdiag.forward.credentials import CredentialError, credential_line, masked, token
from lmdiag.forward.http import Answer, Request, post, shown
from lmdiag.forward.message import RETRY, Message, Outcome
from lmdiag.report.control import one_line
from lmdiag.report.jsonl import dumps

_VISIBLE = re.compile(r"[!-~]+")
_TELLING = 6
"""Characters: a shorter path or query is no secret, and would be masked wherever it stands."""
_TELLING_PIECE = 8
"""Characters: the same of a segment of the path or a value of the query, of which many are words ("hooks")."""
Headers = tuple[tuple[str, str], ...]


class HttpSink:
    """A receiver that is posted to. A subclass writes `request`."""

    batch = 1

    def __init__(self, config: SinkConfig) -> None:
        self.config = config

    def request(self, messages: Sequence[Message], now: float) -> Request:
        """Write the request that carries the messages at `now` (unix seconds). Raises CredentialError."""
        raise NotImplementedError

    def outcome(self, answer: Answer, now: float) -> Outcome:
        """Say what the answer means; a service with ways of its own has its own."""
        return outcome_of(answer, now)

    def send(self, messages: Sequence[Message], now: float) -> Outcome:
        """Post the messages and wait for the answer; see `lmdiag.forward.sink.Sink`."""
        try:
            request = self.request(messages, now)
        except CredentialError as error:
            return Outcome(RETRY, one_line(str(error)))
        outcome = self.outcome(post(request, self.config), now)
        # The answer had its secrets masked, where none is cut into. Without its control characters there may be another.
        secrets = request.secrets
        return outcome._replace(detail=masked(outcome.detail, secrets), answer=masked(outcome.answer, secrets))

    def preview(self, messages: Sequence[Message], now: float) -> str:
        """Write the request as a person reads it, secrets masked. Raises CredentialError."""
        return shown(self.request(messages, now))

    def url(self) -> str:
        """Give the receiver's URL, from the file if it is a secret. Raises CredentialError."""
        secret = self.config.url_file
        url = credential_line(secret, "url-file") if secret else self.config.url
        if not _usable(url):
            where = f"url-file: {secret} must hold" if secret else "url: it must be"
            raise CredentialError(f"{where} one URL, https://HOST/…; a user goes to `username` and `password-file`")
        return url

    def make_request(
        self, body: object, headers: Headers = (), *, url: str | None = None, secrets: Sequence[str] = ()
    ) -> Request:
        """Put a request together: bytes as they are, anything else as JSON.

        `url` instead of `self.url()` is a secret where that one is; `secrets` are further ones in body or headers.
        Raises CredentialError.
        """
        content = body if isinstance(body, bytes) else dumps(body).encode()
        login, known = self._login()
        base = self.url()
        hidden = {base, url or base, *_parts(base)} if self.config.url_file else set()
        return Request(
            url or base,
            content,
            (*({"Content-Type": "application/json"} | dict(headers)).items(), *login),
            (*known, *secrets, *sorted(hidden)),
        )

    def _login(self) -> tuple[Headers, tuple[str, ...]]:
        """Make the Authorization, and name the secrets in it."""
        if self.config.token_file:
            bearer = token(self.config.token_file, "token-file")
            return (("Authorization", f"Bearer {bearer}"),), (bearer,)
        if self.config.password_file:
            password = credential_line(self.config.password_file, "password-file")
            basic = b64encode(f"{self.config.username}:{password}".encode()).decode()
            return (("Authorization", f"Basic {basic}"),), (basic, password)
        return (), ()


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and "@" not in parts.netloc
            and _VISIBLE.fullmatch(url)
        )
    except ValueError:  # no number as a port, or half an IPv6 address
        return False


def _parts(url: str) -> tuple[str, ...]:
    """Give what of a secret URL is secret by itself: a receiver may answer with its path, or a token out of it."""
    parts = urlsplit(url)
    path = parts.path.strip("/")
    raw = (*path.split("/"), *(pair.partition("=")[2] for pair in parts.query.split("&")))
    pieces = {form for piece in raw for form in (piece, unquote(piece))}
    return (
        *(part for part in (path, parts.query) if len(part) >= _TELLING),
        *(piece for piece in pieces if len(piece) >= _TELLING_PIECE),
    )
