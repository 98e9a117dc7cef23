"""Cause or symptom: the exceptions that only report another one, and which one of a chain is the root.

The messages are those of vLLM's and LMCache's sources, and of the Python libraries that die with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.model import ExceptionInfo, Match, Traceback

# Messages of exceptions that say "something else failed": never a root. A group captures the root's message, if quoted.
_SYMPTOM_MESSAGES = tuple(
    lazy(pattern, re.DOTALL)
    for pattern in (
        r"Engine core initialization failed\. See root cause above\..*?(?P<message>Failed core proc\(s\): \{[^}]*: -\d+\})",
        r"Engine core initialization failed\. See root cause above",
        r"Frontend process failed during engine core initialization",
        r"WorkerProc initialization failed due to an exception in a background process",
        r"Engine process failed to start",
        r"EngineCore encountered an issue\. See stack trace",
        r"Task finished unexpectedly\. This should never happen",
        r"Background loop (?:has errored already|is stopped|is not running)",
        r"Got fatal signal from worker processes",
        r"Worker failed with error ['\"](?P<message>.*)['\"], please check the stack trace above for the root cause",
        r"Engine loop is not running\. Inspect the stacktrace to find the original error: (?P<repr>\w+\(.*\))\.?$",
        r"Engine loop has died",
        r"Call to \w+ method failed: (?P<message>.*)",
        r"Error in model execution(?: \(input dumped to [^)]*\))?: (?P<message>.*)",
        r"Worker proc \S+ died unexpectedly(?: \(exit code: (?:\d+|None)\))?,",
        r"Engine core proc \S+ died unexpectedly",
        r"MQLLMEngine is already dead|Engine process \(pid \d+\) died",
        r"cancelled$",
        r"'\w*Executor' object has no attribute '(?:workers|io_thread_pool|shutdown_event)'",
        r"Executor failed\.",
        r"(?P<message>Process \S+ \(PID: \d+\) died with exit code (?:None|-\d+))",
        r"One or more API server processes|Process \S+ \(PID: \d+\) died with exit code",
    )
)
_SYMPTOM_TYPES = frozenset({"EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError"})
STOP_TYPES = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"})
# These follow when a neighbour process has gone, and are a root only where nothing else is in the log.
_WEAK_TYPES = frozenset(
    {"BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError", "EOFError", "DistNetworkError", "ZMQError"}
)
_WEAK_MESSAGES = lazy(
    r"NCCL communicator was aborted|Connection reset by peer|remote process exited|Connection closed by"
)
# Raised by a look-up or a request that somebody above turns into the message that explains it.
_LOOKUP_TYPES = frozenset(
    {
        "KeyError", "IndexError", "AttributeError", "FileNotFoundError", "OSError", "EOFError", "StopIteration", "HTTPError",
        "JSONDecodeError", "UnicodeDecodeError", "HfHubHTTPError", "RepositoryNotFoundError", "GatedRepoError",
        "EntryNotFoundError", "RemoteEntryNotFoundError", "LocalEntryNotFoundError", "HTTPStatusError", "ConnectionError",
        "ConnectError", "MaxRetryError", "NameResolutionError", "gaierror", "TypeError", "OfflineModeIsEnabled",
        "HFValidationError", "SafetensorError",
    }
)  # fmt: skip
_CLEANUP_FUNCTIONS = frozenset(
    {"__del__", "__exit__", "__aexit__", "shutdown", "close", "cleanup", "terminate", "stop", "_shutdown"}
)
_NOISE_HEADERS = ("Exception ignored in", "future: <", "task: <", "Task exception was never retrieved")
_REPR = lazy(r"(\w+)\((['\"])(.*)\2,?\)$", re.DOTALL)

Matches = Callable[[ExceptionInfo], Match | None]


class Quoted(NamedTuple):
    """A root that a symptom quotes."""

    type: str | None
    message: str


def symptom(type_name: str, message: str) -> tuple[bool, Quoted | None]:
    """Say whether an exception only reports another one, and which, where it quotes it."""
    for pattern in _SYMPTOM_MESSAGES:
        if hit := pattern.match(message):
            groups = hit.groupdict()
            if groups.get("repr"):
                return True, _from_repr(groups["repr"])
            quoted = groups.get("message")
            # vLLM re-raises a failed forward pass with the same type
            kept = type_name if message.startswith("Error in model execution") else None
            return True, Quoted(kept, quoted.strip()) if quoted and quoted.strip() else None
    return type_name in _SYMPTOM_TYPES, None


def is_symptom_type(info: ExceptionInfo) -> bool:
    """Whether the class alone tells that an exception only reports another one."""
    return info.name in _SYMPTOM_TYPES


def _from_repr(text: str) -> Quoted:
    hit = _REPR.match(text)
    if hit is None:
        return Quoted(text.partition("(")[0], text.partition("(")[2].rstrip(")"))
    return Quoted(hit.group(1), hit.group(3).replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"'))


def is_weak(info: ExceptionInfo) -> bool:
    """Whether an exception usually follows from the death of another process."""
    return info.name in _WEAK_TYPES or _WEAK_MESSAGES.search(info.message) is not None


def is_noise(traceback: Traceback) -> bool:
    """Whether a traceback is Python's or a library's complaint while everything is being torn down anyway."""
    return traceback.header.startswith(_NOISE_HEADERS)


def root_index(exceptions: tuple[ExceptionInfo, ...]) -> int:
    """Return which exception of a chain is the root.

    A chain's last exception gives way to the one before it where that was its direct cause, where it is an accident of
    the clean-up that ran while the other was handled, or where it is a known symptom. A look-up that failed (a key, a
    file, a request to the hub) is no root: the exception above it is raised to explain it. Cards have no say in it: what
    the root is must not change with the pack.
    """
    index = len(exceptions) - 1
    while index > 0 and _gives_way(exceptions[index], exceptions[index - 1]):
        index -= 1
    return index


def of_the_chain(exceptions: tuple[ExceptionInfo, ...], match: Matches) -> Match | None:
    """Return the card of the last exception of a chain that has one and is no symptom: it advises on a root without."""
    found = (match(item) for item in reversed(exceptions) if not symptom(item.name, item.message)[0])
    return next(filter(None, found), None)


def _gives_way(last: ExceptionInfo, before: ExceptionInfo) -> bool:
    if symptom(last.name, last.message)[0] or last.name in STOP_TYPES:
        return True
    if symptom(before.name, before.message)[0]:
        return False
    if last.relation == "group":
        return before.relation == "group"
    if before.message and len(before.message) > 12 and before.message in last.message and before.name == last.name:
        return True
    if last.relation == "cause":
        return before.name not in _LOOKUP_TYPES
    cleaning = bool(last.frames) and last.frames[-1].function in _CLEANUP_FUNCTIONS
    return cleaning and before.name not in _LOOKUP_TYPES
