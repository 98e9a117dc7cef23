"""The lines of one process: what belongs together, and what is unfinished of it."""

from __future__ import annotations

from lmdiag.parse.prefixes import Prefixed, RecordKey
from lmdiag.parse.tracebacks import TracebackReader


class Group:
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

    @property
    def is_open(self) -> bool:
        """Whether anything is unfinished in it."""
        return self.reader is not None or bool(self.lines)

    def start(self, prefixed: Prefixed, number: int) -> None:
        """Begin a record, or a raw line, that stands in a line of this number."""
        self.key, self.process, self.pid = prefixed.record, prefixed.process, prefixed.pid
        self.lines, self.first, self.truncated = [], number, False
