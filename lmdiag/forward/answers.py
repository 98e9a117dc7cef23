"""What an answer means for the message: delivered, to be tried again and when, or never."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from lmdiag.forward.http import Answer
from lmdiag.forward.http_problems import origin
from lmdiag.forward.message import DELIVERED, GONE, MAX_AFTER, REJECTED, RETRY, Outcome
from lmdiag.report.control import clip, one_line, visible

_SECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
_LATER = frozenset({408, 425, 429})
"""Of the answers that blame the request, those that do not blame its content (RFC 9110, 8470, 6585)."""


def outcome_of(answer: Answer, now: float) -> Outcome:
    """Judge an answer by its status; `now` in unix seconds dates a Retry-After. The answer's secrets are masked already.

    What nobody can know to be final is tried again: no answer, a redirection (the URL may be corrected), a 5xx.
    """
    status = answer.status
    if status is None:
        return Outcome(RETRY, answer.problem)
    if 200 <= status < 300:
        return Outcome(DELIVERED, answer=described(answer))
    if 300 <= status < 400:
        return Outcome(RETRY, _redirected(answer), answer=described(answer))
    if 400 <= status < 500 and status not in _LATER:
        return Outcome(GONE if status == HTTPStatus.GONE else REJECTED, reason(answer), answer=described(answer))
    return Outcome(RETRY, reason(answer), retry_after(answer.headers.get("retry-after", ""), now), described(answer))


def retry_after(value: str, now: float) -> float | None:
    """Read a Retry-After: seconds or a date (RFC 9110, section 10.2.3), at most MAX_AFTER; None if it says nothing."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), MAX_AFTER)
    try:
        date = parsedate_to_datetime(value)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(seconds, MAX_AFTER) if seconds >= 0 else None


def reason(answer: Answer) -> str:
    """Say in one line what was answered: the status and the beginning of the body."""
    body = clip(" ".join(one_line(_text(answer)).split()), 200)
    return f"{_status(answer)}: {body}" if body else _status(answer)


def described(answer: Answer) -> str:
    """Show the answer in some lines, its body shortened."""
    return f"{_status(answer)}\n{clip(visible(_text(answer)).strip(), 2000)}".strip()


def _redirected(answer: Answer) -> str:
    location = answer.headers.get("location", "")
    try:
        parts = urlsplit(location)
        where = f"to {origin(location)}" if parts.netloc else "within the same host" if location else ""
    except ValueError:
        where = ""
    what = f"redirected {clip(one_line(where), 200)}" if where else _status(answer)
    return f"{what} (refused; correct the url)"


def _status(answer: Answer) -> str:
    try:
        return f"HTTP {answer.status} {HTTPStatus(answer.status or 0).phrase}"
    except ValueError:  # one that no standard knows
        return f"HTTP {answer.status}"


def _text(answer: Answer) -> str:
    return answer.body.decode("utf-8", "replace")
