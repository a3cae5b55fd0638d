"""Admission of browsers to applications: the signed ticket, and the sealed key that crosses hosts.

A ticket is a JWS (HS512) that lives a minute and names the application and agent it opens: it is verified without a
database, by a workspace proxy as by the server. A sealed key is a JWE (RFC 7516) around a short-lived address and an
API key that reaches applications only. `services/apps/app_tokens.py` creates both.

The original reads and writes sealed keys with a wrapped content key (A256GCMKW, RFC 7518 section 4.7) and compresses
them (`zip`). Version 2.34.0 of this project reads and writes `dir` only. Both are read here; `seal` and `seal_wrapped`
write one each.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from coder.base.json_types import JsonObject, as_text
from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AccessMethod, AppRequest
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused, header_untrusted, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TICKET_FEATURE = "workspace_apps_token"
KEY_FEATURE = "workspace_apps_api_key"
MAX_CANDIDATES = 4
"""Maximum cookies of one name that are verified: further ones are not worth the hashing."""
DIRECT, WRAPPED = "dir", "A256GCMKW"
"Key management algorithms: the shared key encrypts the content, or a content key that the token brings."
_METHODS: dict[str, AccessMethod] = {"path": "path", "subdomain": "subdomain", "terminal": "terminal"}
_ENCRYPTION = "A256GCM"
_KEY_SIZE, _NONCE_SIZE, _TAG_SIZE = 32, 12, 16
"Bytes of A256GCM's key, nonce and tag."
_MAX_SEALED, _MAX_PLAIN = 4096, 16 << 10
"Characters of a sealed key, and bytes of its decompressed claims (ours)."


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
    key_id: str = ""
    """API key that requested the ticket; empty for an anonymous visitor, and in tickets of other implementations."""


def ticket_claims(ticket: Ticket, expires_at: datetime) -> JsonObject:
    """Return the claims to sign."""
    claims: JsonObject = {
        "request": {name: value for name, value in asdict(ticket.request).items() if value},
        "user_id": str(ticket.user_id),
        "workspace_id": str(ticket.workspace_id),
        "agent_id": str(ticket.agent_id),
        "app_url": ticket.app_url,
        "cors_behavior": ticket.cors_behavior,
        "exp": int(expires_at.timestamp()),
    }
    return {**claims, "key_id": ticket.key_id} if ticket.key_id else claims


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
        named = claims["request"]
        if not isinstance(named, dict):
            raise TypeError("a request is an object")
        fields = {str(name): str(value) for name, value in named.items()}
        ticket = Ticket(
            AppRequest(
                access_method=_METHODS[fields["access_method"]],
                base_path=fields.get("base_path", ""),
                username_or_id=fields.get("username_or_id", ""),
                workspace_name_or_id=fields.get("workspace_name_or_id", ""),
                agent_name_or_id=fields.get("agent_name_or_id", ""),
                app_slug_or_port=fields.get("app_slug_or_port", ""),
                app_prefix=fields.get("app_prefix", ""),
            ),
            workspace_id=UUID(as_text(claims["workspace_id"])),
            agent_id=UUID(as_text(claims["agent_id"])),
            app_url=str(claims["app_url"]),
            user_id=UUID(as_text(claims["user_id"])),
            cors_behavior=str(claims.get("cors_behavior", "simple")),
            key_id=str(claims.get("key_id", "")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TokenRefused("validate claims: not an application token") from error
    expires = claims["exp"]
    return ticket, float(expires) if isinstance(expires, int | float) else 0.0


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


def sealed_claims(api_key: str, now: datetime, lifetime: timedelta) -> JsonObject:
    """Return the claims of a sealed key, which every workspace proxy checks."""
    moments = {"nbf": int((now - _BEFORE).timestamp()), "exp": int((now + lifetime).timestamp())}
    return {"iss": _ISSUER, "aud": [_AUDIENCE], **moments, "api_key": api_key}


def seal(key: SigningKey, claims: JsonObject, nonce: bytes) -> str:
    """Return a compact JWE with `dir`. `nonce` are 12 bytes that were never used with this key."""
    return _seal(key, claims, {"alg": DIRECT}, "", key.secret, nonce)


def seal_wrapped(key: SigningKey, claims: JsonObject, random: Callable[[int], bytes]) -> str:
    """Return a compact JWE with A256GCMKW. `random` returns that many random bytes."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    content_key, nonce = random(_KEY_SIZE), random(_NONCE_SIZE)
    wrapped = AESGCM(key.secret).encrypt(nonce, content_key, None)
    head = {"alg": WRAPPED, "iv": _encode(nonce), "tag": _encode(wrapped[-_TAG_SIZE:])}
    return _seal(key, claims, head, _encode(wrapped[:-_TAG_SIZE]), content_key, random(_NONCE_SIZE))


