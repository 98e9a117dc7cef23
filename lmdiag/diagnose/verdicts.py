"""Judges the lives of a server: which candidate was the cause, what became of the server, and what only followed."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.diagnose.candidates import Candidate, evidence
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.stalled import with_stalls
from lmdiag.diagnose.verdict import MatchText, Verdict
from lmdiag.model import FAILURES, ExceptionInfo, Match, Origin, Record, Symptom

_NEAR_LINES = 100
"""A request that failed this close to the engine's death failed because of it."""
# A worker's exception alone ends nothing: it may have been one request's, for which the engine core lives on.
_RUNNING = "EngineCore encountered a fatal error"
"""Written by an engine that was serving and was not told to stop."""
_DEATHS = ("Process ", _RUNNING, "EngineCore failed to start", "EngineCore hit an exception")


def judge(lives: Sequence[Life], match_text: MatchText, *, earlier: bool = False) -> list[Verdict]:
    """Return the verdicts on the lives of one service, crash loops merged, superseded starts folded into the last one.

    `earlier`: the superseded ones are returned too.
    """
    verdicts = [
        verdict for life in lives for verdict in with_stalls(life, _judge_life(life, match_text), lives[-1], match_text)
    ]
    verdicts = _merge(verdicts)
    failures = [verdict for verdict in verdicts if verdict.outcome in FAILURES]
    visible = [verdict for verdict in failures if verdict.candidate]
    if visible:
        verdicts = [verdict for verdict in verdicts if verdict.candidate]
    newest = lives[-1]
    if newest.ready is not None and not newest.failing:
        for verdict in visible:
            verdict.resolved = verdict.outcome == "start_failed"
            verdict.recovered = verdict.outcome == "died"
    elif len(visible) > 1:
        _fold_earlier(visible)
    return verdicts if earlier else [verdict for verdict in verdicts if not verdict.superseded]


def _fold_earlier(visible: list[Verdict]) -> None:
    """Of several failed starts the newest is the one to repair; the ones before it tell what was tried."""
    last = max(visible, key=lambda verdict: verdict.last_line)
    folded = [
        item for item in visible if item is not last and item.outcome == "start_failed" and item.life is not last.life
    ]
    last.earlier.extend(folded)
    for verdict in folded:
        verdict.superseded = True


def _merge(verdicts: list[Verdict]) -> list[Verdict]:
    merged: dict[object, Verdict] = {}
    for verdict in verdicts:
        key = verdict.key or ("invisible", verdict.outcome)
        first = merged.get(key)
        if first is None:
            merged[key] = verdict
            continue
        first.lives += verdict.life is not first.life
        first.newest = max(first.newest, verdict.life, key=lambda life: life.first_line)
        first.outcome = (
            verdict.outcome if verdict.outcome in FAILURES or first.outcome not in FAILURES else first.outcome
        )
        first.resolved = first.resolved and verdict.resolved
        first.times += verdict.times
        first.last_line = max(first.last_line, verdict.last_line)
        first.symptoms.extend(item for item in verdict.symptoms if item not in first.symptoms)
        if first.candidate and verdict.candidate:
            _absorb(first.candidate, verdict.candidate)
        first.life.facts = verdict.life.facts._replace(restarts=first.lives - 1)
    return list(merged.values())


def _absorb(first: Candidate, other: Candidate) -> None:
    first.reports.update(other.reports)
    first.processes.update(other.processes)
    first.last, first.last_time = other.last, other.last_time or first.last_time
    first.request = first.request and other.request


def _judge_life(life: Life, match_text: MatchText) -> list[Verdict]:
    life.settle()
    candidates = sorted(life.candidates.values(), key=lambda item: item.first.first_line)
    requests = [item for item in candidates if item.request]
    others = [item for item in candidates if not item.request]
    others, symptoms = _without_shutdown(life, others)
    degraded = [item for item in others if item.degraded and not item.fatal]
    others = [item for item in others if item not in degraded]
    fatal = [item for item in others if item.fatal]
    if life.cut and life.ready is None and not (others or requests or symptoms or life.killed):
        verdict = Verdict(life, None, "unknown")
        verdict.first_line, verdict.last_line = life.cut.origin.first_line, life.cut.origin.last_line
        verdict.evidence = evidence(life.cut)
        return [verdict]
    if not (fatal or symptoms or life.killed):
        return _alive(life, others, degraded, requests, match_text)
    root = _root(life, fatal or others, degraded)
    candidate = root or _fallback(life, match_text)
    outcome = _outcome(life, fatal[0] if fatal else candidate, symptoms)
    if candidate is None:
        requests = [item for item in requests if not _collateral(item, life)]
    apart = [item for item in others + degraded if item is not candidate and _is_apart(item, candidate, outcome)]
    followed = [item for item in others + degraded if item is not candidate and item not in apart]
    verdict = Verdict(life, candidate, outcome, _symptoms(candidate, followed, symptoms))
    if candidate is None:
        verdict.evidence = tuple(line for record in life.said[-3:] for line in evidence(record))
    return [
        verdict,
        *_alive(life, [i for i in apart if not i.degraded], [i for i in apart if i.degraded], requests, match_text),
    ]


