"""Resume tokens: a client that dials again keeps its peer id, so that agents keep their tunnels (tailnet-proto 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.errors import Unauthenticated
from coder.coderd.services.signed_tokens import TokenRefused, header_untrusted, sign, verify
from coder.coderd.services.signing_keys import SigningKeys

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

FEATURE = "tailnet_resume"
LIFETIME = timedelta(hours=24)
REFRESH_IN = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class ResumeToken:
    token: str
    expires_at: datetime


async def issue(ctx: Context, peer_id: UUID) -> ResumeToken:
    key = await ctx.part(SigningKeys).get(FEATURE)
    expires_at = ctx.clock.now() + LIFETIME
    claims = {"sub": str(peer_id), "exp": int(expires_at.timestamp())}
    return ResumeToken(sign(key, claims), expires_at)


async def read_untrusted(ctx: Context, token: str) -> UUID | None:
    """The peer id of a token; None for a token without a key id, which counts as no token at all.

    Raises Unauthenticated naming the field `resume_token`, whereupon clients drop it and dial without.
    """
    try:
        key_id = header_untrusted(token).get("kid")
        if not key_id:
            return None
        key = await ctx.part(SigningKeys).find(FEATURE, str(key_id))
        return UUID(str(verify(key, token, ctx.clock.now()).get("sub")))
    except ValueError as error:
        detail = str(error) if isinstance(error, TokenRefused) else "parse peerID from token"
        raise Unauthenticated(
            "Invalid resume token", f"verify payload: {detail}", [("resume_token", "Invalid resume token")]
        ) from error
