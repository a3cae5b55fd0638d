"""Keys this deployment signs its own short-lived tokens with: made on first use, kept in the database.

One key per feature. Not here: the tokens (`resume_tokens.py`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from coder.coderd.store import site

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

_KEY_SIZE = 64
"Bytes of an HS512 key: the size of its hash (RFC 7518 section 3.2)."


class TokenRefused(ValueError):  # noqa: N818 - says what happened to the token
    """A token that is not ours, not whole or not valid any more."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    id: str
    secret: bytes


class SigningKeys:
    """The keys of this process, read once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._keys: dict[str, SigningKey] = {}

    async def get(self, feature: str) -> SigningKey:
        found = self._keys.get(feature)
        if found is None:
            found = self._keys[feature] = await self._ctx.db.run(_ensure_key, f"signing_key:{feature}")
        return found


async def _ensure_key(tx: Tx, name: str) -> SigningKey:
    stored = await site.get_config(tx, name)
    if stored is None:
        value = {"id": "1", "secret": secrets.token_hex(_KEY_SIZE)}
        await site.put_config(tx, name, json.dumps(value))
    else:
        value = json.loads(stored)
    return SigningKey(value["id"], bytes.fromhex(value["secret"]))


def sign(key: SigningKey, claims: dict[str, Any]) -> str:
    """A compact JWS (RFC 7515), HS512, with the key's id in its header."""
    head = _encode(json.dumps({"alg": "HS512", "kid": key.id}, separators=(",", ":")).encode())
    body = _encode(json.dumps(claims, separators=(",", ":")).encode())
    return f"{head}.{body}.{_encode(_mac(key, f'{head}.{body}'))}"


def header_untrusted(token: str) -> dict[str, Any]:
    """The header of a token, unverified. Raises TokenRefused with upstream's words."""
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenRefused("parse JWS: go-jose/go-jose: compact JWS format must have three parts")
    return _json_untrusted(parts[0])


def verify(key: SigningKey, token: str, now: datetime) -> dict[str, Any]:
    """The claims of a token signed with `key` and not expired. Raises TokenRefused."""
    head = header_untrusted(token)
    if head.get("alg") != "HS512":
        raise TokenRefused("unexpected signature algorithm")
    if head.get("kid") != key.id:
        raise TokenRefused("key not found")
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_decode(signature), _mac(key, signed)):
        raise TokenRefused("verify JWS: go-jose/go-jose: error in cryptographic primitive")
    claims = _json_untrusted(signed.partition(".")[2])
    expires = claims.get("exp")
    if not isinstance(expires, int | float) or now.timestamp() >= expires:
        raise TokenRefused("validate claims: go-jose/go-jose/jwt: validation failed, token is expired (exp)")
    return claims


def _mac(key: SigningKey, text: str) -> bytes:
    return hmac.new(key.secret, text.encode(), hashlib.sha512).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise TokenRefused("parse JWS: illegal base64 data") from None


def _json_untrusted(part: str) -> dict[str, Any]:
    try:
        found = json.loads(_decode(part))
    except ValueError as error:
        if isinstance(error, TokenRefused):
            raise
        raise TokenRefused("parse JWS: invalid JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused("parse JWS: not an object")
    return found
