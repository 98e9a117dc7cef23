"""Many reports as one."""

from __future__ import annotations

import pytest
from forwarding import incident, report
from messages import NOW

from lmdiag.forward.storms import summary_of
from lmdiag.model import Severity


def test_a_summary_lists_each_incident_once_as_it_is_now_the_worst_first() -> None:
    severities: dict[str, Severity] = {"a": "warning", "b": "critical", "c": "error"}
    messages = [report(name)._replace(incident=incident(name, severity=severity)) for name, severity in severities.items()]
    messages.append(report("b", "resolved")._replace(incident=incident("b", "resolved", "critical")))
    found = summary_of(messages, NOW + 5)
    assert [(one.id, one.state, one.severity) for one in found.members] == [
        ("c", "opened", "error"),
        ("a", "opened", "warning"),
        ("b", "resolved", "critical"),
    ]
    assert found.incident.id == "c"
    assert (found.at, found.left_out, found.instance) == (NOW + 5, 0, "node7")
    assert found.key == found.alert


def test_the_same_messages_make_the_same_key() -> None:
    messages = [report("a"), report("b")]
    assert summary_of(messages, NOW).key == summary_of(messages, NOW + 60).key
    assert summary_of(messages, NOW).key != summary_of(messages[:1], NOW).key


@pytest.mark.parametrize(("count", "left_out"), [(50, 0), (51, 1), (1000, 950)])
def test_a_summary_is_bounded(count: int, left_out: int) -> None:
    found = summary_of([report(str(number)) for number in range(count)], NOW)
    assert (len(found.members), found.left_out) == (min(count, 50), left_out)
