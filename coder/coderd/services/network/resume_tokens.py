"""Resume tokens: a client that dials again keeps its peer id, so that agents keep their tunnels.

Source: docs/protocol/coordination.md#resume-tokens.

A token is useless to others: it is bound to the user, to the session that got it and to the node's keys. A token
restores a peer id and no permission: each tunnel is requested and checked again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.base.json_types import JsonObject
from coder.domain.foundation.signed_tokens import TokenRefused, header_untrusted, sign, verify

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FEATURE = "tailnet_resume"
LIFETIME = timedelta(hours=24)
REFRESH_IN = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class ResumeBinding:
    """User, session and keys that a token is bound to."""

    user_id: UUID
    session: str
    "Id of the API key."
    keys: str = ""
    "Digest of the node's keys, see `digest_of`; empty before the node announced keys."


@dataclass(frozen=True, slots=True)
class ResumeToken:
    token: str
    expires_at: datetime


def digest_of(keys: tuple[bytes, ...]) -> str:
    """Return the digest of a node's keys for a token; empty for no keys."""
    return hashlib.sha256(b"".join(keys)).hexdigest() if keys else ""


async def issue(ctx: Context, peer_id: UUID, binding: ResumeBinding) -> ResumeToken:
    key = await ctx.services.signing_keys.get(FEATURE)
    expires_at = ctx.clock.now() + LIFETIME
    claims: JsonObject = {
        "sub": str(peer_id),
        "exp": int(expires_at.timestamp()),
        "user": str(binding.user_id),
        "session": binding.session,
        "keys": binding.keys,
    }
    return ResumeToken(sign(key, claims), expires_at)


async def read_untrusted(ctx: Context, token: str, caller: ResumeBinding) -> tuple[UUID, str] | None:
    """Return the peer id of a token and the digest of its keys; None for a token without a key id, which is ignored.

    Raises Unauthenticated naming the field `resume_token`, whereupon clients drop the token and dial without it. A
    token of another user or session than `caller`'s is refused in the same way.
    """
    try:
        key_id = header_untrusted(token).get("kid")
        if not key_id:
            return None
        key = await ctx.services.signing_keys.find(FEATURE, str(key_id))
        claims = verify(key, token, ctx.clock.now())
        if (claims.get("user"), claims.get("session")) != (str(caller.user_id), caller.session):
            raise TokenRefused("the token was given to another session")
        return UUID(str(claims.get("sub"))), str(claims.get("keys", ""))
    except ValueError as error:
        detail = str(error) if isinstance(error, TokenRefused) else "parse peerID from token"
        raise Unauthenticated(
            "Invalid resume token", f"verify payload: {detail}", [("resume_token", "Invalid resume token")]
        ) from error
