"""Saves the state of a stream between two reads, and loads it back: a pickle that may hold only lmdiag's own values.

The state belongs to the program that wrote it: another version of lmdiag or of Python starts afresh, as on a new node.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from lmdiag import __version__

_HEAD = f"lmdiag {__version__} python {sys.version_info.major}.{sys.version_info.minor} 1\n".encode()
_PLAIN = frozenset(
    {("collections", "OrderedDict"), ("collections", "Counter"), ("collections", "deque"), ("re", "_compile")}
    | {("builtins", name) for name in ("set", "frozenset", "bytearray")}
)


def dump(value: object) -> bytes:
    """Pickle a value."""
    return _HEAD + pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def load(data: bytes) -> Any | None:
    """Return the value, or None if another version wrote it, or if it is damaged."""
    if not data.startswith(_HEAD):
        return None
    try:
        return _Loader(io.BytesIO(data[len(_HEAD) :])).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, ValueError, TypeError):
        return None


class _Loader(pickle.Unpickler):
    """Refuses everything that could do more than hold data: the state directory may have been tampered with."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "lmdiag" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:  # not what the module has imported
                return found
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a saved state")
