"""Hashes for ids. CPython's own: `hashlib` would load OpenSSL for them, which costs a scan a third of an interpreter's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha1
else:
    try:
        from _blake2 import blake2b
        from _sha1 import sha1
    except ImportError:  # a Python that was built without them
        from hashlib import blake2b, sha1

__all__ = ["blake2b", "sha1"]
