"""What was judged of one failure of one life of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lmdiag.diagnose.candidates import Candidate, candidate_key
from lmdiag.diagnose.lives import Life
from lmdiag.model import FAILURES, Match, Symptom

MatchText = Callable[[str], Match | None]


class Verdict:
    """One failure of one life."""

    def __init__(self, life: Life, candidate: Candidate | None, outcome: str, symptoms: Iterable[Symptom] = ()) -> None:
        self.life = life
        self.candidate = candidate
        self.outcome = outcome
        self.symptoms = list(symptoms)
        self.earlier: list[Verdict] = []
        self.resolved = False
        """A failed start, with a start behind it that succeeded; a stall that is over."""
        self.recovered = False
        """A death, with a start behind it that succeeded: it will come again."""
        self.superseded = False
        """A failed start, and a later one failed of something else."""
        self.newest = life
        """The last life in which it happened."""
        self.lives = 1
        self.times = 0
        """How many stalls there were."""
        self.forgotten = 0
        """Occurrences in lives that are not kept any more."""
        self.evidence: tuple[str, ...] = candidate.evidence if candidate else ()
        self.first_line = candidate.first.first_line if candidate else (life.first_symptom or life.first_line)
        self.last_line = candidate.last.last_line if candidate else max(self.first_line, life.last_line)

    @property
    def key(self) -> tuple[str, str] | None:
        """What two lives that failed alike have in common; None where the cause cannot be seen."""
        return candidate_key(self.candidate.info, self.candidate.match) if self.candidate else None

    @property
    def fingerprint(self) -> str:
        """What names the same failure of the same service, in every log and at any time."""
        return digest(*(self.key or ("invisible", self.outcome)), self.life.service)

    @property
    def final(self) -> bool:
        """Whether the process that ends the server has spoken, so that the cause is settled."""
        if self.candidate is None or self.outcome not in FAILURES:
            return False
        return self.candidate.logger == "argparse" or any(_is_last_word(item) for item in self.symptoms)

    @property
    def occurrences(self) -> int:
        """How often it happened."""
        return self.forgotten + max(self.candidate.count if self.candidate else 1, self.lives, self.times)


def _is_last_word(symptom: Symptom) -> bool:
    name = (symptom.type or "").rsplit(".", 1)[-1]
    return symptom.message.startswith("Engine core initialization failed") or name == "EngineDeadError"


def digest(*parts: str) -> str:
    """Return a short hash, for ids."""
    from lmdiag.digests import blake2b  # only where there is something to report

    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
