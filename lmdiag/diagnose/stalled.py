"""Verdicts on a server that says nothing wrong and does nothing."""

from __future__ import annotations

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.stalls import Stall
from lmdiag.diagnose.verdict import MatchText, Verdict
from lmdiag.model import FAILURES, ExceptionInfo, Symptom


def with_stalls(life: Life, verdicts: list[Verdict], newest: Life, match_text: MatchText) -> list[Verdict]:
    """Add what a life's silence tells. A stall that ends in the server's death is a symptom of what ended it.

    Of stalls of the same kind the newest counts; a second sign of one that goes on is its symptom. A server that was
    told to stop may make no tokens.
    """
    ended = next((verdict for verdict in verdicts if verdict.outcome in FAILURES), None)
    found: dict[tuple[str, str] | None, Verdict] = {}
    going: Verdict | None = None
    for stall in life.stalls.found():
        if life.stop is not None and life.stop < stall.first.origin.first_line:
            continue
        parent = None if stall.over else ended or going
        if parent is not None:
            parent.symptoms.append(Symptom(None, stall.text, stall.last.origin.process))
            continue
        verdict = _stalled(life, stall, newest, match_text)
        going = going if stall.over else verdict
        found.setdefault(verdict.key, verdict)
    return verdicts + list(found.values())


def _stalled(life: Life, stall: Stall, newest: Life, match_text: MatchText) -> Verdict:
    """A stalled server is up and does not work: degraded. Of a start that hangs nobody knows yet what becomes of it."""
    info = ExceptionInfo(None, stall.text)
    candidate = Candidate(info, stall.first.origin, match_text(stall.text))
    candidate.add(stall.first, info)
    candidate.add(stall.last, info)
    candidate.request = False
    verdict = Verdict(life, candidate, "unknown" if stall.starting else "degraded")
    verdict.times, verdict.evidence = stall.number, (stall.text,)
    verdict.resolved = stall.over or (stall.starting and life is not newest and newest.ready is not None)
    return verdict
