"""What is read of Alertmanager's payload, and that nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.receive.payload import Alert, PayloadError, alerts_of

FULL = {
    "receiver": "lmdiag",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "VLLMDown", "instance": "node7:8000"},
            "annotations": {"summary": "x"},
            "startsAt": "2025-12-03T00:00:00Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://prometheus/graph",
            "fingerprint": "c0ffee",
        },
        {"status": "resolved", "labels": {}},
    ],
    "groupLabels": {},
    "commonLabels": {},
    "commonAnnotations": {},
    "externalURL": "http://alertmanager",
    "version": "4",
    "groupKey": "{}:{}",
    "truncatedAlerts": 0,
}


def test_a_payload_as_alertmanager_sends_it() -> None:
    assert alerts_of(json.dumps(FULL).encode()) == [
        Alert("firing", {"alertname": "VLLMDown", "instance": "node7:8000"}),
        Alert("resolved", {}),
    ]


def test_of_labels_that_stand_twice_the_last_one_counts() -> None:
    body = b'{"version": "4", "alerts": [{"status": "firing", "labels": {"pod": "a", "pod": "b"}}]}'
    assert alerts_of(body) == [Alert("firing", {"pod": "b"})]


DEEP = 200_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b'{"version": "4", "alerts": [{"status": "firing", "labels": {"a": "\xff"}}]}',
        b'{"version": "3", "alerts": []}',
        b'{"version": 4, "alerts": []}',
        b'{"version": "4"}',
        b'{"version": "4", "alerts": {}}',
        b'{"version": "4", "alerts": [1]}',
        b'{"version": "4", "alerts": [{"status": "maybe", "labels": {}}]}',
        b'{"version": "4", "alerts": [{"status": "firing"}]}',
        b'{"version": "4", "alerts": [{"status": "firing", "labels": {"a": 1}}]}',
        b'{"version": "4", "alerts": [{"status": "firing", "labels": {"a": {"b": "c"}}}]}',
        b'{"version": "4", "alerts": [{"status": "firing", "labels": []}]}',
        b'{"version": "4", "alerts": ' + b"9" * 100_000 + b"}",
        b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b', "version": "4", "alerts": []}',
        b'{"version": "4", "alerts": ' + b"[" * DEEP,
        b'{"version": "4", "alerts": [] NaN}',
        json.dumps(FULL).encode("utf-16"),
    ],
)
def test_what_is_no_payload_is_refused(body: bytes) -> None:
    with pytest.raises(PayloadError) as error:
        alerts_of(body)
    assert len(str(error.value)) < 200


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FULL, "labels", "a"]), inner),
)


@given(st.one_of(st.binary(), VALUES.map(lambda value: json.dumps(value).encode())))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    try:
        found = alerts_of(body)
    except PayloadError:
        return
    assert all(alert.status in ("firing", "resolved") for alert in found)
