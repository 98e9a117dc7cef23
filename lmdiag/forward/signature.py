"""Signatures by which a receiver knows that a webhook is ours and fresh.

Standard Webhooks 1.0.0 (https://github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md), symmetric.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error

from lmdiag.forward.credentials import CredentialError, credential, locate

PREFIX = "whsec_"
MIN_KEY, MAX_KEY = 24, 64
"""Bytes of a key, as the specification has it."""


def secrets(name: str) -> tuple[str, ...]:
    """Read the secrets of `secret-file`: one a line, two or more while one takes the place of another.

    Raises CredentialError, also for what is no secret of Standard Webhooks.
    """
    lines = tuple(line.strip() for line in credential(name, "secret-file").splitlines() if line.strip())
    for number, line in enumerate(lines, 1):
        if not MIN_KEY <= len(_key(line)) <= MAX_KEY:
            raise CredentialError(
                f"secret-file: {locate(name)}: secret {number} must be `{PREFIX}` and the base64 of {MIN_KEY} to "
                f"{MAX_KEY} random bytes; make one with: echo {PREFIX}$(openssl rand -base64 32)"
            )
    return lines


def signature(secrets: tuple[str, ...], key: str, at: int, body: bytes) -> str:
    """Sign what is sent as `key` at `at` (unix seconds), once with each secret: the value of `webhook-signature`."""
    content = f"{key}.{at}.".encode() + body
    return " ".join(
        f"v1,{b64encode(hmac.digest(_key(secret), content, hashlib.sha256)).decode()}" for secret in secrets
    )


def _key(secret: str) -> bytes:
    """Decode a secret; one that cannot be has no bytes."""
    if not secret.startswith(PREFIX):
        return b""
    try:
        return b64decode(secret.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):  # ValueError: not ASCII
        return b""
