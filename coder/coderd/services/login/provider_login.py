"""Logging in through an identity provider: who the person is here, made or brought up to date, and a session.

A person is found by the account's id at the provider, then by e-mail; somebody who logs in another way is never taken
over. What the provider says of organizations, groups and roles is `provider_sync`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.base.refusals import Refusal, Unauthenticated
from coder.coderd.services.access import keys
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.passwords import verify_password
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.foundation.signing_keys import SigningKeys
from coder.coderd.services.login import provider_sync, sessions
from coder.coderd.services.login.oauth_exchange import Granted
from coder.coderd.services.people import git_ssh_keys, users
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.engine.errors import IntegrityError, constraint_of
from coder.coderd.store.login import user_links
from coder.coderd.store.login.user_links import LinkRow
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.foundation.signed_tokens import TokenRefused, sign, verify
from coder.domain.login.identity import Person

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

CONVERSION_LIFETIME = timedelta(minutes=15)
_CONVERSION = "login_conversion"
CONVERT = "convert-"
"What the purpose in a conversion's state begins with; clients know that."
_RACES = frozenset(
    "ix_users_username_living ix_users_email_living pk_user_links pk_organization_members pk_group_members "
    "uq_groups_organization_id_name fk_group_members_group_id".split()
)
"""What two who sign in at the same moment may be in each other's way of, and the end of a group they come into."""
_NAME_TRIES = 10


class LoginRefused(Refusal):
    """Shown to the person as a page: `message` is its heading."""

    kind = "forbidden"


@dataclass(frozen=True, slots=True)
class Conversion:
    """Who asked to log in this way from now on, and what stands for the password that proved it."""

    user_id: UUID
    proof: str


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
    user_agent: str = ""
    convert: Conversion | None = None


async def sign_in(ctx: Context, attempt: Attempt) -> str:
    """A session token. Raises LoginRefused, Unauthenticated, Forbidden; whoever is refused leaves nothing behind."""
    if attempt.login_type == "oidc":
        provider_sync.check_allowed(ctx, _sync_claims(attempt))
    pair = None
    if attempt.convert is None and await ctx.db.read(_find, attempt) is None:
        pair = await git_ssh_keys.generate(ctx)  # may take a second: not in a transaction
    for _ in range(_NAME_TRIES):
        try:
            return await ctx.db.run(_sign_in, ctx, attempt, pair)
        except IntegrityError as error:
            if constraint_of(error) not in _RACES:
                raise
            continue  # somebody was faster; the next look sees who
    raise LoginRefused(
        "No username is free", f"Every name like {attempt.person.username!r} is taken. Contact an admin."
    )


async def _sign_in(tx: Tx, ctx: Context, attempt: Attempt, pair: git_ssh_keys.KeyPair | None) -> str:
    """All of it in one transaction: the user made, converted or found, brought up to date, and the session."""
    now = ctx.clock.now()
    user = await _find(tx, attempt)
    if user is not None:
        # As it is now, held: who is suspended at this moment must not get a session after the others have ended.
        # Locked to end what a password gave them, otherwise kept: the provider's claims may end memberships.
        converts = attempt.convert is not None
        user = await user_store.get_user(tx, user.id, lock=converts, keep=not converts)
        user = None if user is None or user.deleted else user
    if attempt.convert is not None:
        user = await _converted(tx, attempt, attempt.convert, user, now)
    elif user is None:
        user = await _create(tx, attempt, pair, now)
    if user.login_type != attempt.login_type:
        raise LoginRefused(
            "Incorrect login type",
            f"Attempting to use login type {attempt.login_type!r}, but the user has the login type "
            f"{user.login_type!r}. Log in that way; the account page then offers to change it.",
        )
    if user.status == "suspended":
        raise LoginRefused("Your account is suspended", "Contact an admin to reactivate your account.")
    changes = _changes(user, attempt, now)
    await _check_address(tx, user, changes)
    sealer = ctx.part(Sealer)
    link = LinkRow(
        user.id,
        attempt.login_type,
        attempt.person.linked_id,
        sealer.seal(attempt.granted.access),
        sealer.seal(attempt.granted.refresh),
        attempt.granted.expires_at,
        dict(attempt.claims),
    )
    lifetime = ctx.config.session_duration
    row, token = keys.new_key(user.id, attempt.login_type, lifetime, now, ip=attempt.ip, user_agent=attempt.user_agent)
    await user_links.put_link(tx, link)
    await user_store.update_user(tx, user.id, **changes)
    await user_store.wake_user(tx, user.id, now)
    if attempt.login_type == "oidc":
        await provider_sync.apply(ctx, tx, user.id, _sync_claims(attempt), now)
    await keys.insert_session(tx, row)
    return token


def _sync_claims(attempt: Attempt) -> Mapping[str, Any]:
    return attempt.claims.get("merged_claims") or {}


async def _check_address(tx: Tx, user: UserRow, changes: Mapping[str, Any]) -> None:
    taken = await user_store.get_user_by_email(tx, changes["email"]) if "email" in changes else None
    if taken is not None and taken.id != user.id:
        raise LoginRefused(
            "Email belongs to somebody else",
            "The provider gives you an email address that another user has here. Contact an admin.",
        )


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
    if person.email and person.email.lower() != user.email.lower():
        changed["email"] = person.email
    if person.name and person.name != user.name:
        changed["name"] = person.name
    if person.picture and person.picture != user.avatar_url:
        changed["avatar_url"] = person.picture
    return changed


