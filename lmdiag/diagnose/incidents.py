"""Makes the incidents that a person reads out of the verdicts: card, severity, advice; redacted here, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.cards import Cards
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.redact import redact, redacted
from lmdiag.diagnose.verdict import Verdict, digest
from lmdiag.errors import CardError
from lmdiag.model import SEVERITIES, Advice, Card, ClueSeen, Earlier, Facts, Incident, RaisedAt, Root, Symptom

_MAX_MESSAGE = 8000
_MAX_REQUEST_MESSAGE = 1000
_MAX_FIELD = 1000
_MAX_EVIDENCE_LINE = 400
_MAX_SYMPTOMS = 12
_MAX_EARLIER = 10
_MAX_PROCESSES = 64
# A card's severity is what the error deserves at worst; what became of the server caps it.
_CAPS = {
    "start_failed": "critical",
    "died": "critical",
    "degraded": "error",
    "running": "warning",
    "request_failed": "info",
}
_UNCARDED = {
    "start_failed": "critical",
    "died": "critical",
    "degraded": "error",
    "running": "warning",
    "unknown": "error",
}


def build(verdict: Verdict, lives: Sequence[Life], source: str, cards: Cards) -> Incident:
    """Return the incident of a verdict on one of a service's lives."""
    return _incident(verdict, _facts(verdict, lives), source, cards)


def _facts(verdict: Verdict, lives: Sequence[Life]) -> Facts:
    """A crash loop's log may hold the banner of one life only: versions are taken from its neighbours, arguments are not."""
    facts = verdict.life.facts
    for life in reversed(lives):
        facts = facts._replace(
            vllm_version=facts.vllm_version or life.facts.vllm_version,
            lmcache_version=facts.lmcache_version or life.facts.lmcache_version,
            platform=facts.platform or life.facts.platform,
        )
    return facts


def _incident(verdict: Verdict, facts: Facts, source: str, cards: Cards) -> Incident:
    candidate = verdict.candidate
    card = _card(candidate, cards)
    fields = tuple(
        (name, redacted(value, _MAX_FIELD))
        for name, value in (candidate.match.fields if card and candidate and candidate.match else ())
    )
    scope = _scope(verdict, card)
    advised = _advised(card, fields, facts, verdict, cards) if card else _NOT_ADVISED
    first_seen, last_seen = (candidate.first_time, candidate.last_time) if candidate else (None, None)
    return Incident(
        id=digest(verdict.fingerprint, source, str(verdict.first_line)),
        fingerprint=verdict.fingerprint,
        state="resolved" if verdict.resolved else "repeated" if verdict.lives > 1 or verdict.forgotten else "opened",
        card=card.id if card else None,
        title=card.title if card else _title(candidate),
        severity=_severity(verdict, card),
        scope=scope,
        confidence=candidate.match.confidence if candidate and candidate.match else "none",
        cause_visible=candidate is not None,
        outcome=verdict.outcome,
        root=_root(candidate, card) if candidate else None,
        raised_at=_raised_at(candidate, card, facts, cards) if candidate else None,
        symptoms=_symptoms(verdict, candidate),
        fields=fields,
        facts=facts,
        advice=advised.advice,
        occurrences=verdict.occurrences,
        processes=tuple(candidate.processes)[:_MAX_PROCESSES] if candidate else (),
        first_seen=first_seen,
        last_seen=last_seen,
        source=source,
        first_line=verdict.first_line,
        last_line=verdict.last_line,
        evidence=_evidence(verdict),
        earlier=tuple(_earlier(item, source) for item in verdict.earlier[:_MAX_EARLIER]),
        reason=advised.reason,
        clues=advised.clues,
    )


class _Advised(NamedTuple):
    """What a card says about this incident."""

    advice: tuple[Advice, ...]
    reason: str | None
    clues: tuple[ClueSeen, ...]


_NOT_ADVISED = _Advised((), None, ())


def _advised(card: Card, fields: Sequence[tuple[str, str]], facts: Facts, verdict: Verdict, cards: Cards) -> _Advised:
    from lmdiag.diagnose.advice import asked_for, personal, reason  # only for an incident that has a card
    from lmdiag.diagnose.known import known_values

    clues = [_redacted(clue) for clue in verdict.life.clues(card.id, verdict.last_line)]
    known = known_values(fields, facts, verdict.outcome, clues)
    advice = personal(card.solutions, known, facts, cards)
    return _Advised(advice, reason(card, known), asked_for(card, known, clues))


