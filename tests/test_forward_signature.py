"""Signatures are those that a library of Standard Webhooks verifies."""

from __future__ import annotations

import time
from base64 import b64encode
from pathlib import Path

import pytest
from planted import CREDENTIALS
from standardwebhooks import Webhook, WebhookVerificationError

from lmdiag.forward.credentials import CredentialError
from lmdiag.forward.signature import secrets, signature

OLD, NEW = CREDENTIALS[2], f"whsec_{b64encode(bytes(range(32))).decode()}"
BODY = '{"a": "é"}'.encode()


def headers(known: tuple[str, ...], at: int, key: str = "key-1") -> dict[str, str]:
    return {"webhook-id": key, "webhook-timestamp": str(at), "webhook-signature": signature(known, key, at, BODY)}


def test_the_example_of_the_specification() -> None:
    """The vector that the libraries of Standard Webhooks test themselves with."""
    signed = signature(
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_each_of_two_secrets_verifies(secret: str) -> None:
    signed = headers((OLD, NEW), int(time.time()))
    assert len(signed["webhook-signature"].split(" ")) == 2
    assert Webhook(secret).verify(BODY, signed) == {"a": "é"}


def test_another_secret_does_not() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY, headers((OLD,), int(time.time())))


@pytest.mark.parametrize("changed", ["body", "webhook-id", "webhook-timestamp"])
def test_what_was_tampered_with_does_not_verify(changed: str) -> None:
    at = int(time.time())
    signed = headers((OLD,), at)
    replaced = {"webhook-id": "key-2", "webhook-timestamp": str(at - 1)}
    signed |= {changed: replaced[changed]} if changed in replaced else {}
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(BODY + b" " if changed == "body" else BODY, signed)


def test_an_old_one_does_not_verify() -> None:
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(OLD).verify(BODY, headers((OLD,), int(time.time()) - 3600))


def test_secrets_are_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text(f"{OLD}\n\n  {NEW}\r\n")
    assert secrets(str(path)) == (OLD, NEW)


@pytest.mark.parametrize(("size", "good"), [(23, False), (24, True), (64, True), (65, False)])
def test_the_size_of_a_key_has_limits(tmp_path: Path, size: int, good: bool) -> None:
    path = tmp_path / "secrets"
    path.write_text("whsec_" + b64encode(bytes(size)).decode())
    if good:
        assert len(secrets(str(path))) == 1
    else:
        with pytest.raises(CredentialError, match="24 to 64"):
            secrets(str(path))


@pytest.mark.parametrize(
    "line",
    [
        "PLANTED",
        "whsec_",
        "whsec_PLANTED-signing-key-0123456789-abcdef",
        f"whsec_{b64encode(bytes(32)).decode()}=PLANTED",
        "whsec_PLANTEDé" + "A" * 32,
        b64encode(bytes(32)).decode(),
    ],
)
def test_what_is_no_secret_says_how_to_make_one(tmp_path: Path, line: str) -> None:
    path = tmp_path / "secrets"
    path.write_text(f"{OLD}\n{line}\n")
    with pytest.raises(CredentialError) as caught:
        secrets(str(path))
    text = str(caught.value)
    assert text.startswith(f"secret-file: {path}: secret 2 must be `whsec_`")
    assert "openssl rand -base64 32" in text
    assert "PLANTED" not in text
