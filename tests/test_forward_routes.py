"""Which sink is told what."""

from __future__ import annotations

import pytest
from forwarding import incident
from messages import NOW

from lmdiag.config import SinkConfig
from lmdiag.forward.routes import wants
from lmdiag.forward.rows import Alert
from lmdiag.model import Loop

TAGS = ("lmcache", "mla")


def sink(**settings: object) -> SinkConfig:
    """A sink with these settings."""
    return SinkConfig(**{"name": "x", "type": "webhook", **settings})  # type: ignore[arg-type]


def known(severity: str = "critical", *, at: float = NOW, looping: bool = False, resolved: bool = False) -> Alert:
    """What the sink was told before."""
    return Alert("x", "one", "alert", NOW, at, severity, looping, sent=True, resolved=resolved, body=b"")


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, True),
        ({"severity": "critical"}, False),
        ({"severity": "error"}, True),
        ({"scopes": ("runtime",)}, False),
        ({"scopes": ("startup",)}, True),
        ({"cards": ("lmcache-*",)}, True),
        ({"cards": ("vllm-*",)}, False),
        ({"cards": ("!lmcache-mla-*",)}, False),
        ({"cards": ("!vllm-*",)}, True),
        ({"cards": ("lmcache-*", "!*-layerwise")}, False),
        ({"cards": ("none",)}, False),
        ({"tags": ("mla",)}, True),
        ({"tags": ("memory",)}, False),
        ({"tags": ("!mla",)}, False),
        ({"sources": ("/var/log/*",)}, False),
        ({"sources": ("server.*",)}, True),
        ({"states": ("resolved",)}, False),
    ],
)  # fmt: skip
def test_an_incident_goes_where_it_is_wanted(settings: dict[str, object], wanted: bool) -> None:
    assert wants(sink(**settings), incident(severity="error"), TAGS, None, NOW) is wanted


def test_a_clients_own_mistake_goes_nowhere_unless_it_is_asked_for() -> None:
    mistake = incident()._replace(scope="request")
    assert not wants(sink(), mistake, TAGS, None, NOW)
    assert wants(sink(scopes=("request",)), mistake, TAGS, None, NOW)


def test_an_incident_without_a_card_has_a_name_in_patterns() -> None:
    bare = incident()._replace(card=None)
    assert wants(sink(cards=("none",)), bare, (), None, NOW)
    assert not wants(sink(cards=("lmcache-*",)), bare, (), None, NOW)
    assert not wants(sink(tags=("mla",)), bare, (), None, NOW)


def test_what_stays_as_it_is_waits_for_the_cooldown() -> None:
    again = incident(state="repeated")
    assert not wants(sink(cooldown=300.0), again, TAGS, known(), NOW + 299)
    assert wants(sink(cooldown=300.0), again, TAGS, known(), NOW + 300)


def test_a_clock_that_was_set_back_makes_no_cooldown_longer() -> None:
    assert wants(sink(cooldown=300.0), incident(state="repeated"), TAGS, known(), NOW - 86400)


def test_an_end_is_told_once() -> None:
    assert not wants(sink(), incident(state="resolved"), TAGS, known(resolved=True), NOW)


def test_no_cooldown_holds_back_what_has_become_worse() -> None:
    again = incident(state="repeated")
    assert wants(sink(), again, TAGS, known("error"), NOW)
    assert wants(sink(), again._replace(loop=Loop(3, 60.0)), TAGS, known(), NOW)
    assert not wants(sink(), again._replace(loop=Loop(4, 80.0)), TAGS, known(looping=True), NOW)


def test_a_server_that_fails_again_after_it_was_over_is_news() -> None:
    assert wants(sink(), incident(state="repeated"), TAGS, known(resolved=True), NOW)


def test_who_did_not_hear_that_it_opened_hears_it_when_it_repeats() -> None:
    """It has become bad enough for this sink only now."""
    only_new = sink(states=("opened", "resolved"))
    assert wants(only_new, incident(state="repeated"), TAGS, None, NOW)
    assert not wants(only_new, incident(state="repeated"), TAGS, known(at=NOW - 86400), NOW)


def test_the_end_goes_to_whoever_was_told_whatever_it_is_like_now() -> None:
    end = incident(state="resolved", severity="info")
    assert wants(sink(severity="critical"), end, TAGS, known(), NOW)
    assert not wants(sink(), end, TAGS, None, NOW)
    assert not wants(sink(states=("opened",)), end, TAGS, known(), NOW)
