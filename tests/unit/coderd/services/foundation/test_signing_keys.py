"""Signed tokens: their format for clients, and refused tokens."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from coder.base.clock import FakeClock
from coder.base.json_types import JsonObject
from coder.coderd.services.foundation.signing_keys import LIFETIME, SigningKeys, rotate_due
from coder.coderd.services.network.resume_tokens import FEATURE
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused, header_untrusted, sign, verify
from tests.kit.server.server_in_process import running_coderd

KEY = SigningKey("1", b"k" * 64)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
CLAIMS: JsonObject = {"sub": "x", "exp": int((NOW + timedelta(hours=1)).timestamp())}


def test_token_is_compact_jws() -> None:
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


def test_invalid_token_headers() -> None:
    listed = base64.urlsafe_b64encode(b"[]").decode().rstrip("=")
    with pytest.raises(TokenRefused):
        header_untrusted(f"{listed}.x.y")


async def test_unknown_key_ids_are_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = FakeClock(NOW), 0
    async with running_coderd(clock=clock) as world:
        keys, other = SigningKeys(world.ctx), SigningKeys(world.ctx)
        first = await keys.get(FEATURE)
        really = SigningKeys._read

        async def read(self: SigningKeys, feature: str) -> Any:
            nonlocal looks
            looks += 1
            return await really(self, feature)

        monkeypatch.setattr(SigningKeys, "_read", read)

        async def ask(name: str) -> None:
            assert await keys.find(FEATURE, name) == first

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(ask, f"invented-{number}")
        assert looks == 1
        clock.advance(LIFETIME.total_seconds())
        await rotate_due(world.ctx)  # by another replica
        fresh = await other.get(FEATURE)
        assert await keys.find(FEATURE, fresh.id) == fresh != first
        assert await keys.find(FEATURE, first.id) == first
