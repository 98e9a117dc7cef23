"""
Puts the lines of many interleaved processes together again: lines in, records and tracebacks out.

Lines are grouped by container stream and the whole chain of process prefixes, never by file alone. Within a group,
lines with a record prefix and raw lines (stderr) are read apart, since the two arrive through different buffers and one
may stand in the middle of the other.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator

from lmdiag.model import Line, Origin, Record, Traceback
from lmdiag.parse.clean import clean
from lmdiag.parse.containers import Unwrapper
from lmdiag.parse.jsonlines import JsonLine, read_json
from lmdiag.parse.messages import continues_message, is_junk
from lmdiag.parse.prefixes import Prefixed, RecordKey, lmcache_end, read_prefix, unglue
from lmdiag.parse.tracebacks import CERTAIN, TracebackReader, opens
from lmdiag.parse.wrapping import Rejoiner

Event = Record | Traceback

# What a record below ERROR must say to be worth a diagnosis's attention (lmdiag.diagnose reads these).
NOTABLE = re.compile(
    r"version v?\d|args: |Initializing a|tartup complete|hut(?:ting)? ?down|platform |Resolved architecture|"
    r"model   \S|Starting vLLM|hybrid kv cache|SIGINT|SIGTERM|Available KV cache|died unexpectedly|degraded mode|"
    r"fatal signal|Failed core proc|See stack trace|See root cause"
)
_RAW_NOTABLE = re.compile(
    r"Process \S+:$|Exception ignored in|Killed$|Segmentation fault|Fatal Python error|\$ (?:\S+ )*vllm serve |"
    r"Runner failed with exception|.{0,80}LMCache v\d"
)
_USAGE = re.compile(r"(?:[\w./-]+ )*[\w./-]+: error: ")
_HEADER_LINE = re.compile(r"[\w ]*(?:failed to start|hit an exception|encountered a fatal error)\b")
_RANK = re.compile(r"(?:rank|default)?\d+")
_QUIET = frozenset({"INFO", "DEBUG"})
_LOUD = frozenset({"ERROR", "CRITICAL"})
_MAX_TEXT_LINES = 60
_MAX_LMCACHE_LINES = 400
_MAX_HELD_LINES = 64
_MAX_NESTING = 3
_EVIDENCE_LINES = 12


class _Group:
    """The open state of one group of lines: the records, or the raw lines, of one chain of prefixes."""

    __slots__ = ("chain", "first", "key", "last", "lines", "pid", "process", "reader", "reader_first", "service", "truncated")

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
    """
    Reassembles one source. `feed` it the lines in their order, `close` it at the end.

    Bounded: at most `max_groups` groups are open (the one that was silent longest is finished first), and a record
    keeps at most its first 60 lines outside of tracebacks.
    """

    def __init__(self, source: str, *, max_groups: int = 256) -> None:
        self._source = source
        self._max_groups = max_groups
        self._unwrapper = Unwrapper()
        self._rejoiner = Rejoiner()
        self._groups: OrderedDict[tuple[str, bool], _Group] = OrderedDict()
        self._partial: dict[str, str] = {}
        self._lmcache: dict[str, tuple[RecordKey, int]] = {}
        self._held: list[tuple[str, Prefixed, Line]] | None = None
        self._last_said: dict[str, str] = {}
        self._last_line = Line(source, 1, 0, "")
        self.records = 0
        self.tracebacks = 0

    def feed(self, line: Line) -> Iterator[Event]:
        """Take one line; yield what it finished."""
        for piece in clean(line.text):
            for text, where in self._rejoiner.feed(piece, line):
                yield from self._physical(text, where)
        self._last_line = line

    def close(self) -> Iterator[Event]:
        """Finish everything that is open, in the order of the log."""
        for text, where in self._rejoiner.close():
            yield from self._physical(text, where)
        for stream in list(self._partial):
            yield from self._join(stream, "", self._last_line, partial=False, depth=0)
        held, self._held = self._held or [], None
        for entry in held:
            yield from self._assign(*entry)
        events = [event for group in self._groups.values() for event in self._finish(group)]
        self._groups.clear()
        yield from sorted(events, key=lambda event: event.origin.first_line)

    # -- one physical line -----------------------------------------------------------------------------------------

    def _physical(self, text: str, line: Line, outer: str = "", depth: int = 0) -> Iterator[Event]:
        """Take containers off; what one of them cut or enclosed may itself hold another."""
        stream, text, partial = self._unwrapper.unwrap(text)
        stream = outer + stream
        if partial is None and text[:1] == "{" and (found := read_json(text)):
            yield from self._json(stream, found, line, depth)
        elif partial is not None:
            yield from self._join(stream, text, line, partial=partial, depth=depth)
        else:
            yield from self._logical(stream, text, line)

    def _json(self, stream: str, found: JsonLine, line: Line, depth: int) -> Iterator[Event]:
        stream += found.stream
        if found.record is None:
            pieces = [piece for part in found.text.split("\n") for piece in clean(part)]
            for number, piece in enumerate(pieces, 1):
                yield from self._join(stream, piece, line, partial=found.partial and number == len(pieces), depth=depth)
            return
        for text in found.record.text.split("\n"):
            yield from self._assign(stream, found.record._replace(text=text), line)
        yield from self._end_record(stream + found.record.chain)

    def _join(self, stream: str, text: str, line: Line, *, partial: bool, depth: int) -> Iterator[Event]:
        """Join what a container cut (CRI `P` lines, docker's 16 KiB pieces) before looking into it."""
        text = self._partial.pop(stream, "") + text
        if partial and len(text) < line_limit(line):
            if len(self._partial) >= self._max_groups:
                self._partial.pop(next(iter(self._partial)))
            self._partial[stream] = text
        elif depth < _MAX_NESTING:
            yield from self._physical(text, line, stream, depth + 1)
        else:
            yield from self._logical(stream, text, line)

    def _logical(self, stream: str, text: str, line: Line) -> Iterator[Event]:
        for piece in unglue(text.rstrip()):
            yield from self._release(stream, read_prefix(piece), line)

    def _release(self, stream: str, prefixed: Prefixed, line: Line) -> Iterator[Event]:
        """
        Hold back what follows an LMCache line that has no end mark yet, until its end mark shows that it was one record.

        LMCache prints tokens' text as it is: what looks like a record of another process there is a client's text.
        """
        key = prefixed.record
        starts = key is not None and key.logger == "lmcache"
        if self._held is not None:
            if not starts and lmcache_end(prefixed.text) is not None:
                self._held = None
                return
            if not starts and len(self._held) < _MAX_HELD_LINES:
                self._held.append((stream, prefixed, line))
                return
            held, self._held = self._held, None
            for entry in held:
                yield from self._assign(*entry)
        if starts and key and key.level not in _LOUD and lmcache_end(prefixed.text) is None:
            self._held = []
        yield from self._assign(stream, prefixed, line)

    # -- groups ----------------------------------------------------------------------------------------------------

    def _assign(self, stream: str, prefixed: Prefixed, line: Line) -> Iterator[Event]:
        chain, key = stream + prefixed.chain, prefixed.record
        if key is not None and key.level in _QUIET and key.logger != "lmcache" and not NOTABLE.search(prefixed.text, 0, 400):
            yield from self._quiet(chain, key)
            return
        prefixed = self._lmcache_record(chain, prefixed)
        key = prefixed.record
        where = (chain, key is not None)
        group = self._groups.get(where)
        if group is None:
            if key is None and (not prefixed.text or is_junk(prefixed.text)):
                return
            yield from self._evict()
            group = self._groups[where] = _Group(chain, _service(stream))
        else:
            self._groups.move_to_end(where)
        if not (key is None and is_junk(prefixed.text)):
            yield from self._feed(group, prefixed, line)

    def _quiet(self, chain: str, key: RecordKey) -> Iterator[Event]:
        """A record that cannot matter in itself still ends the one before it."""
        self._lmcache.pop(chain, None)
        group = self._groups.get((chain, True))
        if group is not None and group.key != key and (group.reader is None or group.reader.has_exception):
            yield from self._finish(group)

    def _end_record(self, chain: str) -> Iterator[Event]:
        if group := self._groups.get((chain, True)):
            yield from self._finish(group)
            group.key = None

    def _evict(self) -> Iterator[Event]:
        while len(self._groups) >= self._max_groups:
            yield from self._finish(self._groups.popitem(last=False)[1])

    def _lmcache_record(self, chain: str, prefixed: Prefixed) -> Prefixed:
        """LMCache marks the end of a record, not its lines: raw lines up to the mark belong to the open record."""
        opened, key = self._lmcache.pop(chain, None), prefixed.record
        if key is None and opened is not None:
            key, left = opened
        elif key is not None and key.logger == "lmcache":
            left = _MAX_LMCACHE_LINES
        else:
            return prefixed
        end = lmcache_end(prefixed.text)
        if end is None and left:
            self._lmcache[chain] = (key, left - 1)
        return prefixed._replace(record=key, text=prefixed.text[:end])

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
            group.lines.extend([text] if len(group.lines) < _MAX_TEXT_LINES else [])
            group.last = line.number
            return
        if key is None or key != group.key or not group.first:
            yield from self._finish_record(group)
            group.start(prefixed, line.number)
        self._outside(group, text, line)

    def _continues(self, group: _Group, key: RecordKey | None, text: str) -> bool:
        """pydantic's lines behind `vllm serve: error: argument --x: 1 validation error for …` belong to that error."""
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
            group.reader = TracebackReader(text, in_record=key is not None)
            group.reader_first = line.number
            said = self._last_said.pop(group.chain, "")
            if not group.reader.header:
                group.reader.header = group.lines[-1] if group.lines else said
            group.lines = []
            return
        if len(group.lines) < _MAX_TEXT_LINES:
            group.lines.append(text)
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
        yield Traceback(origin, exceptions, reader.header, key.level, key.file, key.time, key.logger, truncated, evidence)

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
    """Ranks and task numbers name the processes of one server, and a unit's process id changes with each start."""
    return " ".join(re.sub(r"\[\d+\]$", "", name) for name in stream.split() if not _RANK.fullmatch(name))


def line_limit(line: Line) -> int:
    """Return the number of characters up to which a line that a container cut is joined."""
    return max(1 << 20, len(line.text))
