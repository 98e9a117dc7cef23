"""The labels by which Alertmanager knows a report, and its annotations."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from messages import message
from report_samples import CARD, REQUEST, UNMATCHED, URL, with_message

from lmdiag.forward import alerts
from lmdiag.forward.alerts import labels, succession, usable_url
from lmdiag.forward.message import Message
from lmdiag.model import Incident
from lmdiag.settings.amounts import WrongValueError
from lmdiag.settings.sink_values import Labels

HOSTILE = st.text(max_size=300) | st.text(alphabet="\x00\x1b\ud800\udfff\x85\u2028\u202e\n\t a", max_size=20)
"""Also with lone surrogates and control characters, which a file's name may hold."""


def of(incident: Incident) -> Message:
    return message(change=lambda _: incident)


def labels_of(incident: Incident) -> dict[str, str]:
    return labels(of(incident), {})


def test_the_labels_are_the_identity_and_the_severity() -> None:
    assert labels(message(), {"team": "inference"}) == {
        "alertname": "LmdiagIncident",
        "card": CARD.id,
        "severity": "critical",
        "instance": "node7",
        "source": "server.log",
        "fingerprint": "f1",
        "team": "inference",
    }


def test_they_stay_the_same_while_an_incident_lasts() -> None:
    def later(incident: Incident) -> Incident:
        facts = incident.facts._replace(model="another", vllm_version="0.27.0")
        return incident._replace(
            id="a1-5f", facts=facts, scope="runtime", outcome="died", occurrences=99, title="other", last_line=999,
            evidence=("other",), root=None, raised_at=None, advice=(), processes=("other",),
        )  # fmt: skip

    assert labels(message("resolved", later)._replace(key="x", at=5.0, card=None), {}) == labels(message(), {})


@pytest.mark.parametrize("change", [{"fingerprint": "f2"}, {"source": "b.log"}, {"severity": "info"}, {"card": "b"}])
def test_what_makes_another_alert(change: dict[str, str]) -> None:
    assert labels_of(UNMATCHED._replace(**change)) != labels_of(UNMATCHED)  # type: ignore[arg-type]


def test_an_incident_without_a_card_is_named_so() -> None:
    assert labels_of(UNMATCHED)["card"] == "none"


def test_one_failure_differs_between_nodes_by_the_instance_alone() -> None:
    here, there = labels(message(), {}), labels(message()._replace(instance="node8", alert="alert-2"), {})
    assert {name for name in here if here[name] != there[name]} == {"instance"}


@pytest.mark.parametrize("name", ["team", "_x", "Data_Center9", "model"])
def test_labels_that_the_configuration_adds(name: str) -> None:
    assert labels(message(), {name: "x"}) == {**labels(message(), {}), name: "x"}


@pytest.mark.parametrize("name", [*labels(message(), {}), "a-b", "", "1a", "__x", "é", "team\n"])
def test_the_configuration_refuses_what_is_ours_and_what_alertmanager_would_refuse(name: str) -> None:
    with pytest.raises(WrongValueError):
        Labels().parse({name: "x"})


@given(source=HOSTILE, instance=HOSTILE)
def test_whatever_a_node_names_its_files_alertmanager_takes_the_labels(source: str, instance: str) -> None:
    given_labels = labels(of(UNMATCHED._replace(source=source))._replace(instance=instance), {})
    for name, value in given_labels.items():
        assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)
        value.encode()  # there are no surrogates
        assert 0 < len(value) < 250
        assert not re.search("[\x00-\x1f\x7f-\x9f]", value)


@example({f"{byte.decode('utf-8', 'surrogateescape')}.log" for byte in (b"\xfe", b"\xff")})
@given(st.sets(HOSTILE.filter(bool), min_size=2, max_size=5))
def test_two_sources_are_two_alerts_however_they_are_named(sources: set[str]) -> None:
    assert len({labels_of(UNMATCHED._replace(source=source))["source"] for source in sources}) == len(sources)


def test_long_sources_that_differ_in_their_ends_only_are_two_alerts() -> None:
    first, second = (labels_of(UNMATCHED._replace(source=f"/{'a' * 400}/{end}.log")) for end in "12")
    assert first["source"] != second["source"]


