"""Admission of browsers to applications: the signed ticket, and the sealed key that crosses hosts.

A ticket is a JWS (HS512) that lives a minute and names the application and agent it opens: it is verified without a
database, by a workspace proxy as by the server. A sealed key is a JWE (RFC 7516, `dir` with A256GCM) around a
short-lived address and an API key that reaches applications only. `services/apps/app_tokens.py` creates both.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AppRequest
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused, header_untrusted, verify

if TYPE_CHECKING:
    from collections.abc import Iterable

TICKET_FEATURE = "workspace_apps_token"
KEY_FEATURE = "workspace_apps_api_key"
MAX_CANDIDATES = 4
"""Maximum cookies of one name that are verified: further ones are not worth the hashing."""
_JWE_HEAD = {"alg": "dir", "enc": "A256GCM"}
_TAG = 16


class KeyFinder(Protocol):
    """Source of this process's keys."""

    async def find(self, feature: str, key_id: str, /) -> SigningKey:
        """Return the key a token names; if it is unknown, another one, which will refuse the token."""
        ...


@dataclass(frozen=True, slots=True)
class Ticket:
    """Content of a signed app token."""

    request: AppRequest
    workspace_id: UUID
    agent_id: UUID
    app_url: str
    user_id: UUID = NIL
    """Admitted user; NIL for an anonymous visitor (of a public application)."""
    cors_behavior: str = "simple"


def ticket_claims(ticket: Ticket, expires_at: datetime) -> dict[str, Any]:
    """Return the claims to sign."""
    return {
        "request": {name: value for name, value in asdict(ticket.request).items() if value},
        "user_id": str(ticket.user_id),
        "workspace_id": str(ticket.workspace_id),
        "agent_id": str(ticket.agent_id),
        "app_url": ticket.app_url,
        "cors_behavior": ticket.cors_behavior,
        "exp": int(expires_at.timestamp()),
    }


async def find_ticket_untrusted(
    keys: KeyFinder, now: datetime, tokens: Iterable[str], request: AppRequest
) -> Ticket | None:
    """Return the first valid ticket for exactly this application among a client's tokens."""
    for number, token in enumerate(tokens):
        if number >= MAX_CANDIDATES:
            break
        try:
            found, _ = await read_ticket_untrusted(keys, now, token)
        except TokenRefused:
            continue
        if found.request == request:
            return found
    return None


async def read_ticket_untrusted(keys: KeyFinder, now: datetime, token: str) -> tuple[Ticket, float]:
    """Return the ticket, and its expiry in seconds since 1970. Raises TokenRefused."""
    key_id = header_untrusted(token).get("kid")
    claims = verify(await keys.find(TICKET_FEATURE, str(key_id)), token, now)
    try:
        fields = {str(name): str(value) for name, value in claims["request"].items()}
        names = ("access_method", "base_path", "username_or_id", "workspace_name_or_id", "agent_name_or_id")
        values: dict[str, Any] = {name: fields.get(name, "") for name in (*names, "app_slug_or_port", "app_prefix")}
        ticket = Ticket(
            AppRequest(**values),
            workspace_id=UUID(claims["workspace_id"]),
            agent_id=UUID(claims["agent_id"]),
            app_url=str(claims["app_url"]),
            user_id=UUID(claims["user_id"]),
            cors_behavior=str(claims.get("cors_behavior", "simple")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TokenRefused("validate claims: not an application token") from error
    return ticket, float(claims["exp"])


def terminal_request(agent_id: UUID) -> AppRequest:
    """Return the request that a terminal's ticket is bound to."""
    return AppRequest("terminal", f"/api/v2/workspaceagents/{agent_id}/pty", "", "", str(agent_id), "")


async def opens_terminal_untrusted(keys: KeyFinder, now: datetime, token: str, agent_id: UUID) -> Ticket | None:
    """Return the ticket, if it is valid for this agent's terminal and names a user."""
    try:
        found, _ = await read_ticket_untrusted(keys, now, token)
    except TokenRefused:
        return None
    fits = found.request == terminal_request(agent_id) and found.agent_id == agent_id
    return found if fits and found.user_id != NIL else None


_ISSUER, _AUDIENCE = "coderd", "wsproxy"
_BEFORE = timedelta(minutes=1)
"""Maximum difference between the clocks of a server and a proxy: a sealed key is valid from then on."""


def sealed_claims(api_key: str, now: datetime, lifetime: timedelta) -> dict[str, Any]:
    """Return the claims of a sealed key, which every workspace proxy checks."""
    moments = {"nbf": int((now - _BEFORE).timestamp()), "exp": int((now + lifetime).timestamp())}
    return {"iss": _ISSUER, "aud": [_AUDIENCE], **moments, "api_key": api_key}


def seal(key: SigningKey, claims: dict[str, Any], nonce: bytes) -> str:
    """Return a compact JWE. `nonce` are 12 bytes that were never used with this key."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = _encode(json.dumps({**_JWE_HEAD, "kid": key.id}, separators=(",", ":")).encode())
    sealed = AESGCM(key.secret).encrypt(nonce, json.dumps(claims).encode(), head.encode())
    return ".".join([head, "", _encode(nonce), _encode(sealed[:-_TAG]), _encode(sealed[-_TAG:])])


async def open_key_untrusted(keys: KeyFinder, now: datetime, sealed: str) -> str:
    """Return the API key inside. Raises TokenRefused."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    parts = sealed.split(".")
    if len(parts) != 5 or len(sealed) > 4096:
        raise TokenRefused("a sealed key has five parts")
    try:
        head = json.loads(_decode(parts[0]))
        if not isinstance(head, dict) or {name: head.get(name) for name in _JWE_HEAD} != _JWE_HEAD:
            raise TokenRefused("an unexpected kind of encryption")
        key = await keys.find(KEY_FEATURE, str(head.get("kid")))
        plain = AESGCM(key.secret).decrypt(_decode(parts[2]), _decode(parts[3]) + _decode(parts[4]), parts[0].encode())
        claims = json.loads(plain)
        begins, expires, api_key = float(claims["nbf"]), float(claims["exp"]), str(claims["api_key"])
        issuer, audience = claims["iss"], claims["aud"]
    except TokenRefused:
        raise
    except (InvalidTag, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TokenRefused("the sealed key cannot be opened") from error
    if issuer != _ISSUER or _AUDIENCE not in (audience if isinstance(audience, list) else [audience]):
        raise TokenRefused("the sealed key has another issuer or audience")
    if now.timestamp() < begins:
        raise TokenRefused("the sealed key is not good yet")
    if now.timestamp() >= expires:
        raise TokenRefused("the sealed key is too old")
    return api_key


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
