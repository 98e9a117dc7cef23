"""Collects the events of one source into the lives of its servers; judges them at the end."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from lmdiag.diagnose import facts as facts_of
from lmdiag.diagnose.candidates import Candidate, candidate_key, from_request_file, is_fatal, is_request
from lmdiag.diagnose.cards import Cards
from lmdiag.diagnose.chains import STOP_TYPES, Quoted, is_noise, is_symptom_type, of_the_chain, root_index, symptom
from lmdiag.diagnose.incidents import build
from lmdiag.diagnose.lives import Life
from lmdiag.diagnose.verdict import Verdict
from lmdiag.diagnose.verdicts import judge
from lmdiag.lazy_pattern import lazy
from lmdiag.model import ClueSeen, ExceptionInfo, Incident, Match, Record, Symptom, Traceback
from lmdiag.parse.notable import CRASH

_MAX_CANDIDATES = 500
_MAX_LIVES = 200
_MAX_FORGOTTEN = 1000
_MAX_SERVICES = 64
_MAX_WAITING = 128
_MAX_SAID = 40
_MAX_SYMPTOMS = 60
_KILLED = lazy(r"Worker proc (\S+) died unexpectedly \(exit code: -\d+\)")
_GONE = lazy(r"Worker proc (\S+) died unexpectedly(?: \(exit code: None\))?,|Engine core proc (\S+) died unexpectedly")
_ENGINE_GONE = lazy(r".*MPClient: (engine core exited unexpectedly.*)")
_LMCACHE_HEAD = lazy(
    r"(?:Failed to initialize LMCacheManager components|Failed during post_init|LMCacheEngine marked as init failed): "
)
_LMCACHE_TAIL = lazy(r"\.? System will operate in degraded mode \(recompute\)\.?\s*$")
_TAIL_ONLY = lazy(r"^\.? ?System will operate in degraded mode")
_FATAL_SAYING = lazy(
    r"(?:Failed to start model server|Runner failed with exception): (.*)|(\[Errno \d+\] error while attempting to bind .*)",
    re.DOTALL,
)
_TYPED = lazy(r"(\w+(?:Error|Exception))\((['\"])(.*)\2,?\)$", re.DOTALL)


class Finding(NamedTuple):
    """A verdict on a service, of which the incident is made when it is wanted: that costs more than to judge."""

    fingerprint: str
    outcome: str
    occurrences: int
    first_line: int
    last_line: int
    life: int
    """The first line of the last life in which it happened."""
    over: bool
    """A later life of the server came up or failed of something else, or it went on by itself."""
    final: bool
    """The server's own last word, or its next life, stands in the log: what may still follow does not change the cause."""
    service: str
    """The container, pod or unit, where the log holds several."""
    build: Callable[[], Incident]


