"""Logging in through an identity provider: who the person is here, made or brought up to date, and a session.

A person is found by the account's id at the provider, then by e-mail; somebody who logs in another way is never taken
over. What the provider says of organizations, groups and roles is `provider_sync`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.coderd.services import keys, provider_sync, sessions, users
from coder.coderd.services.errors import Conflict, Refusal, Unauthenticated
from coder.coderd.services.oauth_exchange import Granted
from coder.coderd.services.passwords import verify_password
from coder.coderd.services.sealing import Sealer
from coder.coderd.services.signing_keys import SigningKeys, TokenRefused, sign, verify
from coder.coderd.store import keys as key_store
from coder.coderd.store import organizations as organization_store
from coder.coderd.store import user_links
from coder.coderd.store import users as user_store
from coder.coderd.store.user_links import LinkRow
from coder.coderd.store.users import UserRow
from coder.domain.identity import Person

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

CONVERSION_LIFETIME = timedelta(minutes=15)
_CONVERSION = "login_conversion"
_NAME_TRIES = 10


class LoginRefused(Refusal):
    """Shown to the person as a page: `message` is its heading."""

    kind = "forbidden"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came back from a provider."""

    login_type: str
    person: Person
    granted: Granted
    claims: Mapping[str, Any]
    "Stored for the pages about sync: `{id_token_claims, user_info_claims, merged_claims}` for OIDC."
    allow_signups: bool
    signups_disabled: str = ""
    ip: str = ""
    convert: UUID | None = None
    "The user who asked to log in this way from now on."


async def sign_in(ctx: Context, attempt: Attempt) -> str:
    """A session token. Raises LoginRefused, Unauthenticated."""
    person = attempt.person
    user = await ctx.db.read(_find, attempt)
    if attempt.convert is not None:
        user = await _converted(ctx, attempt, user)
    elif user is None:
        user = await _create(ctx, attempt)
    if user.login_type != attempt.login_type:
        raise LoginRefused(
            "Incorrect login type",
            f"Attempting to use login type {attempt.login_type!r}, but the user has the login type "
            f"{user.login_type!r}. Log in that way; the account page then offers to change it.",
        )
    if user.status == "suspended":
        raise LoginRefused("Your account is suspended", "Contact an admin to reactivate your account.")
    now = ctx.clock.now()
    sealer: Sealer = ctx.part(Sealer)
    link = LinkRow(
        user.id,
        attempt.login_type,
        person.linked_id,
        sealer.seal(attempt.granted.access),
        sealer.seal(attempt.granted.refresh),
        attempt.granted.expires_at,
        dict(attempt.claims),
    )
    row, token = keys.new_key(user.id, attempt.login_type, ctx.config.session_duration, now, ip=attempt.ip)
    changes = _changes(user, attempt, now)

    async def write(tx: Tx) -> None:
        await user_links.put_link(tx, link)
        await user_store.update_user(tx, user.id, **changes)
        if attempt.login_type == "oidc":
            await provider_sync.apply(ctx, tx, user.id, attempt.claims.get("merged_claims") or {}, now)
        await key_store.insert_key(tx, row)

    await ctx.db.run(write)
    return token


async def _find(tx: Tx, attempt: Attempt) -> UserRow | None:
    found = await user_links.find_linked_user(tx, attempt.login_type, attempt.person.linked_id)
    if found is not None:
        return await user_store.get_user(tx, found)
    user = await user_store.get_user_by_email(tx, attempt.person.email)
    if user is None or user.login_type != attempt.login_type:
        return user
    link = await user_links.get_link(tx, user.id, attempt.login_type)
    if link is not None and link.linked_id and link.linked_id != attempt.person.linked_id:
        # An address that was given to somebody else must not open the account of who had it before.
        raise LoginRefused(
            "Account belongs to somebody else",
            "Your email is that of a user who logs in with another account of the provider. Contact an admin.",
        )
    return user


