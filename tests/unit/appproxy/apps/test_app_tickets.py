"""Sealed keys in the forms of every workspace proxy: RFC 7516, read and written here by independent code and by
go-jose."""

from __future__ import annotations

import base64
import json
import os
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from coder.appproxy.apps.app_tickets import KEY_FEATURE, open_key_untrusted, seal, seal_wrapped, sealed_claims
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

COMPRESSED = (
    "eyJhbGciOiJBMjU2R0NNS1ciLCJlbmMiOiJBMjU2R0NNIiwiaXYiOiIxdnBhRGs1QUNhWWRvem0wIiwia2lkIjoiNyIsInRhZyI6"
    "IlVod2Uzci1BcTJGVFNMM2V5WDk1TlEiLCJ6aXAiOiJERUYifQ.f_8cuFcd-i8tbCR32znIFI-6ICRQvSC5Q9bejD9I71I.ZK2L2"
    "h-NwEyh7K5a.prMx3EHGw-U4D_nsYiz6Zu4OxIZHwoMPN6yrda2gXWh6Hy6EHyY2wPq0ncD4xUOg-nO0PdRaMOR-eNfg-jC-87fg"
    "XLnvKEYE73yD_Q0mcDc_UrTSXJdQ0MyaO7qFB6o6hVA.aOLgROvcqDgGFn9PCRcjOg"
)
PLAIN = (
    "eyJhbGciOiJBMjU2R0NNS1ciLCJlbmMiOiJBMjU2R0NNIiwiaXYiOiJLSE1yZ2VQRFJiclVtTDBTIiwia2lkIjoiNyIsInRhZyI6"
    "IjQxaHlUVDBlSDczaUFwMzdtaENibncifQ.eqB4cKsvY8XRnFq-e3gmhLrT299-3eXeZ5BWz9drA8A.ibQ5LfHPB1vpjojf.yRy6"
    "vyDhhwfJFLIbky5eDP4gmNWCi-Jo7Fk7BGLNpKqleAy5THJBIH7ibmcY062NL0t8lZ0IydbOxTgfysREy7uXP9GzY6fz_c1j2Xii"
    "ef_8GsTHB6UTUv5vi8lgR0SSRPJBMQMllw.O473oqAy49jjfSxLyoLyIg"
)
"Sealed keys that go-jose 4.1.3 wrote with KEY and the claims GOOD."


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
    """Return header and claims of a compact JWE, `dir` or A256GCMKW with A256GCM."""
    protected, wrapped, nonce, sealed, tag = token.split(".")
    head = json.loads(_bytes(protected))
    content_key = KEY.secret
    if head["alg"] == "A256GCMKW":
        content_key = _decrypted(KEY.secret, _bytes(head["iv"]), _bytes(wrapped), _bytes(head["tag"]), b"")
    else:
        assert wrapped == ""
    return head, json.loads(_decrypted(content_key, _bytes(nonce), _bytes(sealed), _bytes(tag), protected.encode()))


def _decrypted(key: bytes, nonce: bytes, sealed: bytes, tag: bytes, protected: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.GCM(nonce, tag)).decryptor()
    cipher.authenticate_additional_data(protected)
    return cipher.update(sealed) + cipher.finalize()


def _encrypted(key: bytes, nonce: bytes, plain: bytes, protected: bytes) -> tuple[bytes, bytes]:
    cipher = Cipher(algorithms.AES(key), modes.GCM(nonce)).encryptor()
    cipher.authenticate_additional_data(protected)
    return cipher.update(plain) + cipher.finalize(), cipher.tag


def write_jwe(claims: object, *, wrapped: bool = False, content_key: bytes = bytes(32), **head: Any) -> str:
    """Return a compact JWE. `head` replaces members of its header."""
    plain, key_part = json.dumps(claims).encode(), ""
    values: dict[str, Any] = {"alg": "dir", "enc": "A256GCM", "kid": KEY.id}
    if wrapped:
        encrypted_key, tag = _encrypted(KEY.secret, NONCE, content_key, b"")
        values |= {"alg": "A256GCMKW", "iv": _text(NONCE), "tag": _text(tag)}
        key_part = _text(encrypted_key)
    values |= head
    if values.get("zip"):
        deflater = zlib.compressobj(wbits=-15)
        plain = deflater.compress(plain) + deflater.flush()
    header = _text(json.dumps(values).encode())
    sealed, tag = _encrypted(content_key if wrapped else KEY.secret, NONCE, plain, header.encode())
    return ".".join([header, key_part, _text(NONCE), _text(sealed), _text(tag)])


