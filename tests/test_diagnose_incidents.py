from __future__ import annotations

import pytest
from report_samples import CARD

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.incidents import build
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.verdict import Verdict
from lmdiag.model import SEVERITIES, Card, ExceptionInfo, Facts, Incident, Match, Origin, Symptom
from lmdiag.samples import CardSet

SECRET = "hf_ZecretZecretZecret99"  # noqa: S105
MESSAGE = CARD.rules[0].message


def incident(
    outcome: str = "start_failed", *, card: Card | None = CARD, info: ExceptionInfo | None = None, resolved: bool = False,
    lives: int = 1, fields: tuple[tuple[str, str], ...] = (), evidence: tuple[str, ...] = (), symptoms: tuple[Symptom, ...] = (),
    line: int = 10, service: str = "", source: str = "server.log", visible: bool = True,
) -> Incident:  # fmt: skip
    life = Life(service, 1, Facts(vllm_version="0.26.0"))
    match = Match(card.id, fields, "exact") if card else None
    candidate = Candidate(
        info or ExceptionInfo("ValueError", MESSAGE), Origin(source, line, line + 5, "Worker_TP0", 7), match
    )
    candidate.processes["Worker_TP0"] = None
    candidate.request = outcome == "request_failed"
    candidate.logger, life.ready = "vllm", 1
    candidate.evidence = evidence
    verdict = Verdict(life, candidate if visible else None, outcome, symptoms)
    verdict.resolved, verdict.lives = resolved, lives
    return build(verdict, [life], source, CardSet([card or CARD]))


# A card's severity is what the error deserves at worst; the outcome lowers it.
SEVERITY = {
    ("critical", "start_failed"): "critical",
    ("critical", "died"): "critical",
    ("critical", "degraded"): "error",
    ("critical", "running"): "warning",
    ("critical", "request_failed"): "info",
    ("warning", "start_failed"): "warning",
    ("info", "died"): "info",
    ("error", "degraded"): "error",
}


@pytest.mark.parametrize(("severity", "outcome"), SEVERITY)
def test_the_outcome_caps_the_cards_severity(severity: str, outcome: str) -> None:
    assert incident(outcome, card=CARD._replace(severity=severity)).severity == SEVERITY[severity, outcome]


@pytest.mark.parametrize("severity", SEVERITIES)
def test_what_was_overcome_is_for_information(severity: str) -> None:
    found = incident(card=CARD._replace(severity=severity), resolved=True)
    assert (found.severity, found.state) == ("info", "resolved")


@pytest.mark.parametrize(
    ("outcome", "severity"), [("start_failed", "critical"), ("died", "critical"), ("request_failed", "info")]
)
def test_a_traceback_without_a_card_is_a_finding(outcome: str, severity: str) -> None:
    found = incident(outcome, card=None)
    assert (found.card, found.confidence, found.severity, found.title) == (
        None,
        "none",
        severity,
        f"ValueError: {MESSAGE}",
    )
    assert found.advice == ()


SCOPES = [("start_failed", None, "startup"), ("died", None, "runtime"), ("request_failed", None, "request"), ("running", None, "runtime"), ("died", "startup", "startup"), ("request_failed", "startup", "request")]  # fmt: skip


@pytest.mark.parametrize(("outcome", "of_card", "scope"), SCOPES)
def test_when_it_strikes(outcome: str, of_card: str | None, scope: str) -> None:
    assert incident(outcome, card=CARD._replace(scope=of_card) if of_card else None).scope == scope


def test_the_card_gives_title_fields_and_advice() -> None:
    found = incident(fields=(("layers", "61"),))
    assert (found.card, found.title, found.confidence, found.fields) == (
        CARD.id,
        CARD.title,
        "exact",
        (("layers", "61"),),
    )
    assert found.advice[0].change == (("lmcache.use_layerwise", "false"),)
    assert found.raised_at is not None
    assert found.raised_at.line == 508


def test_the_card_knows_the_type_of_a_bare_message() -> None:
    found = incident(info=ExceptionInfo(None, MESSAGE))
    assert found.root is not None
    assert found.root.type == "ValueError"


def test_a_secret_is_in_no_part_of_it() -> None:
    text = f"401 for token {SECRET}"
    found = incident(
        card=None, info=ExceptionInfo("ValueError", text), evidence=(text,), symptoms=(Symptom("E", text + "!", None),)
    )
    assert SECRET not in str(found)
    assert "401 for token" in str(found)
    assert SECRET not in str(incident(fields=(("x", text),)))


def test_what_is_long_is_cut() -> None:
    text = "x" * 200_000
    found = incident(card=None, info=ExceptionInfo("ValueError", text), evidence=(text,) * 3)
    assert len(str(found)) < 20_000
    assert found.root is not None
    assert "more characters" in found.root.message


def test_an_invisible_cause_has_no_root() -> None:
    found = incident("died", visible=False)
    assert (found.cause_visible, found.root, found.raised_at, found.card) == (False, None, None, None)
    assert found.severity == "critical"


def test_a_crash_loop_is_repeated() -> None:
    found = incident(lives=3)
    assert (found.state, found.occurrences) == ("repeated", 3)
    assert incident().state == "opened"


def test_the_fingerprint_is_the_failures_and_the_id_the_occurrences() -> None:
    one, later, elsewhere = incident(), incident(line=99), incident(source="other.log")
    assert one.fingerprint == later.fingerprint == elsewhere.fingerprint
    assert len({one.id, later.id, elsewhere.id}) == 3
    assert incident().id == one.id


def test_another_failure_or_service_has_another_fingerprint() -> None:
    found = [
        incident(),
        incident(service="vllm-2"),
        incident(card=None),
        incident(card=None, info=ExceptionInfo("E", "other")),
    ]
    assert len({item.fingerprint for item in found}) == 4


def test_a_symptom_that_repeats_the_root_is_none() -> None:
    found = incident(symptoms=(Symptom("RuntimeError", MESSAGE, None), Symptom("RuntimeError", "y", None)))
    assert [item.message for item in found.symptoms] == ["y"]


def test_versions_come_from_the_neighbours_but_arguments_do_not() -> None:
    bare = Life("", 100)
    known = Life("", 1, Facts(vllm_version="0.26.0", platform="cuda", arguments=(("port", "1"),)))
    candidate = Candidate(ExceptionInfo("ValueError", "x"), Origin("s", 110, 110), None)
    found = build(Verdict(bare, candidate, "died"), [known, bare], "s", CardSet([CARD]))
    assert (found.facts.vllm_version, found.facts.platform, found.facts.arguments) == ("0.26.0", "cuda", ())
