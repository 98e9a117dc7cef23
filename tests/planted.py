"""Secrets, tokens and prompts that are planted into the logs and the configuration of tests: none may ever come out."""

from __future__ import annotations

from collections.abc import Sequence

LOG_SECRETS = (
    "hf_PLANTEDhfTokenAbcdefghijklmnop",
    "sk-PLANTEDopenaiKey0123456789abcd",
    "PLANTED-api-key-8f3e2d1c",
    "PLANTED the patient named Jane Roe has",
)
"""An HF token, an API key, another one by its name, and a prompt, as they stand in a log."""
CREDENTIALS = (
    "PLANTED-bearer-token-71c0",
    "PLANTED-password-55aa",
    "whsec_UExBTlRFRC1zaWduaW5nLWtleS0wMTIzNDU2Nzg5",
    "PLANTEDroutingkey0123456789abcdef",
    "PLANTED/hook/path/T000/B000/XXXX",
)
"""What a sink is configured with: it goes to its own receiver, where the service wants it, and nowhere else."""


def assert_clean(content: bytes | str, what: str, *, own: Sequence[str] = ()) -> None:
    """Fail if a planted text is in the content. `own`: the credentials that are meant for whoever has got it."""
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    for secret in LOG_SECRETS + CREDENTIALS:
        assert secret in own or secret.encode() not in data, f"{what} has {secret!r}: {data[:500]!r}"
