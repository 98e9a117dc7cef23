"""The lives of a server in a log: each start opens one, and what happened to it decides what an error in it meant.

A log that is appended to over restarts holds many; a log of several containers holds those of each.
"""

from __future__ import annotations

from lmdiag.diagnose.candidates import Candidate
from lmdiag.diagnose.chains import Quoted
from lmdiag.diagnose.stalls import Stalls
from lmdiag.lazy_pattern import lazy
from lmdiag.model import ClueSeen, Facts, Record, Symptom, Traceback

_STARTS = (
    (
        lazy(r"vLLM API server version \S+$|[ ▄▀█\n]*+version \d\S*(?:$|\n)|vLLM server version \S+, serving model"),
        "banner",
    ),
    (lazy(r"non-default args: \{|args: Namespace\("), "arguments"),
    (lazy(r"\$ (?:\S+ )*vllm serve "), "shell"),
)
_READY = lazy(r"Application startup complete\.?$|Uvicorn running on ")
# Whole records of the API server and of uvicorn: a client's text can hold such words, but is never a whole record.
_STOP = lazy(
    r"(?:\[shutdown\] )?API server: shutdown triggered$|Shutting down(?: FastAPI HTTP server\.?)?$|"
    r"Gracefully (?:shutting down|stopping)[\w .]*$|(?:\[shutdown\] )?\w+: trigger received signal=SIG\w+$|"
    r"(?:Received|Got) signal \w+[\w ,.]*$|Waiting for application shutdown\.?$"
)
_MAX_CLUES = 16


class Life:
    """One life of a server: from its start, or the beginning of the log, to its next start or the end."""

    def __init__(self, service: str, first_line: int, facts: Facts | None = None) -> None:
        self.service = service
        self.first_line = first_line
        self.facts = facts or Facts()
        self.seen: set[str] = set()
        self.api_pid: int | None = None
        self.ready: int | None = None
        self.stop: int | None = None
        self.candidates: dict[tuple[str, str], Candidate] = {}
        self.symptoms: list[tuple[int, Symptom]] = []
        self.quoted: list[tuple[int, Quoted, str | None]] = []
        self.said: list[Record] = []
        self.killed: Record | None = None
        """A worker that a signal ended (negative exit code)."""
        self.gone: Record | None = None
        """A worker or the engine core that had gone without an exit code to tell why."""
        self.cut: Traceback | None = None
        """A traceback that breaks off before its exception."""
        self.engine_seen = False
        """The engine core's own lines are in the log, so that an exception of it would be too."""
        self.first_symptom: int | None = None
        self.stalls = Stalls()
        self.last_line = first_line
        self._clues: dict[tuple[str, str], list[ClueSeen]] = {}

    def _failed_before(self, line: int) -> bool:
        failures = [item.first.first_line for item in self.candidates.values() if not item.request]
        failures += [self.first_symptom or line]
        return min(failures) < line

    @property
    def failing(self) -> bool:
        """Whether anything beyond a client's mistake has been seen in it."""
        return bool(self.symptoms or self.killed) or any(not item.request for item in self.candidates.values())

    def see(self, card: str, clue: ClueSeen) -> None:
        """Keep a card's clue: the first and the last few of each."""
        seen = self._clues.setdefault((card, clue.name), [])
        seen.append(clue)
        if len(seen) > _MAX_CLUES:
            del seen[_MAX_CLUES // 2]

    def clues(self, card: str, line: int) -> tuple[ClueSeen, ...]:
        """Return the clues of a card: of each the last one up to a line, or the first behind it."""
        found = [seen for (owner, _), seen in self._clues.items() if owner == card]
        return tuple(next((one for one in reversed(seen) if one.line <= line), seen[0]) for seen in found)

    def settle(self) -> None:
        """Take a process that had gone for killed, if the server was serving and nothing went wrong before.

        After a process's own exception vLLM often finds no exit code either.
        """
        if self.killed is not None or self.gone is None or self.ready is None:
            return
        line = self.gone.origin.first_line
        before = [item for item in self.candidates.values() if not item.request and item.first.first_line < line]
        if self.ready < line and not before:
            self.killed = self.gone

    def starts_anew(self, record: Record) -> bool:
        """Whether a record opens the next life. The lines of one start are several, each of its own kind."""
        line = record.origin.first_line
        kind = start_kind(record)
        pid = record.origin.pid if (record.origin.process or "").startswith("APIServer") else None
        if kind is None:
            return False
        if kind in self.seen or (self.ready or line) < line or self._failed_before(line):
            return True
        return pid is not None and self.api_pid not in (None, pid)

    def note(self, record: Record) -> None:
        """Take what a record says about the life's course."""
        self.engine_seen = self.engine_seen or (record.origin.process or "").startswith(("EngineCore", "Worker"))
        kind = start_kind(record)
        if kind:
            self.seen.add(kind)
            if (record.origin.process or "").startswith("APIServer"):
                self.api_pid = record.origin.pid
        if self.ready is None and _READY.match(record.text):
            self.ready = record.origin.first_line
            self.stalls.started()
        self.stalls.note(record)
        # the API server stops its engine with SIGTERM also when it gives up itself
        by_engine = (record.origin.process or "").startswith(("EngineCore", "Worker", "VllmWorker", "DPCoordinator"))
        if (
            self.stop is None
            and not by_engine
            and record.logger in ("vllm", "uvicorn", "json")
            and _STOP.match(record.text)
        ):
            self.stop = record.origin.first_line


def start_kind(record: Record) -> str | None:
    """Return which of the lines of a start a record is, or None. A usage error is all that its process ever says."""
    if record.logger == "argparse":
        return "usage"
    if record.level not in ("INFO", "") or record.logger.startswith("lmcache"):
        return None
    return next((kind for pattern, kind in _STARTS if pattern.match(record.text)), None)