FORMS: list[dict[str, Any]] = [{}, {"wrapped": True}, {"zip": "DEF"}, {"wrapped": True, "zip": "DEF"}]
"Forms of a sealed key that are read."


def test_sealed_key_claims() -> None:
    head, claims = read_jwe(seal(KEY, sealed_claims("id-secret", NOW, LIFETIME), NONCE))
    assert head == {"alg": "dir", "enc": "A256GCM", "kid": "7"}
    assert claims["exp"] == (NOW + LIFETIME).timestamp()
    head, claims = read_jwe(seal_wrapped(KEY, sealed_claims("id-secret", NOW, LIFETIME), os.urandom))
    assert (head["alg"], head["enc"], head["kid"]) == ("A256GCMKW", "A256GCM", "7")
    assert (claims["iss"], claims["aud"], claims["api_key"]) == ("coderd", ["wsproxy"], "id-secret")
    assert claims["exp"] == (NOW + LIFETIME).timestamp()
    assert claims["nbf"] == NOW.timestamp() - 60, "clocks differ"


def test_each_wrapped_key_is_new() -> None:
    first, second = (seal_wrapped(KEY, GOOD, os.urandom).split(".") for _ in range(2))
    assert all(one != other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("token", [COMPRESSED, PLAIN])
async def test_key_of_go_jose_opens(token: str) -> None:
    assert await open_key_untrusted(OneKey(), NOW, token) == "id-secret"


@pytest.mark.parametrize("form", FORMS)
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
async def test_valid_sealed_key_opens(changes: dict[str, Any], form: dict[str, Any]) -> None:
    assert await open_key_untrusted(OneKey(), NOW, write_jwe(GOOD | changes, **form)) == "id-secret"


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


@pytest.mark.parametrize(
    "head",
    [{"alg": "none"}, {"enc": "A128GCM"}, {"alg": "A256KW"}, {"alg": ["dir"]}, {"zip": "GZIP"}, {"crit": ["exp"]}],
)
@pytest.mark.parametrize("wrapped", [False, True])
async def test_other_encryption_is_refused(head: dict[str, Any], wrapped: bool) -> None:
    with pytest.raises(TokenRefused, match="an unexpected kind"):
        await open_key_untrusted(OneKey(), NOW, write_jwe(GOOD, wrapped=wrapped, **head))


@pytest.mark.parametrize(
    "token",
    [
        write_jwe(GOOD, wrapped=True, content_key=bytes(16)),
        write_jwe(GOOD, wrapped=True, iv=None),
        write_jwe(GOOD, wrapped=True, iv=""),
        write_jwe(GOOD, wrapped=True, tag="AAAA"),
        write_jwe(GOOD, wrapped=True, alg="dir"),
        write_jwe(GOOD, alg="A256GCMKW"),
        write_jwe(GOOD | {"more": "x" * 50_000}, wrapped=True, zip="DEF"),
    ],
)
async def test_malformed_content_key_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused, match="cannot be opened"):
        await open_key_untrusted(OneKey(), NOW, token)


@pytest.mark.parametrize(
    ("part", "wrapped"), [*((part, False) for part in (0, 2, 3, 4)), *((part, True) for part in range(5))]
)
async def test_no_part_can_be_changed(part: int, wrapped: bool) -> None:
    parts = write_jwe(GOOD, wrapped=wrapped).split(".")
    letter = "B" if parts[part][5] == "A" else "A"
    parts[part] = parts[part][:5] + letter + parts[part][6:]
    with pytest.raises(TokenRefused):
        await open_key_untrusted(OneKey(), NOW, ".".join(parts))