def _changes(user: UserRow, attempt: Attempt, now: datetime) -> dict[str, Any]:
    person = attempt.person
    changed: dict[str, Any] = {"updated_at": now}
    if attempt.login_type == "github":
        changed["github_com_user_id"] = int(person.linked_id)
    if user.status == "dormant":
        changed["status"] = "active"
    if person.email and person.email.lower() != user.email.lower():
        changed["email"] = person.email
    if person.name and person.name != user.name:
        changed["name"] = person.name
    if person.picture and person.picture != user.avatar_url:
        changed["avatar_url"] = person.picture
    return changed


async def _create(ctx: Context, attempt: Attempt) -> UserRow:
    first = not await sessions.has_first_user(ctx)
    if not attempt.allow_signups and not first:
        raise LoginRefused(
            "Signups are disabled",
            attempt.signups_disabled or "Ask an administrator to create an account for you.",
        )
    organization = await ctx.db.read(organization_store.get_default_organization)
    for number in range(_NAME_TRIES):
        suffix = f"-{secrets.token_hex(3)}" if number else ""
        name = attempt.person.username[: 32 - len(suffix)].rstrip("-") + suffix
        wanted = users.NewUser(
            email=attempt.person.email,
            username=name,
            name=attempt.person.name,
            login_type=attempt.login_type,
            status="active",
            organization_ids=[organization.id],
            roles=["owner"] if first else [],
        )
        if await ctx.db.read(user_store.get_user_by_name, name) is not None:
            continue
        try:
            return await users.insert_user(ctx, wanted)
        except Conflict:
            continue  # somebody was faster; the next name is free
    raise LoginRefused(
        "No username is free", f"Every name like {attempt.person.username!r} is taken. Contact an admin."
    )


# ---- changing the way one logs in


async def begin_conversion(ctx: Context, user: UserRow, to_type: str, password: str) -> tuple[str, str, datetime]:
    """(state, cookie, expiry): proof for the provider's callback that the user asked. Raises Unauthenticated."""
    if not await verify_password(user.hashed_password, password) or user.login_type != "password":
        raise Unauthenticated(sessions.WRONG)
    state = f"convert-{secrets.token_urlsafe(24)}"
    now = ctx.clock.now()
    expires = now + CONVERSION_LIFETIME
    key = await ctx.part(SigningKeys).get(_CONVERSION)
    claims = {"sub": str(user.id), "to": to_type, "state": state, "exp": int(expires.timestamp())}
    return state, sign(key, claims), expires


async def conversion_of(ctx: Context, cookie: str, state: str, login_type: str) -> UUID | None:
    """The user who began a conversion with that state. Raises Unauthenticated for a cookie that does not fit."""
    if not state.startswith("convert-"):
        return None
    try:
        claims = verify(await ctx.part(SigningKeys).get(_CONVERSION), cookie, ctx.clock.now())
    except TokenRefused as error:
        raise Unauthenticated("The change of the login type has expired. Begin it anew.", str(error)) from error
    if claims.get("state") != state or claims.get("to") != login_type:
        raise Unauthenticated("The change of the login type was begun elsewhere. Begin it anew.")
    return UUID(str(claims["sub"]))


async def _converted(ctx: Context, attempt: Attempt, found: UserRow | None) -> UserRow:
    if found is not None and found.id != attempt.convert:
        raise LoginRefused("Account already linked", "Somebody else logs in with that account or has its email.")
    user = await ctx.db.read(user_store.get_user, attempt.convert) if attempt.convert else None
    if user is None:
        raise LoginRefused("No such user", "The user who asked for this does not exist any more.")

    async def write(tx: Tx) -> UserRow | None:
        # The password ends here: two ways in would be one too many to guard.
        await user_store.update_user(
            tx, user.id, login_type=attempt.login_type, hashed_password="", updated_at=ctx.clock.now()
        )
        return await user_store.get_user(tx, user.id)

    changed = await ctx.db.run(write)
    if changed is None:
        raise LoginRefused("No such user", "The user who asked for this does not exist any more.")
    return changed
