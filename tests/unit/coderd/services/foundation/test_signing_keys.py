"""Signed tokens: the shape clients see, and everything that is refused."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from coder.coderd.services.foundation.signed_tokens import SigningKey, TokenRefused, header_untrusted, sign, verify

KEY = SigningKey("1", b"k" * 64)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
CLAIMS = {"sub": "x", "exp": int((NOW + timedelta(hours=1)).timestamp())}


def test_a_token_is_a_compact_jws_with_a_key_id() -> None:
    token = sign(KEY, CLAIMS)
    head, body, _ = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS512", "kid": "1"}
    assert json.loads(base64.urlsafe_b64decode(body + "==")) == CLAIMS
    assert verify(KEY, token, NOW) == CLAIMS


def test_tokens_are_refused() -> None:
    token = sign(KEY, CLAIMS)
    head, body, signature = token.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"1"}').decode().rstrip("=")
    for wrong, text in [
        ("bad", "compact JWS format must have three parts"),
        ("a.b.c", "parse JWS"),
        (f"{head}.{body}.{signature[::-1]}", "cryptographic primitive"),
        (f"{none}.{body}.", "unexpected signature algorithm"),
        (sign(SigningKey("2", KEY.secret), CLAIMS), "key not found"),
        (sign(SigningKey("1", b"other" * 10), CLAIMS), "cryptographic primitive"),
        (sign(KEY, {"sub": "x"}), "expired"),
    ]:
        with pytest.raises(TokenRefused, match=text):
            verify(KEY, wrong, NOW)
    with pytest.raises(TokenRefused, match="expired"):
        verify(KEY, token, NOW + timedelta(hours=1))


def test_headers_that_are_no_objects() -> None:
    listed = base64.urlsafe_b64encode(b"[]").decode().rstrip("=")
    with pytest.raises(TokenRefused):
        header_untrusted(f"{listed}.x.y")
