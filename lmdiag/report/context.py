"""What stands around an incident's cause: what followed, what failed before, the log's own lines, where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.report.control import clip, shorten, visible
from lmdiag.report.layout import Block, Span, lines_of
from lmdiag.report.sections import bullet, counted, heading, paragraphs, section

if TYPE_CHECKING:
    from lmdiag.model import Incident

_LINE_LIMIT = 160
_LIST_LIMITS = (6, 100)
_EVIDENCE_LIMITS = (8, 100)
_RAY_LOGS = "/tmp/ray/session_latest/logs"  # noqa: S108 (Ray's documented place; it is named, not used)


def message_of(kind: str | None, message: str) -> str:
    """Join `Type: message`, as Python prints it."""
    return f"{kind}: {message}" if kind and message else kind or message


def first_line(text: str) -> str:
    """Take the first line that is not blank, made visible."""
    return visible(text[:4000]).strip().partition("\n")[0]


def place_of(incident: Incident) -> str:
    """Write `server.log:210-262`, or `server.log:210` for a single line."""
    last = f"-{incident.last_line}" if incident.last_line > incident.first_line else ""
    return f"{incident.source}:{incident.first_line}{last}"


def cause_elsewhere(incident: Incident) -> list[Block]:
    """Say where to look when the log holds only the consequences."""
    before = f"{incident.source}:{incident.first_line}"
    return [
        heading("The cause is not in this log"),
        *paragraphs(
            "The log holds only the consequences. Look for the first `Traceback (most recent call last)` or `ERROR` "
            "line of a worker or of the engine core, or for a process that ended by a signal, and scan the log that "
            "has it:"
        ),
        bullet(
            Span("the lines before "), Span(before, "raw"), Span(": an older, rotated file, or what a tool cut off")
        ),
        bullet(Span("the worker's or the engine core's own log; stderr may go elsewhere than stdout")),
        _command("systemd", "journalctl -b -u UNIT"),
        _command("killed for memory", "journalctl -k -g 'Out of memory|oom-kill'"),
        _command("Kubernetes", "kubectl logs --previous POD"),
        bullet(Span("Ray: the worker logs of each node under "), Span(_RAY_LOGS, "raw")),
    ]


def clues(incident: Incident) -> list[Block]:
    """Quote the lines that told which of several causes it was."""
    said = [(clue.line, clip(first_line(clue.text), _LINE_LIMIT)) for clue in incident.clues]
    return [bullet(Span(f"{incident.source}:{line}", "raw"), Span(": "), Span(text, "log")) for line, text in said]


def symptoms(incident: Incident, *, verbose: bool) -> list[Block]:
    """List the exceptions that followed, each once, with the processes that raised it."""
    followed: dict[str, list[str]] = {}
    for symptom in incident.symptoms:
        processes = followed.setdefault(first_line(message_of(symptom.type, symptom.message)), [])
        if symptom.process and symptom.process not in processes:
            processes.append(symptom.process)
    lines = [_quoted(message, ", ".join(processes[:4])) for message, processes in followed.items()]
    return section("Followed by", _limited(lines, _LIST_LIMITS[verbose]))


def earlier(incident: Incident, *, verbose: bool) -> list[Block]:
    """List the failed starts before this one."""
    lines = []
    for one in incident.earlier:
        card = f"card {one.card}" if one.card else "no card"
        lines.append(_quoted(first_line(message_of(one.type, one.message)), f"{one.source}:{one.line}, {card}"))
    return section("Failed starts before this one", _limited(lines, _LIST_LIMITS[verbose]))


def evidence(incident: Incident, *, verbose: bool) -> list[Block]:
    """Quote the last lines: the exception itself stands at the end of its traceback."""
    limit = _EVIDENCE_LIMITS[verbose]
    lines = [span for text in incident.evidence[-limit:] for span in lines_of(shorten(text, 300), "dim")]
    left_out = len(incident.evidence) - limit
    if left_out > 0:
        lines.insert(0, Span(f"… {counted(left_out, 'line')} left out", "dim"))
    return section("From the log", [Block("log", tuple(lines))] if lines else [])


def _command(where: str, command: str) -> Block:
    return bullet(Span(f"{where}: "), Span(command, "code"))


def _quoted(message: str, remark: str) -> Block:
    return bullet(Span(clip(message, _LINE_LIMIT), "log"), Span(f" ({remark})" if remark else "", "dim"))


def _limited(blocks: list[Block], limit: int) -> list[Block]:
    more = len(blocks) - limit
    return blocks if more <= 0 else [*blocks[:limit], bullet(Span(f"and {more:,} more", "dim"))]
