"""LMCache's records: it prefixes only their first line, and marks their end with ` (file.py:172:lmcache.module)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmdiag.parse.anchors import holds_anchor
from lmdiag.parse.logical import Logical
from lmdiag.parse.prefixes import RecordKey, lmcache_end

_MAX_RECORD_LINES = 400
_MAX_HELD_LINES = 64
_LOUD = frozenset({"ERROR", "CRITICAL"})


class LMCacheRecords:
    """Gives the raw lines of an LMCache record their record, up to its end mark.

    Behind a quiet LMCache line that lacks its mark, lines are held back until the mark shows that they were one record:
    LMCache prints tokens' text as it is, and what looks like another process's record there is a client's. A process
    that had something to tell before is no client's invention, and is let through.
    """

    def __init__(self, *, max_open: int = 256) -> None:
        self._open: dict[str, tuple[RecordKey, int]] = {}
        self._max_open = max_open
        self._held: list[Logical] | None = None
        self._known: dict[str, None] = {}

    def ignores(self, chain: str) -> bool:
        """Say whether a record of another logger in this chain would change nothing."""
        return self._held is None and chain not in self._open

    @property
    def is_idle(self) -> bool:
        """Whether no record is open, and nothing held back."""
        return self._held is None and not self._open

    @property
    def holds(self) -> bool:
        """Whether lines are held back."""
        return self._held is not None

    @property
    def open_chains(self) -> Iterable[str]:
        """The chains of the open records."""
        return self._open

    def settle(self) -> None:
        """Let open records end: too much has passed for more of them to come."""
        self._open.clear()

    def feed(self, logical: Logical) -> Iterator[Logical]:
        """Take one line; yield it, and what waited for it, with its record."""
        key, text = logical.prefixed.record, logical.prefixed.text
        chain = logical.stream + logical.prefixed.chain
        starts = key is not None and key.logger == "lmcache"
        ends = lmcache_end(text) is not None
        if self._held is not None and not starts and (not logical.prefixed.chain or chain not in self._known):
            if ends:
                self._held = None
                return
            self._held.append(logical)
            if len(self._held) > _MAX_HELD_LINES:
                yield from self.close()
            return
        if starts:
            yield from self.close()
        elif chain and chain not in self._known and holds_anchor(logical.line.text):
            if len(self._known) >= self._max_open:
                del self._known[next(iter(self._known))]  # most belong to lives long over
            self._known[chain] = None
        if starts and not ends and key is not None and key.level not in _LOUD:
            self._held = []
        yield self._with_record(logical)

    def close(self) -> Iterator[Logical]:
        """Yield what was held back for a mark that did not come."""
        held, self._held = self._held or [], None
        for logical in held:
            yield self._with_record(logical)

    def _with_record(self, logical: Logical) -> Logical:
        prefixed = logical.prefixed
        chain = logical.stream + prefixed.chain
        opened, key = self._open.pop(chain, None), prefixed.record
        if key is None and opened is not None:
            key, left = opened
        elif key is not None and key.logger == "lmcache":
            left = _MAX_RECORD_LINES
        else:
            return logical
        end = lmcache_end(prefixed.text)
        if end is None and left and key.level in _LOUD and len(self._open) < self._max_open:
            self._open[chain] = (key, left - 1)
        return logical._replace(prefixed=prefixed._replace(record=key, text=prefixed.text[:end]))