def test_the_annotations_say_what_to_do() -> None:
    told = alerts.annotations(message())
    assert told["advice"].splitlines()[0] == "Set `use_layerwise` to `false`."
    assert "use_layerwise: true → use_layerwise: false" in told["advice"]
    assert CARD.title in told["summary"]
    assert "server.log" in told["summary"]
    assert "Set use_layerwise to false." in told["description"].replace("`", "")
    assert told["incident"] == "a1"
    assert told["model"] == "deepseek-ai/DeepSeek-V3"
    assert told["raised_at"] == URL
    assert told["runbook_url"] == CARD.references[0]


def test_what_is_not_known_is_left_out() -> None:
    bare = UNMATCHED._replace(raised_at=None, facts=UNMATCHED.facts._replace(model=None))
    assert set(alerts.annotations(of(bare)._replace(card=None))) == {"summary", "description", "incident"}


def test_a_long_message_does_not_make_a_long_alert() -> None:
    told = alerts.annotations(of(with_message("x\x1b[31m\ud800" * 700_000)))
    assert sum(map(len, told.values())) < 6000
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "".join(told.values()))


def test_where_it_comes_from_is_the_line_of_source_or_the_first_reference() -> None:
    assert alerts.generator_url(message()) == URL
    assert alerts.generator_url(of(UNMATCHED._replace(raised_at=None))) == CARD.references[0]
    assert alerts.generator_url(of(REQUEST._replace(raised_at=None))._replace(card=None)) == ""


def test_a_broken_reference_is_passed_over() -> None:
    card = CARD._replace(references=("see the docs", "https://a b/", "https://docs.vllm.ai/en/latest/"))
    assert alerts.runbook_url(message()._replace(card=card)) == "https://docs.vllm.ai/en/latest/"


@pytest.mark.parametrize(
    "url",
    [None, "", "/x", "javascript:alert(1)", "https://a/%zz", "https://a/%", "https://a b/", "https://a/\n", "https://",
     "https://a/\x00", "https://user:pw@a/", "https://a/é", "https://a/" + "x" * 3000, "ftp://a/", "https://a/<b>"],
)  # fmt: skip
def test_what_is_no_url_for_alertmanager(url: str | None) -> None:
    assert usable_url(url) == ""


@given(st.text(max_size=60) | st.from_regex(r"https?://[^/]{1,20}/.{0,30}"))
def test_what_is_passed_on_as_a_url_is_one(url: str) -> None:
    if usable := usable_url(url):
        assert usable == url
        assert urlsplit(usable).hostname
        assert not re.search(r"%(?![0-9A-Fa-f]{2})|[\s<>\"\\^`{|}\x00-\x1f\x7f-\uffff]", usable)


def test_a_report_is_told_as_it_is_while_its_labels_stay() -> None:
    known = message(change=lambda incident: incident._replace(title="other", occurrences=1))
    for state in ("opened", "repeated", "resolved"):
        assert succession(message(state), None) == succession(message(state), known) == [message(state)]


def other_severity(known: Message) -> Message:
    return known._replace(incident=known.incident._replace(severity="error"))


def other_card(known: Message) -> Message:
    return known._replace(incident=known.incident._replace(card=None), card=None)


CHANGES = pytest.mark.parametrize("change", [other_severity, other_card, lambda known: known._replace(instance="old7")])


@CHANGES
def test_an_incident_of_which_a_label_changed_ends_the_alert_that_it_was(change: Callable[[Message], Message]) -> None:
    known = change(message("opened"))
    end, now = succession(message("repeated"), known)
    assert now == message("repeated")
    assert end == known._replace(incident=known.incident._replace(state="resolved"))
    assert labels(end, {}) == labels(known, {}) != labels(now, {})


@CHANGES
def test_an_incident_that_is_over_ends_the_alert_that_is_known_and_no_other(
    change: Callable[[Message], Message],
) -> None:
    known = change(message("opened"))
    (end,) = succession(message("resolved"), known)
    assert (end.incident.state, labels(end, {})) == ("resolved", labels(known, {}))