def _without_shutdown(life: Life, others: list[Candidate]) -> tuple[list[Candidate], list[tuple[int, Symptom]]]:
    """What is logged after an orderly stop was asked for is the noise of stopping."""
    stop = life.stop
    if stop is None or (life.killed and life.killed.origin.first_line < stop):
        return others, life.symptoms
    if any(item.fatal and item.first.first_line < stop for item in others):
        return others, life.symptoms
    if any(line < stop for line, _ in life.symptoms):
        return others, life.symptoms
    return [item for item in others if item.first.first_line < stop or item.header.startswith(_RUNNING)], []


def _root(life: Life, pool: list[Candidate], degraded: list[Candidate]) -> Candidate | None:
    killed = life.killed
    if killed and not any(item.first.first_line < killed.origin.first_line for item in pool):
        return _from_record(killed, None)
    if not pool:
        return None
    quoted = [quote.message for _, quote, _ in life.quoted]
    confirmed = [item for item in pool if item.info.message and any(_same(item.info.message, text) for text in quoted)]
    strong = [item for item in pool if not item.weak]
    if not (confirmed or strong) and life.symptoms:
        return None  # a broken connection tells only that the other side had gone
    first = min(confirmed or strong or pool, key=lambda item: item.first.first_line)
    return degraded[0] if degraded and _wants_lmcache(first, life) else first


def _wants_lmcache(first: Candidate, life: Life) -> bool:
    """Whether a process died for want of the engine whose failure LMCache had swallowed.

    An exception with a message speaks for itself. An empty assertion does not: a start dies of one, and a server that
    came up in degraded mode dies of `assert self.lmcache_engine is not None` at its first request (LMCache up to 0.5.0).
    """
    if first.info.message or first.info.name != "AssertionError":
        return False
    return life.ready is None or any("lmcache" in frame.file for frame in first.info.frames[-3:])


def _same(message: str, quote: str) -> bool:
    head = message.split("\n", 1)[0]
    return quote.startswith(head) or (len(quote) > 20 and message.startswith(quote.split("\n", 1)[0]))


def _fallback(life: Life, match_text: MatchText) -> Candidate | None:
    """No exception is left in the log, but something quotes or says what happened."""
    if life.killed:
        return _from_record(life.killed, None)
    for line, quote, _ in life.quoted:
        info = ExceptionInfo(quote.type, quote.message)
        found = Candidate(info, Origin("", line, line, service=life.service), match_text(quote.message))
        found.request, found.fatal = False, True
        return found
    for record in life.said:
        if match := match_text(record.text):
            return _from_record(record, match)
    return None


def _from_record(record: Record, match: Match | None) -> Candidate:
    candidate = Candidate(ExceptionInfo(None, record.text), record.origin, match)
    candidate.add(record, candidate.info)
    candidate.fatal, candidate.request = True, False
    return candidate


def _outcome(life: Life, candidate: Candidate | None, symptoms: list[tuple[int, Symptom]]) -> str:
    if life.ready is None:  # the log may begin while the server was serving: only a running engine has this to say
        running = candidate is not None and candidate.header.startswith(_RUNNING) and not life.seen
        return "died" if running else "start_failed"
    lines = [line for line, _ in symptoms] + ([candidate.first.first_line] if candidate else [])
    if symptoms or life.killed:
        return "died" if max(lines, default=life.ready) >= life.ready else "start_failed"
    after = candidate is not None and candidate.first.first_line > life.ready
    if after and candidate and candidate.header.startswith(_DEATHS):
        return "died"
    return "running"  # the server came up in spite of it, or went on


def _is_apart(item: Candidate, root: Candidate | None, outcome: str) -> bool:
    """In a server that had been serving, an error well before its death, or a degraded cache, is a matter of its own."""
    if outcome == "died" and item.degraded:
        return True
    return (
        outcome == "died"
        and not item.fatal
        and (root is None or item.last.last_line < root.first.first_line - _NEAR_LINES)
    )


def _collateral(item: Candidate, life: Life) -> bool:
    if item.match is not None or life.first_symptom is None:
        return False
    return item.last.last_line >= life.first_symptom - _NEAR_LINES


def _symptoms(root: Candidate | None, followed: list[Candidate], symptoms: list[tuple[int, Symptom]]) -> list[Symptom]:
    found = list(root.symptoms) if root else []
    found += [Symptom(item.info.type, item.info.message, next(iter(item.processes), None)) for item in followed]
    for _, symptom in symptoms:
        if not any((item.type, item.message) == (symptom.type, symptom.message) for item in found):
            found.append(symptom)
    return found


def _alive(
    life: Life, others: list[Candidate], degraded: list[Candidate], requests: list[Candidate], match_text: MatchText
) -> list[Verdict]:
    verdicts = [Verdict(life, item, "degraded", item.symptoms) for item in degraded]
    outcome = "running" if life.ready is not None else "unknown"
    verdicts += [Verdict(life, item, outcome, item.symptoms) for item in others]
    verdicts += [Verdict(life, item, "request_failed", item.symptoms) for item in requests]
    if not verdicts and life.ready is None:
        for record in life.said:
            match = match_text(record.text)
            if match and match.confidence == "exact":
                return [Verdict(life, _from_record(record, match), "unknown")]
    return verdicts