async def _create(tx: Tx, attempt: Attempt, pair: git_ssh_keys.KeyPair | None, now: datetime) -> UserRow:
    first = not await user_store.count_users(tx)
    if first:
        # Two people may race for an empty site: the lock lets one of them be first, the other looks again.
        await user_store.lock_first_user(tx)
        first = not await user_store.count_users(tx)
    if not attempt.allow_signups and not first:
        raise LoginRefused(
            "Signups are disabled",
            attempt.signups_disabled or "Ask an administrator to create an account for you.",
        )
    if pair is None:
        raise LoginRefused("The account is gone", "It was deleted at this moment. Log in again.")
    organization = await organization_store.get_default_organization(tx)
    wanted = users.NewUser(
        email=attempt.person.email,
        username=await _free_name(tx, attempt.person.username),
        name=attempt.person.name,
        login_type=attempt.login_type,
        status="active",
        organization_ids=[organization.id],
        roles=["owner"] if first else [],
    )
    return await users.insert_in(tx, wanted, "", pair, now)


async def _free_name(tx: Tx, wanted: str) -> str:
    for number in range(_NAME_TRIES):
        suffix = f"-{secrets.token_hex(3)}" if number else ""
        name = wanted[: 32 - len(suffix)].rstrip("-") + suffix
        if await user_store.get_user_by_name(tx, name) is None:
            return name
    raise LoginRefused("No username is free", f"Every name like {wanted!r} is taken. Contact an admin.")


async def claims_of(ctx: Context, user_id: UUID) -> Mapping[str, Any]:
    """What the OpenID provider said of the user at the last login; empty before the first."""
    link = await ctx.db.read(user_links.get_link, user_id, "oidc")
    return (link.claims.get("merged_claims") or {}) if link is not None else {}


# ---- changing the way one logs in


async def begin_conversion(ctx: Context, user: UserRow, to_type: str, password: str) -> tuple[str, str, datetime]:
    """(state, cookie, expiry): proof for the provider's callback that the user asked. Raises Unauthenticated."""
    if not await verify_password(user.hashed_password, password) or user.login_type != "password":
        raise Unauthenticated(sessions.WRONG)
    state = f"{CONVERT}{to_type}.{secrets.token_urlsafe(24)}"
    now = ctx.clock.now()
    expires = now + CONVERSION_LIFETIME
    key = await ctx.part(SigningKeys).get(_CONVERSION)
    claims = {"sub": str(user.id), "to": to_type, "state": state, "by": _proof(user), "exp": int(expires.timestamp())}
    return state, sign(key, claims), expires


async def conversion_of(ctx: Context, cookie: str, state: str, login_type: str) -> Conversion | None:
    """The conversion that was begun with that state. Raises Unauthenticated for a cookie that does not fit."""
    if not state.startswith(f"{CONVERT}{login_type}."):
        return None
    return await begun_conversion(ctx, cookie, state, login_type)


async def begun_conversion(ctx: Context, cookie: str, state: str, login_type: str) -> Conversion:
    """The same for a state that must be one of a conversion. Raises Unauthenticated."""
    try:
        claims = verify(await ctx.part(SigningKeys).get(_CONVERSION), cookie, ctx.clock.now())
    except TokenRefused as error:
        raise Unauthenticated("The change of the login type has expired. Begin it anew.", str(error)) from error
    if claims.get("state") != state or claims.get("to") != login_type:
        raise Unauthenticated("The change of the login type was begun elsewhere. Begin it anew.")
    return Conversion(UUID(str(claims["sub"])), str(claims.get("by")))


def _proof(user: UserRow) -> str:
    """Stands for the password: another one makes another."""
    return hash_secret(f"{_CONVERSION} {user.id} {user.hashed_password}").hex()


async def _converted(tx: Tx, attempt: Attempt, conversion: Conversion, found: UserRow | None, now: datetime) -> UserRow:
    if found is not None and found.id != conversion.user_id:
        raise LoginRefused("Account already linked", "Somebody else logs in with that account or has its email.")
    user = await user_store.get_user(tx, conversion.user_id, lock=True)
    if user is None or user.deleted:
        raise LoginRefused("No such user", "The user who asked for this does not exist any more.")
    if user.login_type != "password":
        raise LoginRefused("Already changed", "Your login type is no longer a password. Log in the way it is now.")
    if not hmac.compare_digest(_proof(user), conversion.proof):
        raise LoginRefused("Password changed", "Your password was changed since you began. Begin anew.")
    # The password ends here, with what it opened: two ways in would be one too many to guard.
    await user_store.update_user(
        tx, user.id, login_type=attempt.login_type, hashed_password="", one_time_passcode_hash=None, updated_at=now
    )
    await key_store.delete_sessions_by(tx, user.id, "password")
    return replace(user, login_type=attempt.login_type, hashed_password="", updated_at=now)
