"""Tokens: long-lived API keys that users create, and the key that a browser hands to a CLI."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import UNSET

from coder.api.access.keys import CreateTokenRequest
from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound
from coder.base.duration import from_nanoseconds
from coder.base.ids import random_name
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.keys import key_resource, keys_of
from coder.coderd.services.access.new_keys import ANY, give_derived_key, new_key
from coder.coderd.services.foundation import object_limits
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access import system_keys
from coder.coderd.store.access.keys import KeyRow
from coder.domain.access import scopes
from coder.domain.access.policy import KeyScope, Subject

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow


async def create_session_key(ctx: Context, subject: Subject, user: UserRow, ip: str) -> str:
    """Create the key that a browser hands to a CLI: a session key with the default lifetime of a token, or the maximum.

    Raises Forbidden for a caller with a limited key, because the new key has no limits.
    """
    require(subject, "create", keys_of(user.id))
    check_reach(subject, scopes.ALL)
    lifetime = min(ctx.config.default_token_lifetime, max_lifetime(ctx.config, user.rbac_roles))
    row, token = new_key(user.id, "password", lifetime, ctx.clock.now(), ip=ip)
    await ctx.db.run(give_derived_key, user, row, subject.key_id)
    return token


async def _give_token(tx: Tx, user: UserRow, row: KeyRow, parent_id: str) -> None:
    """Insert a token within the user's limit. Raises Unauthenticated, Conflict."""
    async with object_limits.within_limit(tx, "tokens", user.id, row.created_at):
        await give_derived_key(tx, user, row, parent_id)


async def create_token(
    ctx: Context,
    subject: Subject,
    user: UserRow,
    request: CreateTokenRequest,
    ip: str,
) -> str:
    """Create a long-lived token. Raises Invalid, Conflict (name taken, too many), NotFound."""
    require(subject, "create", keys_of(user.id))
    maximum = max_lifetime(ctx.config, user.rbac_roles)
    lifetime = from_nanoseconds(request.lifetime) or min(ctx.config.default_token_lifetime, maximum)
    check_request(request)
    if lifetime > maximum:
        raise Invalid("Failed to validate create API key request.", f"lifetime must be less than {_hours(maximum)}")
    names = list(request.scopes or ()) if request.scopes is not UNSET else []
    if request.scope and not names:
        names = [request.scope]
    allow_list = list(request.allow_list) if request.allow_list is not UNSET else []
    check_reach(subject, scopes.combined(list(names) or ["coder:all"], list(allow_list) or ANY))
    row, token = new_key(
        user.id,
        "token",
        lifetime,
        ctx.clock.now(),
        scopes=list(dict.fromkeys(map(scopes.canonical, names))) or ["coder:all"],
        allow_list=allow_list or ANY,
        token_name=request.token_name or random_name(),
        ip=ip,
    )
    conflict = Conflict(
        f'A token with name "{request.token_name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
    with constraint_refusals({"ix_api_keys_token_name": conflict}):
        await ctx.db.run(_give_token, user, row, subject.key_id)
    return token


def check_reach(subject: Subject, requested: KeyScope) -> None:
    """Refuse a key with limits to create a stronger key, or anything equivalent. Raises Forbidden."""
    if subject.kind == "user" and scopes.exceeds(requested, subject.scope):
        raise Forbidden(
            "The new key would have more permissions than the key you used.",
            "Ask for scopes and an allow_list within those of your own key, or sign in without a limited token.",
        )


def _hours(value: timedelta) -> str:
    hours, seconds = divmod(int(value.total_seconds()), 3600)
    return f"{hours}h{seconds // 60}m{seconds % 60}s"


def max_lifetime(config: ServerConfig, site_roles: Collection[str]) -> timedelta:
    """Return the maximum lifetime of tokens of a user with these roles, and of everything equivalent to a token.

    It is shorter for owners, whose tokens give access to the whole site.
    """
    if "owner" in site_roles:
        return min(config.max_admin_token_lifetime, config.max_token_lifetime)
    return config.max_token_lifetime


async def list_tokens(
    ctx: Context, subject: Subject, user: UserRow, *, all_users: bool, with_expired: bool
) -> list[tuple[KeyRow, str]]:
    """List the tokens the caller may see, each with its owner's name."""
    now = None if with_expired else ctx.clock.now()
    pairs = await ctx.db.read(key_store.list_tokens, None if all_users else user.id, now)
    return [pair for pair in pairs if may(subject, "read", key_resource(pair[0].user_id, pair[0].id))]


async def get_token(ctx: Context, subject: Subject, user: UserRow, name: str) -> KeyRow:
    row = await ctx.db.read(system_keys.get_token_by_name, user.id, name)
    if row is None:
        raise NotFound
    require(subject, "read", key_resource(user.id, row.id))
    return row
