"""The exceptions of a log that may be a cause: one candidate for the same exception in all processes and echoes."""

from __future__ import annotations

from collections import Counter

from lmdiag.diagnose.chains import is_weak
from lmdiag.lazy_pattern import lazy
from lmdiag.model import ExceptionInfo, Match, Origin, Record, Symptom, Traceback

_FATAL_HEADER = lazy(
    r"WorkerProc (?:failed to start|hit an exception)|EngineCore (?:failed to start|encountered a fatal error|hit an exception)|"
    r"Exception in worker|Error executing method|Process \S+:|.*[Ff]ailed to start|.*(?:process|worker|engine) died"
)
_REQUEST_HEADER = lazy(
    r"Error in (?:preprocessing prompt inputs|applying chat template|chat completion|completion|\w+ (?:stream|generator))|"
    r"Exception in ASGI application|Error with model|Error in (?:loading|parsing) (?:multi-?modal|image)"
)
_REQUEST_FILES = lazy(
    r"(?:.*/)?(?:serving\w*|\w*_serving|logger|request_logger|preprocess|renderer|chat_utils|protocol|serve|exception\w*|"
    r"validation|httptools_impl|h11_impl|\w*_parser|abstract_\w+|\w*reasoning\w*)\.py$"
)
_REQUEST_CODE = lazy(r"(?:starlette/|fastapi/|uvicorn/protocols/|vllm/entrypoints/.*(?:serving|render))")
# Raised in a client's own process, or for a client that went away.
_CLIENT_TYPES = frozenset(
    {
        "BadRequestError",
        "APIStatusError",
        "APIConnectionError",
        "ClientDisconnect",
        "RequestValidationError",
        "HTTPException",
    }
)
_ENGINE_FRAME = lazy(
    r"run_mp_engine|run_engine_core|worker_main|_bootstrap|build_async_engine_client|run_server|<module>"
)
_NUMBER = lazy(r"\d+(?:\.\d+)?")
_HEX = lazy(r"\b(?=[0-9a-f-]*\d)[0-9a-f]{8}(?:[0-9a-f-]{4,})?\b|0x[0-9a-f]+")
_MAX_EVIDENCE = 6
_MAX_REPORTS = 4096
"""Different processes that are told apart for one candidate."""


class Candidate:
    """A possible root, with everything that reported it."""

    def __init__(self, info: ExceptionInfo, origin: Origin, match: Match | None) -> None:
        self.info = info
        self.match = match
        self.first = self.last = origin
        self.first_time: str | None = None
        self.last_time: str | None = None
        self.truncated = False
        """Its message may be cut off."""
        self.header = ""
        self.logger = ""
        self.evidence: tuple[str, ...] = ()
        self.symptoms: list[Symptom] = []
        self.processes: dict[str, None] = {}
        """Names, in the order of their first report."""
        self.reports: Counter[tuple[str | None, int | None, bool]] = Counter()
        """By process, pid, and whether a log record (not a raw echo on stderr) reported it."""
        self.fatal = False
        self.request = True
        self.degraded = False
        self.type_known = info.type is not None

    @property
    def weak(self) -> bool:
        """Whether it usually follows from the death of another process."""
        return is_weak(self.info)

    @property
    def count(self) -> int:
        """How often it happened: requests each count; a process that reports its own death twice died once."""
        if self.request:
            return self.reports.total()
        logged = {report for report in self.reports if report[2]}
        return max(1, len(logged or {report for report in self.reports if report[0]}))

    def add(self, event: Traceback | Record, info: ExceptionInfo) -> None:
        """Count one more report of the same exception."""
        origin = event.origin
        if origin.first_line < self.first.first_line:
            self.first, self.first_time = origin, event.time or self.first_time
        if origin.first_line >= self.last.first_line:
            self.last, self.last_time = origin, event.time or self.last_time
        self.first_time = self.first_time or event.time
        if len(info.frames) > len(self.info.frames) or (not self.type_known and info.type):
            self.info = info._replace(type=info.type or self.info.type)
            self.type_known = self.type_known or info.type is not None
        if len(self.reports) < _MAX_REPORTS:
            self.reports[origin.process, origin.pid, bool(event.level)] += 1
        if origin.process and len(self.processes) < _MAX_REPORTS:
            self.processes[origin.process] = None
        if not self.evidence:
            self.evidence = evidence(event)
        self.logger = self.logger or event.logger


def evidence(event: Traceback | Record) -> tuple[str, ...]:
    """The last frames and the exception's own line, or a record's first lines: a handful.

    The further lines of a message are left to the message, where they are redacted as a whole.
    """
    if isinstance(event, Record):
        return tuple(line for line in event.text.split("\n")[:_MAX_EVIDENCE] if line.strip())
    lines = [line for line in event.lines if line.strip(" ^~") and line.strip() != "Traceback (most recent call last):"]
    name = event.exceptions[-1].type if event.exceptions else None
    last = max((number for number, line in enumerate(lines) if name and name in line), default=len(lines) - 1)
    kept = lines[max(0, last + 1 - _MAX_EVIDENCE) : last + 1]
    start = next((number for number, line in enumerate(kept) if line.lstrip().startswith("File ")), 0)
    return tuple(kept[start:])


def candidate_key(info: ExceptionInfo, match: Match | None) -> tuple[str, str]:
    """Two reports of the same failure have the same key, though each worker names its own device and sizes."""
    if match is not None:
        return "card", match.card
    first = info.message[:400].split("\n", 1)[0]
    return "text", _NUMBER.sub("#", _HEX.sub("#", first)) or info.name


def from_request_file(event: Traceback | Record) -> bool:
    """Whether a record was written by vLLM's code that handles one client's request."""
    return event.logger == "vllm" and event.level != "" and _REQUEST_FILES.match(event.file) is not None


def is_fatal(traceback: Traceback) -> bool:
    """Whether the traceback was written because a process was ending: by vLLM's top-level handlers or by Python itself."""
    if is_request(traceback):
        return False
    if _FATAL_HEADER.match(traceback.header):
        return True
    frames = traceback.exceptions[-1].frames if traceback.exceptions else ()
    if traceback.logger == "bare":
        return not traceback.header.startswith(("Handler for", "Failed to load model", "Exception in thread"))
    return traceback.level in ("ERROR", "CRITICAL") and any(_ENGINE_FRAME.match(frame.function) for frame in frames[:3])


def is_request(traceback: Traceback) -> bool:
    """Whether the traceback belongs to one client's request, which failed alone."""
    if from_request_file(traceback) or _REQUEST_HEADER.match(traceback.header):
        return True  # whatever a client's text makes of the header
    if _FATAL_HEADER.match(traceback.header):
        return False
    if traceback.exceptions and traceback.exceptions[-1].name in _CLIENT_TYPES:
        return True
    frames = traceback.exceptions[0].frames if traceback.exceptions else ()
    return any(_REQUEST_CODE.search(frame.file) for frame in frames[:3])