def _redacted(clue: ClueSeen) -> ClueSeen:
    fields = tuple((name, redacted(value, _MAX_FIELD)) for name, value in clue.fields)
    return clue._replace(text=redacted(clue.text, _MAX_EVIDENCE_LINE), fields=fields)


def _raised_at(candidate: Candidate, card: Card | None, facts: Facts, cards: Cards) -> RaisedAt | None:
    from lmdiag.diagnose.raised import raised_at  # only where there is something to report

    return raised_at(candidate.info, card, facts, cards, truncated=candidate.truncated)


def _card(candidate: Candidate | None, cards: Cards) -> Card | None:
    """Return the card that fits. One that broke after the index was made costs its advice, not the incident."""
    if candidate is None or candidate.match is None:
        return None
    try:
        return cards.card(candidate.match.card)
    except CardError:
        return None


def _evidence(verdict: Verdict) -> tuple[str, ...]:
    """A request's own error quotes what the client sent; its message is enough."""
    if verdict.outcome == "request_failed":
        return ()
    whole = redact("\n".join(line[: 4 * _MAX_EVIDENCE_LINE] for line in verdict.evidence))  # a literal may span lines
    return tuple(redacted(line, _MAX_EVIDENCE_LINE) for line in whole.split("\n")[: len(verdict.evidence)])


def _scope(verdict: Verdict, card: Card | None) -> str:
    if verdict.outcome == "request_failed" and not _is_the_servers(card):
        return "request"
    if card and card.scope != "request":
        return card.scope
    return "startup" if verdict.outcome in ("start_failed", "degraded") else "runtime"


def _is_the_servers(card: Card | None) -> bool:
    """Whether a failed request is not the client's mistake: the server fails every such request."""
    return card is not None and card.scope == "runtime"


def _severity(verdict: Verdict, card: Card | None) -> str:
    worst = card.severity if card else _UNCARDED.get(verdict.outcome, "error")
    if verdict.outcome == "running" and not _is_logged(verdict):
        worst = "info"  # a raw traceback that the server survived, or one of a start that succeeded
    if verdict.recovered:
        worst = min(worst, "error", key=SEVERITIES.index)
    cap = "info" if verdict.resolved else _CAPS.get(verdict.outcome, "critical")
    if verdict.outcome == "request_failed" and _is_the_servers(card):
        cap = "warning"
    return SEVERITIES[min(SEVERITIES.index(worst), SEVERITIES.index(cap))]


def _is_logged(verdict: Verdict) -> bool:
    """Whether vLLM itself reported the error while it was serving."""
    candidate, ready = verdict.candidate, verdict.life.ready
    return bool(candidate and candidate.logger != "bare" and ready and candidate.first.first_line > ready)


def _title(candidate: Candidate | None) -> str:
    if candidate is None:
        return "The log shows only consequences of the failure, not its cause"
    info = candidate.info
    first = info.message.strip().split("\n", 1)[0]
    return redacted(f"{info.name}: {first}" if info.type and first else first or info.name, 120)


def _root(candidate: Candidate, card: Card | None) -> Root:
    info = candidate.info
    kind = info.type
    # where the log quotes the message alone, the card knows what raises it; a usage error is no exception
    if kind is None and card and candidate.logger != "argparse":
        types = {name for rule in card.rules for name in rule.types}
        kind = next(iter(types)) if len(types) == 1 else None
    origin = candidate.first
    named = origin.process or next(iter(candidate.processes), None)
    limit = _MAX_REQUEST_MESSAGE if candidate.request else _MAX_MESSAGE
    return Root(kind, redacted(info.message, limit), named, origin.pid)


def _symptoms(verdict: Verdict, candidate: Candidate | None) -> tuple[Symptom, ...]:
    own = candidate.info.message if candidate else None
    found = [item for item in verdict.symptoms if item.message != own]
    return tuple(Symptom(item.type, redacted(item.message, 600), item.process) for item in found[:_MAX_SYMPTOMS])


def _earlier(verdict: Verdict, source: str) -> Earlier:
    candidate = verdict.candidate
    assert candidate is not None
    card = candidate.match.card if candidate.match else None
    return Earlier(candidate.info.type, redacted(candidate.info.message, 600), card, source, verdict.first_line)
