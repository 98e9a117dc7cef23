"""What an answer means for the message."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import NOW

from lmdiag.forward.answers import outcome_of, retry_after
from lmdiag.forward.http import Answer
from lmdiag.forward.message import DELIVERED, GONE, MAX_AFTER, REJECTED, RETRY, Outcome


def answer(status: int | None, headers: dict[str, str] | None = None, body: bytes = b"", problem: str = "") -> Answer:
    return Answer(status, headers or {}, body, problem)


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (200, DELIVERED),
        (202, DELIVERED),
        (204, DELIVERED),
        (299, DELIVERED),
        (103, RETRY),
        (304, RETRY),
        (308, RETRY),
        (400, REJECTED),
        (401, REJECTED),
        (403, REJECTED),
        (404, REJECTED),
        (413, REJECTED),
        (422, REJECTED),
        (499, REJECTED),
        (408, RETRY),
        (425, RETRY),
        (429, RETRY),
        (410, GONE),
        (500, RETRY),
        (502, RETRY),
        (503, RETRY),
        (504, RETRY),
        (599, RETRY),
        (999, RETRY),
    ],
)
def test_the_status_decides(status: int, result: str) -> None:
    outcome = outcome_of(answer(status), NOW)
    assert outcome.result == result
    assert bool(outcome.detail) == (result != DELIVERED)


def test_no_answer_is_tried_again() -> None:
    assert outcome_of(answer(None, problem="no answer within 10s"), NOW) == Outcome(RETRY, "no answer within 10s")


@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_the_receiver_says_when(status: int) -> None:
    assert outcome_of(answer(status, {"retry-after": "120"}), NOW).after == 120
    assert outcome_of(answer(status, {"retry-after": formatdate(NOW + 90, usegmt=True)}), NOW).after == 90
    assert outcome_of(answer(status), NOW).after is None


def test_what_is_final_has_no_later() -> None:
    for status in (200, 400, 410):
        assert outcome_of(answer(status, {"retry-after": "120"}), NOW).after is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("1.5", 1.5),
        ("3600", 3600),
        ("86400", MAX_AFTER),
        ("9" * 20, MAX_AFTER),
        ("9" * 500, None),
        ("-1", None),
        ("", None),
        ("soon", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("Wed, 03 Dec 2025 00:01:00 GMT", 60),
        ("Wed, 03 Dec 2025 01:01:00 +0100", 60),
        ("Wed, 03 Dec 2025 00:01:00 -0000", 60),
        ("Wednesday, 03-Dec-25 00:01:00 GMT", 60),
        ("Wed Dec  3 00:01:00 2025", 60),
        ("Wed, 03 Dec 2025 00:00:00 GMT", 0),
        ("Wed, 03 Dec 2025 09:00:00 GMT", MAX_AFTER),
        ("Tue, 02 Dec 2025 23:59:00 GMT", None),
        ("Wed, 99 Dec 2025 00:01:00 GMT", None),
        ("Wed, 03 Dec 0000 00:01:00 GMT", None),
    ],
)
def test_retry_after_in_both_forms(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text() | st.from_regex(r"\w{3}, \d{1,3} \w{3} \d{1,6} \d{1,3}:\d\d:\d\d [+-]?\w{3,5}"))
def test_no_retry_after_is_a_surprise(value: str) -> None:
    seconds = retry_after(value, NOW)
    assert seconds is None or 0 <= seconds <= MAX_AFTER


def test_the_body_tells_why_on_one_line() -> None:
    body = b"<h1>It is\r\n\tbroken</h1> \x1b[31mred\x1b[0m \xff\xe2\x80\xae" + b"x" * 500
    detail = outcome_of(answer(500, body=body), NOW).detail
    assert detail.startswith("HTTP 500 Internal Server Error: <h1>It is broken</h1> red \ufffdxxx")
    assert detail.endswith("x…")
    assert len(detail) == len("HTTP 500 Internal Server Error: ") + 200
    assert detail.isprintable()


def test_a_status_without_a_name_and_without_a_body() -> None:
    assert outcome_of(answer(599), NOW).detail == "HTTP 599"


@pytest.mark.parametrize(
    ("location", "detail"),
    [
        ("https://other.example/T000/secret", "redirected to https://other.example (refused; correct the url)"),
        ("https://me:secret@other.example:1/", "redirected to https://other.example:1 (refused; correct the url)"),
        ("/elsewhere/secret", "redirected within the same host (refused; correct the url)"),
        ("http://[::1/secret", "HTTP 308 Permanent Redirect (refused; correct the url)"),
        ("", "HTTP 308 Permanent Redirect (refused; correct the url)"),
    ],
)
def test_where_a_redirection_points_to(location: str, detail: str) -> None:
    assert outcome_of(answer(308, {"location": location}), NOW).detail == detail


def test_the_answer_in_some_lines() -> None:
    outcome = outcome_of(answer(200, body=b'{"ok": true,\n "x": "\x1b[2J"}\n' + b"y" * 5000), NOW)
    head, first, *_ = outcome.answer.splitlines()
    assert (head, first) == ("HTTP 200 OK", '{"ok": true,')
    assert len(outcome.answer) < 2100
    assert "\x1b" not in outcome.answer
    assert outcome_of(answer(204), NOW).answer == "HTTP 204 No Content"