class Diagnoser:
    """One source's events in, its incidents out. Bounded: what exceeds the bounds is counted in `dropped`.

    It can be pickled between two events; the cards are not part of it, so `attach` gives them to a loaded one.
    """

    def __init__(self, source: str, cards: Cards) -> None:
        self._source = source
        self._cards = cards
        self._lives: dict[str, list[Life]] = {}
        self._forgotten: dict[tuple[str, object], tuple[int, int]] = {}  # (service, key): lives, occurrences
        self._waiting: list[tuple[int, int, Record | Traceback]] = []
        self.fed = 0
        """How many events were fed: what was found may have changed when it grows."""
        self.dropped = 0

    def attach(self, cards: Cards) -> None:
        """Work with these cards from now on."""
        self._cards = cards

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cards"}

    # -- collecting ------------------------------------------------------------------------------------------------

    def feed(self, event: Record | Traceback) -> None:
        """Take one event. Events are finished out of order (a record ends when the next begins), and judged in order."""
        heapq.heappush(self._waiting, (event.origin.first_line, self.fed, event))
        self.fed += 1
        if len(self._waiting) > _MAX_WAITING:
            self._take(heapq.heappop(self._waiting)[2])

    def _take(self, event: Record | Traceback) -> None:
        if isinstance(event, Record):
            self._record(event)
        else:
            self._traceback(event)

    def _life(self, event: Record | Traceback) -> Life:
        service = event.origin.service
        if service not in self._lives and len(self._lives) >= _MAX_SERVICES:
            service = ""
        lives = self._lives.setdefault(service, [])
        if not lives:
            lives.append(Life(service, 1))
        line = event.origin.first_line  # a traceback may be finished only after the next start has been seen
        life = next((life for life in reversed(lives) if life.first_line <= line), lives[0])
        life.last_line = max(life.last_line, event.origin.last_line)
        return life

    def _record(self, record: Record) -> None:
        life = self._life(record)
        if life.starts_anew(record):
            lives = self._lives[life.service]
            life = Life(life.service, record.origin.first_line)
            lives.append(life)
            self._trim(lives, _MAX_LIVES)
        life.note(record)
        life.facts = facts_of.update(life.facts, record)
        if record.logger != "bare" and not from_request_file(record):
            self._see(life, record, record.text)
        if life.engine_seen and (hit := _ENGINE_GONE.match(record.text)):
            life.gone = life.gone or record._replace(text=hit.group(1))
        if record.logger == "bare" and CRASH.match(record.text):
            self._kill(life, record)
        elif record.level in ("ERROR", "CRITICAL"):
            self._error_record(life, record)

    @property
    def lives(self) -> int:
        """How many lives of its fullest service are kept whole."""
        return max(map(len, self._lives.values()), default=0)

    @property
    def serving(self) -> dict[str, int]:
        """The first line of each service's newest life, of those that came up."""
        newest = {service: lives[-1] for service, lives in self._lives.items()}
        return {service: life.first_line for service, life in newest.items() if life.ready is not None}

    def trim(self, lives: int) -> None:
        """Keep the first and the newest `lives` lives of each service; of others remain the numbers.

        Of very many services those that were silent longest are forgotten.
        """
        for kept in self._lives.values():
            self._trim(kept, lives)
        if len(self._lives) > _MAX_SERVICES // 2:
            by_age = sorted(self._lives, key=lambda service: self._lives[service][-1].last_line)
            for service in by_age[: -_MAX_SERVICES // 4]:  # containers that came and went
                del self._lives[service]

    def _trim(self, lives: list[Life], most: int) -> None:
        for old in lives[1:-most]:
            self._forget(old)
        del lives[1:-most]

    def _forget(self, life: Life) -> None:
        """Keep of a life only how often what happened in it happened."""
        for verdict in judge([life], self._match_text):
            where = (life.service, verdict.key)
            if where not in self._forgotten and len(self._forgotten) >= _MAX_FORGOTTEN:
                self.dropped += 1
                continue
            lives, occurrences = self._forgotten.get(where, (0, 0))
            self._forgotten[where] = (lives + 1, occurrences + verdict.occurrences)

    def _see(self, life: Life, event: Record | Traceback, text: str) -> None:
        """Note what a card asked for."""
        for clue, line, fields in self._cards.clues.find(text):
            life.see(clue.card, ClueSeen(clue.name, event.origin.first_line, line, fields))

    def _kill(self, life: Life, record: Record) -> None:
        """Keep the first sign of a process that a signal ended."""
        if life.killed is None or record.origin.first_line < life.killed.origin.first_line:
            life.killed = record

    def _error_record(self, life: Life, record: Record) -> None:
        text = record.text
        if from_request_file(record):
            return
        if _KILLED.match(text):
            self._kill(life, record)
            return
        if _GONE.match(text):
            life.gone = life.gone or record
        if record.logger == "argparse":
            self._usage_error(life, record)
            return
        if _TAIL_ONLY.match(text):
            self._mark_degraded(life)
            return
        if record.logger.startswith("lmcache") and _LMCACHE_HEAD.match(text):
            message = _LMCACHE_TAIL.sub("", _LMCACHE_HEAD.sub("", text))
            message = message if message.strip(" .") else text  # LMCache may give no reason
            self._candidate(life, record, ExceptionInfo(None, message), degraded=True)
            return
        if hit := _FATAL_SAYING.search(text):
            said = hit.group(1) or hit.group(2)
            typed = _TYPED.match(said)
            info = ExceptionInfo(typed.group(1), typed.group(3)) if typed else ExceptionInfo(None, said.strip())
            self._candidate(life, record, info, fatal=True)
            return
        name, _, rest = text.partition(": ")
        known, quoted = symptom(name.rsplit(".", 1)[-1], text)
        if known or (rest and symptom(name.rsplit(".", 1)[-1], rest)[0]):
            self._symptom(life, record, ExceptionInfo(None, text), quoted)
        elif len(life.said) < _MAX_SAID:
            life.said.append(record)

    def _mark_degraded(self, life: Life) -> None:
        for candidate in life.candidates.values():
            if candidate.logger == "lmcache":
                candidate.degraded = True

    def _usage_error(self, life: Life, record: Record) -> None:
        message = record.text.partition(": error: ")[2]
        inner = re.search(r"Value error, (.*?)(?:\s*\[type=|\Z)", message, re.DOTALL)
        match = self._cards.match("ValueError", inner.group(1), ()) if inner else None
        self._candidate(life, record, ExceptionInfo(None, message), fatal=True, match=match)

    def _traceback(self, traceback: Traceback) -> None:
        life = self._life(traceback)
        if not is_request(traceback):
            for text in (traceback.header, *(item.message for item in traceback.exceptions)):
                self._see(life, traceback, text)
        if is_noise(traceback) or traceback.level in ("INFO", "DEBUG", "WARNING"):
            return
        exceptions = traceback.exceptions
        if not exceptions:
            if not is_request(traceback):
                life.cut = life.cut or traceback
            return
        if exceptions[-1].name in STOP_TYPES:
            if exceptions[-1].name != "CancelledError":
                life.stop = min(life.stop or traceback.origin.first_line, traceback.origin.first_line)
            return
        index = root_index(exceptions)
        root = exceptions[index]
        known, quoted = symptom(root.name, root.message)
        if known and (is_symptom_type(root) or not from_request_file(traceback)):
            self._symptom(life, traceback, root, quoted)
            return
        candidate = self._candidate(
            life,
            traceback,
            root,
            fatal=is_fatal(traceback),
            request=is_request(traceback),
            degraded=_degrades(traceback),
            match=self._match(root, traceback) or of_the_chain(exceptions, lambda item: self._match(item, traceback)),
        )
        if candidate is not None:
            for other in (*exceptions[:index], *exceptions[index + 1 :]):
                _note(candidate.symptoms, Symptom(other.type, other.message, traceback.origin.process))

    def _match(self, info: ExceptionInfo, event: Traceback | Record) -> Match | None:
        return self._cards.match(info.type, info.message, info.frames, truncated=event.truncated)

    def _candidate(
        self,
        life: Life,
        event: Traceback | Record,
        info: ExceptionInfo,
        *,
        fatal: bool = False,
        request: bool = False,
        degraded: bool = False,
        match: Match | None = None,
    ) -> Candidate | None:
        match = match or self._match(info, event)
        key = candidate_key(info, match)
        candidate = life.candidates.get(key)
        if candidate is None:
            if len(life.candidates) >= _MAX_CANDIDATES and not self._evict(life):
                return None
            candidate = life.candidates[key] = Candidate(info, event.origin, match)
            candidate.header = event.header if isinstance(event, Traceback) else ""
            candidate.truncated = event.truncated
        candidate.add(event, info)
        candidate.fatal = candidate.fatal or fatal
        candidate.request = candidate.request and request
        candidate.degraded = candidate.degraded or degraded
        return candidate

    def _evict(self, life: Life) -> bool:
        """Make room for one more candidate: a request's error goes first, what ended a process never."""
        self.dropped += 1
        candidates = life.candidates
        old = next((key for key, item in candidates.items() if item.request), None)
        old = old or next((key for key, item in candidates.items() if not (item.fatal or item.degraded)), None)
        if old is None:
            return False
        del candidates[old]
        return True

    def _symptom(self, life: Life, event: Traceback | Record, info: ExceptionInfo, quoted: Quoted | None) -> None:
        line = event.origin.first_line
        life.first_symptom = line if life.first_symptom is None else min(line, life.first_symptom)
        if len(life.symptoms) < _MAX_SYMPTOMS:
            life.symptoms.append((line, Symptom(info.type, info.message, event.origin.process)))
        if quoted is not None and len(life.quoted) < _MAX_SYMPTOMS:
            life.quoted.append((line, quoted, event.origin.process))

    # -- judging ---------------------------------------------------------------------------------------------------

    def close(self) -> list[Incident]:
        """Judge what was collected; return the incidents in the order of the log."""
        return [finding.build() for finding in self.findings()]

    def findings(self, *, earlier: bool = False) -> list[Finding]:
        """Judge what was collected, in the order of the log. Nothing can be fed afterwards.

        `earlier`: also failed starts that a later failure of another cause has superseded.
        """
        while self._waiting:
            self._take(heapq.heappop(self._waiting)[2])
        found = [
            self._finding(verdict, lives)
            for lives in self._lives.values()
            for verdict in judge(lives, self._match_text, earlier=earlier)
        ]
        return sorted(found, key=lambda finding: finding.first_line)

    def _finding(self, verdict: Verdict, lives: list[Life]) -> Finding:
        forgotten, verdict.forgotten = self._forgotten.get((verdict.life.service, verdict.key), (0, 0))
        facts, past = verdict.life.facts, verdict.newest is not lives[-1]
        verdict.life.facts = facts._replace(restarts=facts.restarts + forgotten)
        return Finding(
            verdict.fingerprint,
            verdict.outcome,
            verdict.occurrences,
            verdict.first_line,
            verdict.last_line,
            verdict.newest.first_line,
            verdict.resolved or verdict.superseded or (past and lives[-1].ready is not None),
            verdict.final or past,
            verdict.life.service,
            partial(build, verdict, lives, self._source, self._cards),
        )

    def _match_text(self, text: str) -> Match | None:
        return self._cards.match(None, text, ())


def _degrades(traceback: Traceback) -> bool:
    return traceback.logger.startswith("lmcache") and _LMCACHE_HEAD.match(traceback.header + ": ") is not None


def _note(symptoms: list[Symptom], found: Symptom) -> None:
    if found not in symptoms and len(symptoms) < _MAX_SYMPTOMS:
        symptoms.append(found)
