"""Sealed keys in the form of every workspace proxy: RFC 7516, read and written here by independent code."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from coder.appproxy.apps.app_tickets import KEY_FEATURE, open_key_untrusted, seal, sealed_claims
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused

NOW = datetime(2026, 1, 6, 9, tzinfo=UTC)
KEY = SigningKey("7", bytes(range(32)))
NONCE = bytes(range(100, 112))
LIFETIME = timedelta(minutes=1)
GOOD: dict[str, Any] = {
    "iss": "coderd",
    "aud": ["wsproxy"],
    "nbf": NOW.timestamp() - 60,
    "exp": NOW.timestamp() + 60,
    "api_key": "id-secret",
}


class OneKey:
    async def find(self, feature: str, _key_id: str, /) -> SigningKey:
        assert feature == KEY_FEATURE
        return KEY


def _bytes(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "==")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_jwe(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a compact JWE, `dir` with A256GCM."""
    head, no_key, nonce, sealed, tag = token.split(".")
    assert no_key == ""
    cipher = Cipher(algorithms.AES(KEY.secret), modes.GCM(_bytes(nonce), _bytes(tag))).decryptor()
    cipher.authenticate_additional_data(head.encode())
    return json.loads(_bytes(head)), json.loads(cipher.update(_bytes(sealed)) + cipher.finalize())


def write_jwe(claims: object, **head: str) -> str:
    header = _text(json.dumps({"alg": "dir", "enc": "A256GCM", "kid": KEY.id, **head}).encode())
    cipher = Cipher(algorithms.AES(KEY.secret), modes.GCM(NONCE)).encryptor()
    cipher.authenticate_additional_data(header.encode())
    sealed = cipher.update(json.dumps(claims).encode()) + cipher.finalize()
    return ".".join([header, "", _text(NONCE), _text(sealed), _text(cipher.tag)])


def test_sealed_key_claims() -> None:
    head, claims = read_jwe(seal(KEY, sealed_claims("id-secret", NOW, LIFETIME), NONCE))
    assert head == {"alg": "dir", "enc": "A256GCM", "kid": "7"}
    assert (claims["iss"], claims["aud"], claims["api_key"]) == ("coderd", ["wsproxy"], "id-secret")
    assert claims["exp"] == (NOW + LIFETIME).timestamp()
    assert claims["nbf"] == NOW.timestamp() - 60, "clocks differ"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": "wsproxy"},
        {"aud": ["other", "wsproxy"]},
        {"nbf": NOW.timestamp()},
        {"exp": NOW.timestamp() + 1},
        {"more": 1},
    ],
)
async def test_valid_sealed_key_opens(changes: dict[str, Any]) -> None:
    assert await open_key_untrusted(OneKey(), NOW, write_jwe(GOOD | changes)) == "id-secret"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iss": "other"}, "another issuer or audience"),
        ({"iss": None}, "another issuer or audience"),
        ({"aud": ["other"]}, "another issuer or audience"),
        ({"aud": []}, "another issuer or audience"),
        ({"aud": "wsproxy2"}, "another issuer or audience"),
        ({"nbf": NOW.timestamp() + 1}, "not good yet"),
        ({"exp": NOW.timestamp()}, "too old"),
        ({"exp": "soon"}, "cannot be opened"),
    ],
)
async def test_every_claim_is_checked(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TokenRefused, match=words):
        await open_key_untrusted(OneKey(), NOW, write_jwe(GOOD | changes))


@pytest.mark.parametrize("missing", GOOD)
async def test_every_claim_is_required(missing: str) -> None:
    with pytest.raises(TokenRefused):
        await open_key_untrusted(OneKey(), NOW, write_jwe({name: GOOD[name] for name in GOOD if name != missing}))


@pytest.mark.parametrize("head", [{"alg": "none"}, {"enc": "A128GCM"}, {"alg": "A256KW"}])
async def test_other_encryption_is_refused(head: dict[str, str]) -> None:
    with pytest.raises(TokenRefused, match="an unexpected kind"):
        await open_key_untrusted(OneKey(), NOW, write_jwe(GOOD, **head))


@pytest.mark.parametrize("part", [0, 2, 3, 4])
async def test_no_part_can_be_changed(part: int) -> None:
    parts = write_jwe(GOOD).split(".")
    letter = "B" if parts[part][5] == "A" else "A"
    parts[part] = parts[part][:5] + letter + parts[part][6:]
    with pytest.raises(TokenRefused):
        await open_key_untrusted(OneKey(), NOW, ".".join(parts))
