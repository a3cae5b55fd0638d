"""Log in a user through an identity provider.

`provider_accounts` finds, creates or updates the user, `provider_sync` applies the provider's organizations, groups
and roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden
from coder.base.json_types import Json, as_object
from coder.coderd.services.access import new_keys
from coder.coderd.services.login import provider_sync
from coder.coderd.services.login.provider_accounts import (
    NAME_TRIES,
    Attempt,
    LoginRefused,
    account_changes,
    check_address,
    convert_account,
    create_account,
    find_account,
)
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.store.engine.errors import IntegrityError, constraint_of
from coder.coderd.store.login import user_links
from coder.coderd.store.login.user_links import LinkRow
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.domain.login import identity

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_CONSTRAINTS_OF_CONCURRENT_LOGINS = frozenset(
    "ix_users_username_living ix_users_email_living pk_user_links pk_organization_members pk_group_members "
    "uq_groups_organization_id_name fk_group_members_group_id".split()
)
"""Constraints that two concurrent logins may violate, and that of a group deleted meanwhile."""


async def sign_in(ctx: Context, attempt: Attempt) -> str:
    """Log in and return a session token. Raises LoginRefused, Unauthenticated, Forbidden; a refusal changes nothing."""
    if attempt.login_type == "oidc":
        _check_allowed(ctx, _sync_claims(attempt))
    pair = None
    if attempt.convert is None and await ctx.db.read(find_account, attempt) is None:
        pair = await git_ssh_keys.generate(ctx)  # may take a second, so not in a transaction
    for _ in range(NAME_TRIES):
        try:
            return await ctx.db.run(_sign_in, ctx, attempt, pair)
        except IntegrityError as error:
            if constraint_of(error) not in _CONSTRAINTS_OF_CONCURRENT_LOGINS:
                raise
            continue  # a concurrent login was faster; the next try sees its rows
    raise LoginRefused(
        "No username is available", f"Every name like {attempt.person.username!r} is taken. Contact an admin."
    )


async def _sign_in(tx: Tx, ctx: Context, attempt: Attempt, pair: git_ssh_keys.KeyPair | None) -> str:
    """Find, create or convert the user, apply the provider's claims and insert a session, in one transaction."""
    now = ctx.clock.now()
    user = await find_account(tx, attempt)
    if user is not None:
        # Lock the current row: a user who is being suspended must not get a session after the others have ended. A
        # conversion takes the write lock, to end sessions opened by password. Otherwise the row is only kept, because
        # the provider's claims may end memberships.
        converts = attempt.convert is not None
        user = await system_users.get_user(tx, user.id, lock=converts, keep=not converts)
        user = None if user is None or user.deleted else user
    if attempt.convert is not None:
        user = await convert_account(tx, attempt, attempt.convert, user, now)
    elif user is None:
        user = await create_account(tx, attempt, pair, now)
    if user.login_type != attempt.login_type:
        raise LoginRefused(
            "Incorrect login type",
            f"Attempting to use login type {attempt.login_type!r}, but the user has the login type "
            f"{user.login_type!r}. Log in that way; the account page then offers to change it.",
        )
    if user.status == "suspended":
        raise LoginRefused("Your account is suspended", "Contact an admin to reactivate your account.")
    changes = account_changes(user, attempt, now)
    await check_address(tx, user, changes)
    sealer = ctx.services.sealer
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
    row, token = new_keys.new_key(
        user.id, attempt.login_type, lifetime, now, ip=attempt.ip, user_agent=attempt.user_agent
    )
    await user_links.put_link(tx, link)
    await user_store.update_user(tx, user.id, **changes)
    await user_store.wake_user(tx, user.id, now)
    if attempt.login_type == "oidc":
        await provider_sync.apply(ctx, tx, user.id, _sync_claims(attempt), now)
    await new_keys.insert_session(tx, row)
    return token


def _sync_claims(attempt: Attempt) -> Mapping[str, Json]:
    return as_object(attempt.claims.get("merged_claims"))


async def claims_of(ctx: Context, user_id: UUID) -> Mapping[str, Json]:
    """Return the OpenID provider's claims about a user at the last login; empty before the first login."""
    link = await ctx.db.read(user_links.get_link, user_id, "oidc")
    return as_object(link.claims.get("merged_claims")) if link is not None else {}


def _check_allowed(ctx: Context, claims: Mapping[str, Json]) -> None:
    """Raise Forbidden when only members of certain groups may log in and the user is in none of them."""
    allowed = ctx.config.oidc_allowed_groups
    if allowed and not set(identity.words_of(claims, ctx.config.oidc_group_field)) & set(allowed):
        raise Forbidden("You are not in an allowed group.", "Ask an administrator to be added to one.")
