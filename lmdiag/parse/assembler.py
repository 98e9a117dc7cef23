"""Puts the lines of many interleaved processes together again: lines in, records and tracebacks out.

Lines are grouped by container stream and the whole chain of process prefixes, never by file alone. Within a group,
lines with a record prefix and raw lines (stderr) are read apart, since the two arrive through different buffers and one
may stand in the middle of the other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator
from typing import Any

from lmdiag.lazy_pattern import lazy
from lmdiag.model import Line, Origin, Record, Traceback
from lmdiag.parse.anchors import holds_anchor
from lmdiag.parse.chatter import CHATTER_LINE, chatter_end
from lmdiag.parse.clean import clean
from lmdiag.parse.groups import Group
from lmdiag.parse.jsonlines import docker_text
from lmdiag.parse.last_record import LastRecord
from lmdiag.parse.lmcache import LMCacheRecords
from lmdiag.parse.logical import Logical, LogicalLines
from lmdiag.parse.messages import continues_message, is_junk
from lmdiag.parse.notable import USAGE, Notable
from lmdiag.parse.prefixes import Prefixed, RecordKey, lmcache_end, read_prefix, unglue
from lmdiag.parse.progress import Progress, shows_stall
from lmdiag.parse.tracebacks import CERTAIN, TracebackReader, opens

Event = Record | Traceback

_HEADER_LINE = lazy(r"[\w ]*(?:failed to start|hit an exception|encountered a fatal error)\b")
_NO_SERVICE = lazy(r"(?:rank|default)?\d+|\S+\[\d+\]|kernel|systemd")
_QUIET = frozenset({"INFO", "DEBUG"})
_LOUD = frozenset({"ERROR", "CRITICAL"})
_MAX_TEXT_LINES = 60
_MAX_TEXT_WIDTH = 1 << 16
_EVIDENCE_LINES = 12
_CALM = 32
"""Lines in a row that belong to no error: behind them everything that was open is finished."""
NEAR_LINES, NEAR_SIZE = 8, 1 << 16
"""How far before a traceback, in lines and bytes, the line may stand that says what it is of."""


class Assembler:
    """Reassembles one source. `feed` it the lines in their order, `close` it at the end.

    Bounded: at most `max_groups` groups are open (the one that was silent longest is finished first), and a record
    keeps at most its first 60 lines outside of tracebacks. `heads`: the first 12 characters of records that are wanted
    whatever their level.
    """

    def __init__(self, source: str, *, max_groups: int = 256, heads: Container[str] = ()) -> None:
        self._source = source
        self._notable = Notable(heads)
        self._max_groups = max_groups
        self._lines = LogicalLines(source)
        self._lmcache = LMCacheRecords()
        self._groups: OrderedDict[tuple[str, bool], Group] = OrderedDict()
        self._said: dict[str, tuple[str, int, int]] = {}
        self._progress = Progress()
        self._stopped = self._progress.stopped
        self._calm = _CALM
        self._last_record = LastRecord()
        self.accepted = 0
        """Lines that were more than chatter: when it has not grown, the end would show what it showed before."""
        self.records = 0
        self.tracebacks = 0

    def attach(self, heads: Container[str]) -> None:
        """Look for these heads from now on."""
        self._notable.heads = heads

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle keeps: the heads belong to the cards, and `attach` gives them back."""
        from copy import copy

        notable = copy(self._notable)
        notable.heads = ()
        return {**vars(self), "_notable": notable}

    @property
    def busy(self) -> bool:
        """Whether a line without an anchor may matter, because of those before it."""
        return (
            self._calm < _CALM
            or self._notable.starting
            or bool(self._stopped)
            or not self._lines.is_idle
            or not self._lmcache.is_idle
        )

    def passes(self, text: str) -> bool:
        """Say whether a line with an anchor changes nothing; asked only when nothing is `busy`.

        A client's text holds such words, and so do sentences of a server that is well.
        """
        text = (docker_text(text) or text) if text.startswith("{") else text
        if self._skips(text):
            return True
        if text[:1] not in "(DIW[\x1b" or len(pieces := clean(text)) != 1 or len(unglue(pieces[0].rstrip())) != 1:
            return False
        prefixed = read_prefix(pieces[0].rstrip())
        key = prefixed.record
        if key is None or key.level not in _QUIET or shows_stall(key.file, prefixed.text, prefixed.process):
            return False
        if key.logger == "lmcache" and lmcache_end(prefixed.text) is None:
            return False
        return not self._notable.record(prefixed.text)

    def _skips(self, text: str) -> bool:
        """Say whether a line is chatter of a serving server that cannot change anything.

        Nine of ten lines of a healthy log are such. The answer is exact: taking the line apart would do nothing.
        """
        hit = CHATTER_LINE.match(text)
        if hit is None or "\r" in text:
            return False
        chain, end = hit["chain"] or "", hit.end()
        if self._stopped and not hit["access"]:
            return False
        if hit["access"] or hit["statistics"]:
            if text.find(".py:", end) >= 0 or text.find("pid=", end) >= 0:
                return False
        elif text.find(hit["time"], end) >= 0:
            return False
        group = self._groups.get((chain, True))
        if group is not None and group.is_open:
            return False
        return self._lmcache.ignores(chain) and self._lines.ignores(text)

    def feed(self, line: Line) -> Iterable[Event]:
        """Take one line; return what it finished, which must be taken before the next line."""
        return () if self._goes_on(line) else self._take(line)

    def _goes_on(self, line: Line) -> bool:
        """Take one more line of a record's traceback, which most are; False where it has to be taken apart."""
        text = self._last_record.text(line.text)
        if text is None or not (self._lines.is_idle and self._lmcache.is_idle):
            return False
        group = self._groups.get((self._last_record.chain, True))
        if group is None or group.reader is None or group.key != self._last_record.key:
            return False
        if _HEADER_LINE.match(text) or not group.reader.feed(text):  # what it refuses once, it will again
            return False
        self._groups.move_to_end((group.chain, True))
        self._took(group, line)
        self._calm = 0
        self._notable.passed(1)
        return True

    def _took(self, group: Group, line: Line) -> None:
        """Note that a line belongs to what is open in a group."""
        self.accepted += 1
        group.last = line.number
        group.truncated = group.truncated or line.truncated

    def _take(self, line: Line) -> Iterator[Event]:
        accepted = self.accepted
        waits = self._lines.waits or self._lmcache.holds
        if not self._skips(line.text):
            for logical in self._lines.feed(line):
                for whole in self._lmcache.feed(logical):
                    yield from self._assign(whole)
        if self.accepted != accepted:
            self._calm = 0
            self._notable.passed(1)
        elif not waits and (self._calm < _CALM or self._notable.left):
            yield from self._passed(1)

    def pass_chatter(self, block: bytes | bytearray, start: int, end: int) -> tuple[int, int, Iterator[Event]]:
        """Take a run of whole lines of chatter, no further than the first of them that `busy` may depend on.

        Return where it ends, how many lines it is, and what they finished.
        """
        if not self._lines.is_idle or self._lmcache.holds:
            return start, 0, iter(())
        most = _CALM - self._calm if self._calm < _CALM else self._notable.left or end
        stop, lines = chatter_end(block, start, end, self._open_chains(), most, only_access=bool(self._stopped))
        return stop, lines, self._passed(lines)

    def _open_chains(self) -> set[bytes]:
        chains = {chain for (chain, of_records), group in self._groups.items() if of_records and group.is_open}
        return {chain.encode() for chain in (*chains, *self._lmcache.open_chains)}

    def _passed(self, lines: int) -> Iterator[Event]:
        """Count lines that belonged to nothing open."""
        self._notable.passed(lines)
        before, self._calm = self._calm, min(self._calm + lines, _CALM)
        if before < _CALM <= self._calm:
            yield from self._settle()

    def _settle(self) -> Iterator[Event]:
        """Finish everything that is open, in the order of the log: too much has passed for more to come."""
        self._lmcache.settle()
        events = [event for group in self._groups.values() for event in self._finish(group)]
        self._groups.clear()
        yield from sorted(events, key=lambda event: event.origin.first_line)

    def close(self) -> Iterator[Event]:
        """Finish everything that is open, in the order of the log."""
        for logical in self._lines.close():
            for whole in self._lmcache.feed(logical):
                yield from self._assign(whole)
        for whole in self._lmcache.close():
            yield from self._assign(whole)
        yield from self._settle()

    # -- groups ----------------------------------------------------------------------------------------------------

    def _assign(self, logical: Logical) -> Iterator[Event]:
        stream, prefixed, line, ends_record = logical
        chain, key = stream + prefixed.chain, prefixed.record
        if key is not None and (key.level in _QUIET or self._only_warns(chain, key, prefixed.text)):
            sign = self._sign(stream, key, prefixed)
            if self._in_traceback(chain) if sign else not self._notable.record(prefixed.text):
                yield from self._quiet(chain, key)
                return
            self._notable.seen(prefixed.text)
        elif key is None and is_junk(prefixed.text):
            return
        group = self._groups.get((chain, key is not None))
        if group is None and key is None and not self._notable.raw(prefixed.text):
            self._say(chain, prefixed.text, line)
            return
        if group is None:
            yield from self._evict()
            group = self._groups[chain, key is not None] = Group(chain, _service(stream))
        else:
            self._groups.move_to_end((chain, key is not None))
        yield from self._feed(group, prefixed, line)
        if group.reader is not None:
            self._last_record.remember(prefixed, line.text)
        if ends_record:
            yield from self._finish(group)
            group.key = None

    def _only_warns(self, chain: str, key: RecordKey, text: str) -> bool:
        """Say whether a record is a warning that is no part of a traceback, of a server that has come up."""
        if key.level != "WARNING" or self._notable.starting or holds_anchor(text):
            return False
        group = self._groups.get((chain, True))
        return group is None or group.reader is None or group.key is None or not _same_record(group.key, key)

    def _sign(self, stream: str, key: RecordKey, prefixed: Prefixed) -> bool:
        """Say whether a quiet record is a sign of a stall, or the first one of its end."""
        return key.level != "WARNING" and self._progress.wants(stream, key.file, prefixed.text, prefixed.process)

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

    def _feed(self, group: Group, prefixed: Prefixed, line: Line) -> Iterator[Event]:
        key, text = prefixed.record, prefixed.text
        if group.reader is not None:
            same = group.key is None or (key is not None and _same_record(group.key, key))
            if same and not (key and _HEADER_LINE.match(text)) and group.reader.feed(text):
                self._took(group, line)
                return
            yield from self._finish_traceback(group)
            group.key = key if same else group.key
        if self._continues(group, key, text):
            self.accepted += 1
            group.lines.extend([text[:_MAX_TEXT_WIDTH]] if len(group.lines) < _MAX_TEXT_LINES else [])
            group.last = line.number
            return
        if key is None or key != group.key or not group.first or key.logger == "uvicorn":
            yield from self._finish_record(group)
            if key is None and not self._notable.raw(text):
                self._say(group.chain, text, line)
                return
            if key is None:
                self._notable.seen(text)
            group.start(prefixed, line.number)
        self.accepted += 1
        self._outside(group, text, line)

    def _continues(self, group: Group, key: RecordKey | None, text: str) -> bool:
        """Pydantic's lines behind `vllm serve: error: argument --x: 1 validation error for …` belong to that error."""
        if key is not None or not group.lines or not USAGE.match(group.lines[0]):
            return False
        message = [USAGE.sub("", group.lines[0]).partition(": ")[2], *group.lines[1:]]
        return continues_message(message, 0, text, in_record=False)

    def _outside(self, group: Group, text: str, line: Line) -> None:
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
            said = self._said_before(group.chain, line)
            if not group.reader.header:
                group.reader.header = group.lines[-1] if group.lines else said
            group.lines = []
            return
        if len(group.lines) < _MAX_TEXT_LINES:
            group.lines.append(text[:_MAX_TEXT_WIDTH])
        if loud:
            self._say(group.chain, text, line)

    def _say(self, chain: str, text: str, line: Line) -> None:
        """Remember a line that may say what a traceback behind it is of."""
        if not text:
            return
        if len(self._said) >= 4 * self._max_groups:
            self._said.clear()
        self._said[chain] = text[:400], line.number, line.offset

    def _said_before(self, chain: str, line: Line) -> str:
        text, number, offset = self._said.pop(chain, ("", 0, 0))
        near = line.number - number <= NEAR_LINES and line.offset - offset <= NEAR_SIZE
        return text if near else ""

    # -- finishing -------------------------------------------------------------------------------------------------

    def _finish(self, group: Group) -> Iterator[Event]:
        yield from self._finish_traceback(group)
        yield from self._finish_record(group)

    def _origin(self, group: Group, first: int) -> Origin:
        return Origin(self._source, first, max(first, group.last), group.process, group.pid, group.service)

    def _finish_traceback(self, group: Group) -> Iterator[Event]:
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

    def _finish_record(self, group: Group) -> Iterator[Event]:
        lines, group.lines = group.lines, []
        text = "\n".join(lines).strip()
        if not text:
            return
        origin, key = self._origin(group, group.first), group.key
        if key is not None:
            self.records += 1
            yield Record(origin, key.level, key.file, text, key.time, key.logger, group.truncated)
        elif USAGE.match(text):
            yield Record(origin, "ERROR", "", text, None, "argparse", group.truncated)
        elif self._notable.bare(text):
            yield Record(origin, "", "", text, None, "bare", group.truncated)


def _same_record(mine: RecordKey, other: RecordKey) -> bool:
    """A second may tick within a record that is written line by line; another place in the code is another record."""
    return mine[:2] == other[:2] and mine[3:] == other[3:]


def _service(stream: str) -> str:
    """Name the container or pod. Ranks and tasks are processes of one server, and a journal tells of one unit and its host."""
    return " ".join(name for name in stream.split() if not _NO_SERVICE.fullmatch(name))