def _seal(
    key: SigningKey, claims: JsonObject, head: dict[str, str], wrapped: str, content_key: bytes, nonce: bytes
) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    protected = _encode(json.dumps({**head, "enc": _ENCRYPTION, "kid": key.id}, separators=(",", ":")).encode())
    sealed = AESGCM(content_key).encrypt(nonce, json.dumps(claims).encode(), protected.encode())
    return ".".join([protected, wrapped, _encode(nonce), _encode(sealed[:-_TAG_SIZE]), _encode(sealed[-_TAG_SIZE:])])


async def open_key_untrusted(keys: KeyFinder, now: datetime, sealed: str) -> str:
    """Return the API key inside. Raises TokenRefused."""
    from cryptography.exceptions import InvalidTag

    parts = sealed.split(".")
    if len(parts) != 5 or len(sealed) > _MAX_SEALED:
        raise TokenRefused("a sealed key has five parts")
    try:
        head = json.loads(_decode(parts[0]))
        if not isinstance(head, dict) or not _is_known_encryption(head):
            raise TokenRefused("an unexpected kind of encryption")
        key = await keys.find(KEY_FEATURE, str(head.get("kid")))
        claims = json.loads(_decrypted(key, head, parts))
        begins, expires, api_key = float(claims["nbf"]), float(claims["exp"]), str(claims["api_key"])
        issuer, audience = claims["iss"], claims["aud"]
    except TokenRefused:
        raise
    except (InvalidTag, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise TokenRefused("the sealed key cannot be opened") from error
    if issuer != _ISSUER or _AUDIENCE not in (audience if isinstance(audience, list) else [audience]):
        raise TokenRefused("the sealed key has another issuer or audience")
    if now.timestamp() < begins:
        raise TokenRefused("the sealed key is not good yet")
    if now.timestamp() >= expires:
        raise TokenRefused("the sealed key is too old")
    return api_key


def _is_known_encryption(head: JsonObject) -> bool:
    is_known = head.get("alg") in (DIRECT, WRAPPED) and head.get("enc") == _ENCRYPTION
    return is_known and head.get("zip") in (None, "DEF") and "crit" not in head


def _decrypted(key: SigningKey, head: JsonObject, parts: list[str]) -> bytes:
    """Return the content. Raises InvalidTag, ValueError, KeyError, TypeError, zlib.error."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    content_key = key.secret
    if head["alg"] == WRAPPED:
        content_key = AESGCM(key.secret).decrypt(
            _decode(as_text(head["iv"])), _decode(parts[1]) + _decode(as_text(head["tag"])), None
        )
        if len(content_key) != _KEY_SIZE:
            raise ValueError("a content key of another size")
    elif parts[1]:
        raise ValueError("a content key that the algorithm does not have")
    plain = AESGCM(content_key).decrypt(_decode(parts[2]), _decode(parts[3]) + _decode(parts[4]), parts[0].encode())
    if head.get("zip") is None:
        return plain
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # RFC 7516 section 4.1.3: DEFLATE without a header
    plain = inflater.decompress(plain, _MAX_PLAIN)
    if not inflater.eof:
        raise ValueError("more content than a sealed key has")
    return plain


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
