"""Where a setting stands in the file, for messages."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


class Places(NamedTuple):
    """A file and its text. tomllib does not tell lines, so a key is looked for as it is usually written."""

    path: str
    text: str

    def of(self, *keys: str) -> str:
        """Write FILE:LINE: KEY of a key, given with its sections from the outside; the line is left out if not found."""
        found = next((at for count in range(len(keys), 0, -1) if (at := self._find(keys[:count])) >= 0), -1)
        line = f":{self.text.count(chr(10), 0, found) + 1}" if found >= 0 else ""
        return f"{self.path}{line}: {'.'.join(keys)}"

    def _find(self, keys: tuple[str, ...]) -> int:
        """Look in the innermost section first; -1: it is written in another way."""
        for depth in range(len(keys), -1, -1):
            start, end = self._section(keys[:depth])
            if start >= 0 and depth == len(keys):
                return start
            hit = re.search(rf"^[ \t]*{_dotted(keys[depth:])}[ \t]*[=.]", self.text[start:end], re.MULTILINE)
            if start >= 0 and hit:
                return start + hit.start()
        return -1

    def _section(self, keys: tuple[str, ...]) -> tuple[int, int]:
        """Find where the header of a section stands, and where the next one does; the top of the file has none."""
        start = behind = 0
        if keys:
            exact, within = (rf"^[ \t]*\[+[ \t]*{_dotted(keys)}[ \t]*{end}" for end in (r"\]", r"\."))
            header = re.search(exact, self.text, re.MULTILINE) or re.search(within, self.text, re.MULTILINE)
            start, behind = header.span() if header else (-1, len(self.text))
        following = _HEADER.search(self.text, behind)
        return start, following.start() if following else len(self.text)


def _dotted(keys: tuple[str, ...]) -> str:
    return r"[ \t]*\.[ \t]*".join(rf"""["']?{re.escape(key)}["']?""" for key in keys)
