"""Knows the next line of a record by its prefix: most lines of a traceback are no more than that and some text."""

from __future__ import annotations

from lmdiag.parse.prefixes import Prefixed, RecordKey, read_prefix

_REPEATED = ("across cluster]", "options.)")
"""How Ray ends a line that it has left out elsewhere."""


class LastRecord:
    """The record that a traceback was last read of."""

    def __init__(self) -> None:
        self._prefix = "\n"  # no line begins so
        self.chain = ""
        self.key: RecordKey | None = None

    def remember(self, prefixed: Prefixed, text: str) -> None:
        """Remember a record, if the physical line `text` is nothing but its prefix and the text behind that."""
        if prefixed.record is None or not prefixed.text or text.startswith(self._prefix):
            return
        prefix = text.removesuffix(prefixed.text)
        if prefix[:1] == "(" and prefix != text and read_prefix(f"{prefix}x") == prefixed._replace(text="x"):
            self._prefix, self.chain, self.key = prefix, prefixed.chain, prefixed.record

    def text(self, line: str) -> str | None:
        """Return the text of a line that is one more of the record; None where taking it apart may give something else."""
        if not line.startswith(self._prefix) or not line.isprintable():
            return None
        text = line[len(self._prefix) :].rstrip()
        if ".py:" in text or "pid=" in text or "&" in text or ";" in line[:80] or text.endswith(_REPEATED):
            return None
        return None if "^[[" in text or "\ufffd[" in text else text
