"""Regular expressions that are compiled when they are used first: a scan of a small log needs few of those that it loads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

_METHODS = ("match", "search", "fullmatch", "sub", "finditer", "findall", "split", "subn")


class _Pattern:
    """Stands for a pattern. Once compiled, its methods are attributes here, so that a call costs what it does there."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copy and pickle ask for
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


if TYPE_CHECKING:

    def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return what `re.compile` would. A bad expression raises re.error when it is used first."""
else:
    lazy = _Pattern
