"""Reads one traceback, line by line, in every form in which Python and those who copy it write one.

The reader is told whether a line belongs to the same record as the one before; for raw lines (stderr) only the shape of
a line tells whether it continues the traceback.
"""

from __future__ import annotations

import re

from lmdiag.lazy_pattern import lazy
from lmdiag.model import ExceptionInfo, Frame
from lmdiag.parse.messages import continues_message, finish_message

HEADER = lazy(r"(?:Exception Group )?Traceback \(most recent call last\):?\s*$")
FRAME = lazy(r'(\s*)File "(.+?)", line (\d+)(?:, in (.*))?$')
_NAME = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
_SUFFIX = r"(?:Error|Exception|Exit|Interrupt|Iteration|Group|Timeout|Failure|Fault|Expired|Empty|Full)"
EXCEPTION = lazy(rf"({_NAME}(?:\([\w.]+\))?)(?::(?: (.*)|$)|$)")
CERTAIN = lazy(rf"(?:E   )?((?:[a-z_]\w*\.)*[A-Z]\w{{0,80}}?{_SUFFIX}(?:\([\w.]+\))?)(?:: ?(.*)|$)")
"""An exception line that is recognised without a traceback above it."""
_IPYTHON = lazy(rf"\s*([A-Z]\w{{0,80}}{_SUFFIX})\s+Traceback \(most recent call last\)\s*$")
_IPYTHON_FRAME = lazy(
    r"File (?P<file>\S.*?):(?P<line>\d+), in (?P<function>[\w.<>]+)|(?P<old>/\S+|<ipython-input-\S+>) in (?P<in>[\w.<>]+)"
)
_DECORATION = lazy(
    r"\s*(?:[\^~]+[\s\^~]*|\.\.\.<\d+ lines>\.\.\.|\[Previous line repeated \d+ more times?\]|[)\]}]+,?)$"
)
_GUTTER = lazy(r"\s*\| ?")
_GROUP_PART = lazy(r"\s*\+-?\+?-+ (?:\d+|\.\.\.) -+$")
_GROUP_END = lazy(r"\s*\+-+$")
_RELATIONS = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_RAY_TASK = "RayTaskError"

_MAX_LINES = 4000
_MAX_MESSAGE_LINES = 200
_MAX_FRAMES = 120
_MAX_EXCEPTIONS = 16
_MAX_MESSAGE_SIZE = 1 << 17
_KEPT_LINES = 12
_KEPT_WIDTH = 4096


def opens(text: str) -> bool:
    """Say whether a line, seen outside of any traceback, opens one of any form."""
    return HEADER.search(text) is not None or FRAME.match(text) is not None or _IPYTHON.match(text) is not None


