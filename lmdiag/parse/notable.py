"""Which lines outside of errors matter: what a record below ERROR, or a raw line, must say to be kept.

A server tells of itself while it starts. Once it has come up, only the words of `ANCHORS` count: that is what lets the
first stage pass over a serving server's log.
"""

from __future__ import annotations

from collections.abc import Container

from lmdiag.lazy_pattern import lazy
from lmdiag.parse.anchors import holds_anchor
from lmdiag.parse.chatter import CHATTER

START = lazy(r"vLLM (?:API )?server version|args: \{|LLM engine |█  version")
"""A server starts; each alternative holds an anchor."""
ALWAYS = lazy(rf"{START.pattern}|Application startup|hutdown|hutting down")
"""What a quiet record may say at any time; each alternative holds an anchor."""
_STARTING = lazy(
    r"version v?\d|args: |Initializing a|tartup complete|hut(?:ting)? ?down|platform |Resolved architecture|"
    r"model   \S|Starting vLLM|hybrid kv cache|SIGINT|SIGTERM|Available KV cache|(?:died|exited) unexpectedly|degraded mode|"
    r"fatal signal|Failed core proc|See stack trace|See root cause"
)
CRASH = lazy(
    r"!+ Segfault encountered|Segmentation fault|Fatal Python error: |terminate called after throwing|\*\*\* SIG[A-Z]+ received|"
    r"(?:Memory cgroup o|O)ut of memory: Killed process|\S+\.service: (?:Main process exited, code=(?:killed|dumped)|"
    r"A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill')|"
    r"\S+: line \d+: +\d+ Killed|\S+: error while loading shared libraries: |"
    r"Bus error|Illegal instruction|Killed$|Aborted(?: \(core dumped\))?$"
)
"""What the C library, the shell and Python say of a process that a signal ended."""
_RAW = lazy(
    rf"Process \S+:$|Exception ignored in|{CRASH.pattern}|\$ (?:\S+ )*vllm serve |"
    r"Runner failed with exception|.{0,80}LMCache v\d"
)
USAGE = lazy(r"(?:[\w./-]+ )*[\w./-]+: error: ")
HEAD_LENGTH = 12
"""Characters by which a quiet record is recognised as one that a card asks for."""
_WIDTH = 400
"""Characters that are looked at: what is notable stands at the beginning."""
_START_LINES = 1024
"""Lines for which a start lasts behind the last thing that it said."""


class Notable:
    """Judges the lines of one source; it knows whether a server is starting."""

    def __init__(self, heads: Container[str]) -> None:
        self.heads = heads
        self._left = _START_LINES

    @property
    def starting(self) -> bool:
        """Whether a server may be starting: at a source's beginning, and for a while behind each sign of a start."""
        return self._left > 0

    def passed(self, lines: int) -> None:
        """Count lines."""
        self._left = max(0, self._left - lines)

    @property
    def left(self) -> int:
        """Lines after which the start is over if nothing more is heard of it."""
        return self._left

    def record(self, text: str) -> bool:
        """Say whether a quiet record matters. What a serving server says all the time is ruled out first."""
        if text[:1].isdigit() or text.startswith(CHATTER):
            return False
        if self._left and (text[:HEAD_LENGTH] in self.heads or _STARTING.search(text, 0, _WIDTH)):
            return True
        return ALWAYS.search(text, 0, _WIDTH) is not None

    def raw(self, text: str) -> bool:
        """Say whether a raw line outside of any traceback is more than a header to what follows it."""
        return (self._left > 0 and self.bare(text)) or holds_anchor(text)

    def seen(self, text: str) -> None:
        """Note a line that matters: a start goes on with it, or begins."""
        if self._left or START.search(text, 0, _WIDTH):
            self._left = _START_LINES

    def bare(self, text: str) -> bool:
        """Say whether raw text is worth an event of its own."""
        return _RAW.match(text) is not None or _STARTING.search(text, 0, _WIDTH) is not None
