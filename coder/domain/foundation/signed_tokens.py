"""Short-lived tokens this deployment signs: compact JWS (RFC 7515), HS512. Every holder of the key can verify them.

Pure: the time comes in as an argument. Keys come from `services/foundation/signing_keys.py`, those of a workspace proxy
from `coder/wsproxy/keys.py`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime

from coder.base.json_types import JsonObject


class TokenRefused(ValueError):  # noqa: N818 - says what happened to the token
    """A token that is foreign, malformed or expired."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    id: str
    secret: bytes


LONGEST = 8192
"""Maximum characters of a token; ours have some three hundred."""


def sign(key: SigningKey, claims: JsonObject) -> str:
    """Return a compact JWS (RFC 7515), HS512, with the key's id in its header."""
    head = _encode(json.dumps({"alg": "HS512", "kid": key.id}, separators=(",", ":")).encode())
    body = _encode(json.dumps(claims, separators=(",", ":")).encode())
    return f"{head}.{body}.{_encode(_mac(key, f'{head}.{body}'))}"


def header_untrusted(token: str) -> JsonObject:
    """Return the header of a token, unverified. Raises TokenRefused with upstream's words."""
    parts = token.split(".", 3)
    if len(parts) != 3 or len(token) > LONGEST:
        raise TokenRefused("parse JWS: go-jose/go-jose: compact JWS format must have three parts")
    return _json_untrusted(parts[0])


def verify(key: SigningKey, token: str, now: datetime) -> JsonObject:
    """Return the claims of a token signed with `key` and not expired. Raises TokenRefused."""
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
    # half a surrogate cannot come from our own signing, but a client may send one
    return hmac.new(key.secret, text.encode(errors="surrogatepass"), hashlib.sha512).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise TokenRefused("parse JWS: illegal base64 data") from None


def _json_untrusted(part: str) -> JsonObject:
    try:
        result = json.loads(_decode(part))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TokenRefused):
            raise
        raise TokenRefused("parse JWS: invalid JSON") from None
    if not isinstance(result, dict):
        raise TokenRefused("parse JWS: not an object")
    return result
