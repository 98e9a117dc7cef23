"""Puts the lines of many interleaved processes together again: lines in, records and tracebacks out.

Lines are grouped by container stream and the whole chain of process prefixes, never by file alone. Within a group,
lines with a record prefix and raw lines (stderr) are read apart, since the two arrive through different buffers and one
may stand in the middle of the other.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import Any

from lmdiag.model import Line, Origin, Record, Traceback
from lmdiag.parse.chatter import CHATTER, CHATTER_LINE, Runs
from lmdiag.parse.lmcache import LMCacheRecords
from lmdiag.parse.logical import Logical, LogicalLines
from lmdiag.parse.messages import continues_message, is_junk
from lmdiag.parse.prefixes import Prefixed, RecordKey
from lmdiag.parse.progress import Progress
from lmdiag.parse.tracebacks import CERTAIN, TracebackReader, opens

Event = Record | Traceback

# What a record below ERROR must say to be worth a diagnosis's attention (lmdiag.diagnose reads these).
NOTABLE = re.compile(
    r"version v?\d|args: |Initializing a|tartup complete|hut(?:ting)? ?down|platform |Resolved architecture|"
    r"model   \S|Starting vLLM|hybrid kv cache|SIGINT|SIGTERM|Available KV cache|(?:died|exited) unexpectedly|degraded mode|"
    r"fatal signal|Failed core proc|See stack trace|See root cause"
)
CRASH = re.compile(
    r"!+ Segfault encountered|Segmentation fault|Fatal Python error: |terminate called after throwing|\*\*\* SIG[A-Z]+ received|"
    r"(?:Memory cgroup o|O)ut of memory: Killed process|\S+\.service: (?:Main process exited, code=(?:killed|dumped)|"
    r"A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill')|"
    r"\S+: line \d+: +\d+ Killed|\S+: error while loading shared libraries: |"
    r"Bus error|Illegal instruction|Killed$|Aborted(?: \(core dumped\))?$"
)
"""What the C library, the shell and Python say of a process that a signal ended."""
_RAW_NOTABLE = re.compile(
    rf"Process \S+:$|Exception ignored in|{CRASH.pattern}|\$ (?:\S+ )*vllm serve |"
    r"Runner failed with exception|.{0,80}LMCache v\d"
)
_USAGE = re.compile(r"(?:[\w./-]+ )*[\w./-]+: error: ")
_HEADER_LINE = re.compile(r"[\w ]*(?:failed to start|hit an exception|encountered a fatal error)\b")
_NO_SERVICE = re.compile(r"(?:rank|default)?\d+|\S+\[\d+\]|kernel|systemd")
_QUIET = frozenset({"INFO", "DEBUG"})
_LOUD = frozenset({"ERROR", "CRITICAL"})
_MAX_TEXT_LINES = 60
_MAX_TEXT_WIDTH = 1 << 16
_NOTABLE_WIDTH = 400
"""Characters of a quiet record that are looked at: what is notable stands at its beginning."""
_EVIDENCE_LINES = 12
HEAD_LENGTH = 12
"""Characters by which a quiet record is recognised as one that a card asks for."""


class _Group:
    """The open state of one group of lines: the records, or the raw lines, of one chain of prefixes."""

    __slots__ = (
        "chain",
        "first",
        "key",
        "last",
        "lines",
        "pid",
        "process",
        "reader",
        "reader_first",
        "service",
        "truncated",
    )

    def __init__(self, chain: str, service: str) -> None:
        self.chain = chain
        self.service = service
        self.key: RecordKey | None = None
        self.lines: list[str] = []
        self.first = self.last = 0
        self.process: str | None = None
        self.pid: int | None = None
        self.reader: TracebackReader | None = None
        self.reader_first = 0
        self.truncated = False

    def start(self, prefixed: Prefixed, number: int) -> None:
        self.key, self.process, self.pid = prefixed.record, prefixed.process, prefixed.pid
        self.lines, self.first, self.truncated = [], number, False


class Assembler:
    """Reassembles one source. `feed` it the lines in their order, `close` it at the end.

    Bounded: at most `max_groups` groups are open (the one that was silent longest is finished first), and a record
    keeps at most its first 60 lines outside of tracebacks. `heads`: the first 12 characters of records that are wanted
    whatever their level.
    """

    def __init__(self, source: str, *, max_groups: int = 256, heads: Container[str] = ()) -> None:
        self._source = source
        self._heads = heads
        self._max_groups = max_groups
        self._lines = LogicalLines(source)
        self._lmcache = LMCacheRecords()
        self._groups: OrderedDict[tuple[str, bool], _Group] = OrderedDict()
        self._last_said: dict[str, str] = {}
        self._progress = Progress()
        self._stopped = self._progress.stopped
        self._runs = Runs()
        self.accepted = 0
        """Lines that were more than chatter: when it has not grown, the end would show what it showed before."""
        self.records = 0
        self.tracebacks = 0

    def attach(self, heads: Container[str]) -> None:
        """Look for these heads from now on."""
        self._heads = heads

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle keeps: the heads belong to the cards, and `attach` gives them back."""
        return {name: value for name, value in vars(self).items() if name != "_heads"}

    def skips(self, line: Line) -> bool:
        """Say whether a line is chatter of a serving server that cannot change anything; it need then not be fed.

        Nine of ten lines of a healthy log are such. The answer is exact: feeding the line would do nothing.
        """
        text = line.text
        hit = CHATTER_LINE.match(text)
        if hit is None or "\r" in text:
            return False
        chain, end = hit.group(1) or "", hit.end()
        if text.find(".py:", end) >= 0 or text.find("pid=", end) >= 0:
            return False
        if self._stopped and "INFO: " not in text[:end]:
            return False
        group = self._groups.get((chain, True))
        if group is not None and (group.reader is not None or group.lines):
            return False
        return self._lmcache.ignores(chain) and self._lines.ignores(text)

    def run_end(self, data: bytes, start: int) -> tuple[int, int]:
        """Return the end of a run of whole lines from `start` that `skips` would all skip, and how many they are."""
        if self._stopped or not self._lines.is_idle:
            return start, 0
        chains = {chain for chain in self._lmcache.ignored() if chain[:1] in ("", "(") and len(chain) < 200}
        for (chain, of_records), group in self._groups.items():
            if of_records and (group.reader is not None or group.lines):
                chains.discard(chain)
        return self._runs.end(data, start, frozenset(chains), self._lines.width)

    def feed(self, line: Line) -> Iterator[Event]:
        """Take one line; yield what it finished."""
        for logical in self._lines.feed(line):
            for whole in self._lmcache.feed(logical):
                yield from self._assign(whole)

    def close(self) -> Iterator[Event]:
        """Finish everything that is open, in the order of the log."""
        for logical in self._lines.close():
            for whole in self._lmcache.feed(logical):
                yield from self._assign(whole)
        for whole in self._lmcache.close():
            yield from self._assign(whole)
        events = [event for group in self._groups.values() for event in self._finish(group)]
        self._groups.clear()
        yield from sorted(events, key=lambda event: event.origin.first_line)

    # -- groups ----------------------------------------------------------------------------------------------------

    def _assign(self, logical: Logical) -> Iterator[Event]:
        stream, prefixed, line, ends_record = logical
        chain, key = stream + prefixed.chain, prefixed.record
        if key is not None and key.level in _QUIET:
            sign = self._progress.wants(stream, key.file, prefixed.text, prefixed.process)
            if self._in_traceback(chain) if sign else not self._is_notable(prefixed.text):
                yield from self._quiet(chain, key)
                return
        where = (chain, key is not None)
        group = self._groups.get(where)
        if key is None and is_junk(prefixed.text):
            return
        if group is None:
            if key is None and not prefixed.text:
                return
            yield from self._evict()
            group = self._groups[where] = _Group(chain, _service(stream))
        else:
            self._groups.move_to_end(where)
        self.accepted += 1
        yield from self._feed(group, prefixed, line)
        if ends_record:
            yield from self._finish(group)
            group.key = None

    def _is_notable(self, text: str) -> bool:
        """Say whether a quiet record may matter. What a serving server says all the time is ruled out first."""
        if text[:1].isdigit() or text.startswith(CHATTER):
            return False
        return text[:HEAD_LENGTH] in self._heads or NOTABLE.search(text, 0, _NOTABLE_WIDTH) is not None

    def _in_traceback(self, chain: str) -> bool:
        """Say whether a traceback is open that a sign of progress would cut off."""
        group = self._groups.get((chain, True))
        return group is not None and group.reader is not None and not group.reader.has_exception

    def _quiet(self, chain: str, key: RecordKey) -> Iterator[Event]:
        """A record that cannot matter in itself still ends the one before it."""
        group = self._groups.get((chain, True))
        if group is not None and group.key != key and (group.reader is None or group.reader.has_exception):
            yield from self._finish(group)

    def _evict(self) -> Iterator[Event]:
        while len(self._groups) >= self._max_groups:
            yield from self._finish(self._groups.popitem(last=False)[1])

    def _feed(self, group: _Group, prefixed: Prefixed, line: Line) -> Iterator[Event]:
        key, text = prefixed.record, prefixed.text
        if group.reader is not None:
            same = group.key is None or (key is not None and _same_record(group.key, key))
            if same and not (key and _HEADER_LINE.match(text)) and group.reader.feed(text):
                group.last = line.number
                group.truncated = group.truncated or line.truncated
                return
            yield from self._finish_traceback(group)
            group.key = key if same else group.key
        if self._continues(group, key, text):
            group.lines.extend([text[:_MAX_TEXT_WIDTH]] if len(group.lines) < _MAX_TEXT_LINES else [])
            group.last = line.number
            return
        if key is None or key != group.key or not group.first or key.logger == "uvicorn":
            yield from self._finish_record(group)
            group.start(prefixed, line.number)
        self._outside(group, text, line)

    def _continues(self, group: _Group, key: RecordKey | None, text: str) -> bool:
        """Pydantic's lines behind `vllm serve: error: argument --x: 1 validation error for …` belong to that error."""
        if key is not None or not group.lines or not _USAGE.match(group.lines[0]):
            return False
        message = [_USAGE.sub("", group.lines[0]).partition(": ")[2], *group.lines[1:]]
        return continues_message(message, 0, text, in_record=False)

    def _outside(self, group: _Group, text: str, line: Line) -> None:
        """A line outside of any traceback: it opens one, or it is the text of a record."""
        key = group.key
        group.last = line.number
        group.truncated = group.truncated or line.truncated
        quiet = key is not None and key.level in _QUIET and key.logger == "vllm"
        loud = key is None or key.level in _LOUD
        if not quiet and (opens(text) or (loud and CERTAIN.match(text))):
            group.reader = TracebackReader(
                text, in_record=key is not None, tail=". " if key and key.logger == "lmcache" else ""
            )
            group.reader_first = line.number
            said = self._last_said.pop(group.chain, "")
            if not group.reader.header:
                group.reader.header = group.lines[-1] if group.lines else said
            group.lines = []
            return
        if len(group.lines) < _MAX_TEXT_LINES:
            group.lines.append(text[:_MAX_TEXT_WIDTH])
        if loud and text:
            if len(self._last_said) >= 4 * self._max_groups:
                self._last_said.clear()
            self._last_said[group.chain] = text[:400]

    # -- finishing -------------------------------------------------------------------------------------------------

    def _finish(self, group: _Group) -> Iterator[Event]:
        yield from self._finish_traceback(group)
        yield from self._finish_record(group)

    def _origin(self, group: _Group, first: int) -> Origin:
        return Origin(self._source, first, max(first, group.last), group.process, group.pid, group.service)

    def _finish_traceback(self, group: _Group) -> Iterator[Event]:
        reader, group.reader = group.reader, None
        if reader is None:
            return
        frames, exceptions = reader.open_frames(), reader.exceptions()
        group.first = group.last
        if not exceptions and not frames:
            return
        self.tracebacks += 1
        key = group.key or RecordKey("bare", "", None, "", 0)
        truncated = reader.head_missing or not exceptions or group.truncated
        evidence = tuple(reader.lines[-_EVIDENCE_LINES:])
        origin = self._origin(group, group.reader_first)
        yield Traceback(
            origin, exceptions, reader.header, key.level, key.file, key.time, key.logger, truncated, evidence
        )

    def _finish_record(self, group: _Group) -> Iterator[Event]:
        lines, group.lines = group.lines, []
        text = "\n".join(lines).strip()
        if not text:
            return
        origin, key = self._origin(group, group.first), group.key
        if key is not None:
            self.records += 1
            yield Record(origin, key.level, key.file, text, key.time, key.logger, group.truncated)
        elif _USAGE.match(text):
            yield Record(origin, "ERROR", "", text, None, "argparse", group.truncated)
        elif _RAW_NOTABLE.match(text) or NOTABLE.search(text, 0, 400):
            yield Record(origin, "", "", text, None, "bare", group.truncated)


def _same_record(mine: RecordKey, other: RecordKey) -> bool:
    """A second may tick within a record that is written line by line; another place in the code is another record."""
    return mine[:2] == other[:2] and mine[3:] == other[3:]


def _service(stream: str) -> str:
    """Name the container or pod. Ranks and tasks are processes of one server, and a journal tells of one unit and its host."""
    return " ".join(name for name in stream.split() if not _NO_SERVICE.fullmatch(name))
