from __future__ import annotations

import hashlib

from lmdiag.digests import blake2b, sha1


def test_they_are_those_of_hashlib() -> None:
    assert blake2b(b"x", digest_size=8).hexdigest() == hashlib.blake2b(b"x", digest_size=8).hexdigest()
    assert sha1(b"x", usedforsecurity=False).hexdigest() == hashlib.sha1(b"x", usedforsecurity=False).hexdigest()
