"""Change of a user's login type from password to an identity provider."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.base.json_types import JsonObject
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.passwords import verify_password
from coder.coderd.services.login import sessions
from coder.coderd.store.people.users import UserRow
from coder.domain.foundation.signed_tokens import TokenRefused, sign, verify

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context


CONVERSION_LIFETIME = timedelta(minutes=15)
_CONVERSION = "login_conversion"
CONVERT = "convert-"
"Prefix of a conversion's state; clients know it."


@dataclass(frozen=True, slots=True)
class Conversion:
    """User who requested the new login type, and a proof derived from the password they entered."""

    user_id: UUID
    proof: str


async def begin_conversion(ctx: Context, user: UserRow, to_type: str, password: str) -> tuple[str, str, datetime]:
    """Return (state, cookie, expiry): proof for the provider's callback that the user asked. Raises Unauthenticated."""
    if not await verify_password(user.hashed_password, password) or user.login_type != "password":
        raise Unauthenticated(sessions.INCORRECT_CREDENTIALS)
    state = f"{CONVERT}{to_type}.{secrets.token_urlsafe(24)}"
    now = ctx.clock.now()
    expires = now + CONVERSION_LIFETIME
    key = await ctx.services.signing_keys.get(_CONVERSION)
    claims: JsonObject = {
        "sub": str(user.id),
        "to": to_type,
        "state": state,
        "by": proof_of(user),
        "exp": int(expires.timestamp()),
    }
    return state, sign(key, claims), expires


async def conversion_of(ctx: Context, cookie: str, state: str, login_type: str) -> Conversion | None:
    """Return the conversion begun with `state`, or None for another state. Raises Unauthenticated if the cookie does
    not match.
    """
    if not state.startswith(f"{CONVERT}{login_type}."):
        return None
    return await begun_conversion(ctx, cookie, state, login_type)


async def begun_conversion(ctx: Context, cookie: str, state: str, login_type: str) -> Conversion:
    """Return the conversion of a state that must belong to one. Raises Unauthenticated."""
    try:
        claims = verify(await ctx.services.signing_keys.get(_CONVERSION), cookie, ctx.clock.now())
    except TokenRefused as error:
        raise Unauthenticated("The change of the login type has expired. Start again.", str(error)) from error
    if claims.get("state") != state or claims.get("to") != login_type:
        raise Unauthenticated("The change of the login type was started elsewhere. Start again.")
    return Conversion(UUID(str(claims["sub"])), str(claims.get("by")))


def proof_of(user: UserRow) -> str:
    """Return a value derived from the password's hash: it changes with the password."""
    return hash_secret(f"{_CONVERSION} {user.id} {user.hashed_password}").hex()
