"""Tokens around applications: the signed ticket that lets a browser into one, the sealed key that crosses hosts.

A ticket is a JWS (HS512) that lives a minute and says which application of which agent it opens: whoever shows it
needs no database. A sealed key is a JWE (RFC 7516, `dir` with A256GCM) around a short-lived address and an API key
that reaches applications only. Keys are `signing_keys.py`.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.coderd.services.signing_keys import SigningKeys, TokenRefused, header_untrusted, sign, verify
from coder.domain.app_addresses import AppRequest
from coder.domain.policy import NIL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coder.coderd.services.context import Context

TICKET_FEATURE = "workspace_apps_token"
KEY_FEATURE = "workspace_apps_api_key"
TICKET_LIFETIME = timedelta(minutes=1)
SEALED_LIFETIME = timedelta(minutes=1)
"""A sealed key only has to survive one redirect."""
MAX_CANDIDATES = 4
"""A browser may send several cookies of one name; more than this many are not worth the hashing."""
_JWE_HEAD = {"alg": "dir", "enc": "A256GCM"}
_NONCE, _TAG = 12, 16


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a signed app token says."""

    request: AppRequest
    workspace_id: UUID
    agent_id: UUID
    app_url: str
    user_id: UUID = NIL
    "Who was let in; NIL is nobody in particular (a public application)."
    cors_behavior: str = "simple"


async def issue_ticket(ctx: Context, ticket: Ticket) -> tuple[str, datetime]:
    """The token and when it ends."""
    key = await ctx.part(SigningKeys).get(TICKET_FEATURE)
    expires_at = ctx.clock.now() + TICKET_LIFETIME
    request = {name: value for name, value in asdict(ticket.request).items() if value}
    claims = {
        "request": request,
        "user_id": str(ticket.user_id),
        "workspace_id": str(ticket.workspace_id),
        "agent_id": str(ticket.agent_id),
        "app_url": ticket.app_url,
        "cors_behavior": ticket.cors_behavior,
        "exp": int(expires_at.timestamp()),
    }
    return sign(key, claims), expires_at


async def find_ticket_untrusted(ctx: Context, tokens: Iterable[str], request: AppRequest) -> Ticket | None:
    """The first valid ticket for just this application among what a client shows."""
    for number, token in enumerate(tokens):
        if number >= MAX_CANDIDATES:
            break
        try:
            found = await read_ticket_untrusted(ctx, token)
        except TokenRefused:
            continue
        if found.request == request:
            return found
    return None


async def read_ticket_untrusted(ctx: Context, token: str) -> Ticket:
    """Raises TokenRefused."""
    key_id = header_untrusted(token).get("kid")
    key = await ctx.part(SigningKeys).find(TICKET_FEATURE, str(key_id))
    claims = verify(key, token, ctx.clock.now())
    try:
        wanted = {str(name): str(value) for name, value in claims["request"].items()}
        names = ("access_method", "base_path", "username_or_id", "workspace_name_or_id", "agent_name_or_id")
        values: dict[str, Any] = {name: wanted.get(name, "") for name in (*names, "app_slug_or_port", "app_prefix")}
        return Ticket(
            AppRequest(**values),
            workspace_id=UUID(claims["workspace_id"]),
            agent_id=UUID(claims["agent_id"]),
            app_url=str(claims["app_url"]),
            user_id=UUID(claims["user_id"]),
            cors_behavior=str(claims.get("cors_behavior", "simple")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TokenRefused("validate claims: not an application token") from error


async def seal_key(ctx: Context, api_key: str) -> str:
    """An API key for the query of a redirect to an application's host."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = await ctx.part(SigningKeys).get(KEY_FEATURE)
    head = _encode(json.dumps({**_JWE_HEAD, "kid": key.id}, separators=(",", ":")).encode())
    claims = {"api_key": api_key, "exp": int((ctx.clock.now() + SEALED_LIFETIME).timestamp())}
    nonce = secrets.token_bytes(_NONCE)
    sealed = AESGCM(key.secret).encrypt(nonce, json.dumps(claims).encode(), head.encode())
    return ".".join([head, "", _encode(nonce), _encode(sealed[:-_TAG]), _encode(sealed[-_TAG:])])


async def open_key_untrusted(ctx: Context, sealed: str) -> str:
    """The API key inside. Raises TokenRefused."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    parts = sealed.split(".")
    if len(parts) != 5 or len(sealed) > 4096:
        raise TokenRefused("a sealed key has five parts")
    try:
        head = json.loads(_decode(parts[0]))
        if not isinstance(head, dict) or {name: head.get(name) for name in _JWE_HEAD} != _JWE_HEAD:
            raise TokenRefused("an unexpected kind of encryption")
        key = await ctx.part(SigningKeys).find(KEY_FEATURE, str(head.get("kid")))
        plain = AESGCM(key.secret).decrypt(_decode(parts[2]), _decode(parts[3]) + _decode(parts[4]), parts[0].encode())
        claims = json.loads(plain)
        expires, api_key = float(claims["exp"]), str(claims["api_key"])
    except TokenRefused:
        raise
    except (InvalidTag, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TokenRefused("the sealed key cannot be opened") from error
    if ctx.clock.now().timestamp() >= expires:
        raise TokenRefused("the sealed key is too old")
    return api_key


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