class TracebackReader:
    """One traceback that is being read. `feed` its lines until it refuses one; then take `exceptions`."""

    def __init__(self, text: str, *, in_record: bool, tail: str = "") -> None:
        """Open it with the line for which `opens` or `CERTAIN` holds; what stands before `Traceback` is in `header`.

        A line that begins with `tail` does not belong to the message: LMCache goes on with its own sentence.
        """
        self.header = ""
        self.in_record = in_record
        self._tail = tail
        self._size = 0
        self.head_missing = False
        self.lines: list[str] = []
        self.count = 0
        self._done: list[ExceptionInfo] = []
        self._frames: list[Frame] = []
        self._relation: str | None = None
        self._type: str | None = None
        self._pending: ExceptionInfo | None = None
        self._message: list[str] | None = None
        self._blanks = 0
        self._between = False
        self._group = False
        self._ipython = False
        self._indent = 0
        self._flat = False
        self._after_frame = False
        self._open(text)

    def _open(self, text: str) -> None:
        self._keep(text)
        if _IPYTHON.match(text):
            self._ipython = True
        elif hit := HEADER.search(text):
            self.header = text[: hit.start()].strip(" ,:+")
            self._indent = len(text) - len(text.lstrip()) if not self.header else 0
            self._group = hit.group().startswith("Exception Group")
        else:
            self.head_missing = True
            if hit := FRAME.match(text):
                self._indent = max(0, len(hit.group(1)) - 2)
                self._add_frame(hit)
            elif hit := CERTAIN.match(text):
                self._raise(hit.group(1), hit.group(2))

    # -- feeding ---------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> bool:
        """Take one more line; False if it does not belong to this traceback (it is then finished)."""
        if self.count >= _MAX_LINES:
            return False
        if self._group or text.lstrip()[:2] in ("+-", "| "):
            text = self._strip_gutter(text)
        taken = self._feed_message(text) if self._message is not None else self._feed_frames(text)
        if taken:
            self._keep(text)
        return taken

    def _keep(self, text: str) -> None:
        self.count += 1
        self.lines.append(text[:_KEPT_WIDTH])
        if len(self.lines) > 2 * _KEPT_LINES:
            del self.lines[:_KEPT_LINES]

    def _strip_gutter(self, text: str) -> str:
        if _GROUP_PART.match(text):
            self._finish()
            self._relation, self._between = "group", True
            self._group = True
            return ""
        if _GROUP_END.match(text):
            return ""
        hit = _GUTTER.match(text)
        return text[hit.end() :] if hit and self._group else text

    def _feed_frames(self, text: str) -> bool:
        stripped = text.strip()
        if not stripped:
            return True
        if self._between and stripped in _RELATIONS:
            self._relation = _RELATIONS[stripped]
            return True
        if hit := FRAME.match(text):
            self._between = False
            self._add_frame(hit)
            return True
        if HEADER.search(text) and not CERTAIN.match(stripped):
            return self._feed_header(text)
        if self._ipython:
            return self._feed_ipython(text)
        return self._feed_exception_or_source(text, stripped)

    def _feed_header(self, text: str) -> bool:
        if self._frames and not self._between:
            return False
        self._between = False
        self._frames.clear()
        self._indent = len(text) - len(text.lstrip())
        return True

    def _feed_exception_or_source(self, text: str, stripped: str) -> bool:
        certain = CERTAIN.match(stripped)
        indent = len(text) - len(text.lstrip())
        if _DECORATION.match(text) and not certain:
            return True
        if certain and (indent <= self._indent or self._flat):
            return self._raise(certain.group(1), certain.group(2))
        if self._flat:
            after_frame, self._after_frame = self._after_frame, False
            return after_frame or self._plausible_exception(stripped)
        if indent > self._indent:
            return not self._between
        return bool(self._frames) and not self._between and self._plausible_exception(stripped)

    def _plausible_exception(self, stripped: str) -> bool:
        """An exception class need not be called Error: `zmq.Again`, `StopTest: x`. Nothing else stands at the base."""
        hit = EXCEPTION.fullmatch(stripped)
        if not hit or (hit.group(2) is None and "." not in hit.group(1) and not hit.group(1)[0].isupper()):
            return False
        return self._raise(hit.group(1), hit.group(2))

    def _feed_ipython(self, text: str) -> bool:
        if hit := _IPYTHON_FRAME.match(text):
            file, line = hit["file"] or hit["old"], int(hit["line"] or 0)
            self._frames.append(Frame(file, line, hit["function"] or hit["in"]))
        elif hit := CERTAIN.match(text):
            self._raise(hit.group(1), hit.group(2))
        return True

    def _add_frame(self, hit: re.Match[str]) -> None:
        if len(self._frames) >= _MAX_FRAMES:
            del self._frames[_MAX_FRAMES // 2 : _MAX_FRAMES // 2 + 1]
        self._frames.append(Frame(hit.group(2), int(hit.group(3)), (hit.group(4) or "<module>").strip()))
        self._flat = len(hit.group(1)) <= self._indent
        self._after_frame = True

    def _raise(self, name: str, message: str | None) -> bool:
        message = message or ""
        if HEADER.search(message):  # Ray Serve raises a RuntimeError whose message is a whole traceback
            self._frames.clear()
            return True
        self._between = False
        self._type, self._message, self._blanks = name, [message[:_MAX_MESSAGE_SIZE]], 0
        return True

    def _feed_message(self, text: str) -> bool:
        assert self._message is not None
        stripped = text.strip()
        if stripped in _RELATIONS:
            self._finish()
            self._relation, self._between = _RELATIONS[stripped], True
            return True
        if not stripped:
            self._blanks += 1
            return self._blanks < 4
        if _RAY_TASK in (self._type or "") and (_DECORATION.match(text) or FRAME.match(text)):
            self._become_frames(text)
            return True
        if HEADER.search(text) or (self._tail and text.startswith(self._tail)) or text == self.header:
            return False  # the header once more is another record of the same place and second
        if len(self._message) > _MAX_MESSAGE_LINES or self._size > _MAX_MESSAGE_SIZE:
            return self.in_record
        if _DECORATION.match(text) and self._frames:
            return True
        if not continues_message(self._message, self._blanks, text, in_record=self.in_record):
            return False
        self._message.extend([""] * self._blanks)
        self._message.append(text[:_MAX_MESSAGE_SIZE])
        self._size += len(text)
        self._blanks = 0
        return True

    def _become_frames(self, text: str) -> None:
        """`RayTaskError(ValueError): ray::…` stands in the middle: the remote frames and the real exception follow."""
        self._pending = self._take()
        if hit := FRAME.match(text):
            self._add_frame(hit)

    # -- the result ------------------------------------------------------------------------------------------------

    def _take(self) -> ExceptionInfo:
        assert self._message is not None
        message, notes = finish_message(self._message)
        info = ExceptionInfo(self._type, message, tuple(self._frames), self._relation, notes)
        self._frames, self._message, self._type = [], None, None
        return info

    def _finish(self) -> None:
        if self._message is None:
            return
        self._done.append(self._take())
        if len(self._done) > _MAX_EXCEPTIONS:  # of a long chain the ends matter
            del self._done[_MAX_EXCEPTIONS // 2]
        self._relation, self._pending = None, None

    @property
    def has_exception(self) -> bool:
        """Whether an exception line has been read already."""
        return self._message is not None or bool(self._done)

    def exceptions(self) -> tuple[ExceptionInfo, ...]:
        """Return what was read; empty if the log broke off before any exception line."""
        self._finish()
        if self._pending:
            inner = (self._pending.type or "").rpartition("(")[2].rstrip(")")
            self._done.append(self._pending._replace(type=inner or self._pending.type))
            self._pending = None
        return tuple(self._done)

    def open_frames(self) -> tuple[Frame, ...]:
        """Return the frames that no exception line has followed yet."""
        return tuple(self._frames)
