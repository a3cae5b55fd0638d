"""OAuth2 applications and their secrets, managed by administrators.

`oauth2_consent` and `oauth2_grants` give them access, `oauth2_clients` registers clients dynamically.
"""

from __future__ import annotations

import secrets
import string
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, Invalid, NotFound
from coder.api.login.oauth2 import PostOAuth2ProviderAppRequest, PutOAuth2ProviderAppRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import require_lasting
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login import system_oauth2
from coder.coderd.store.login.oauth2 import OAuth2AppRow as OAuth2AppRow
from coder.coderd.store.login.oauth2 import OAuth2SecretRow
from coder.domain.access.policy import Class, Object, Subject
from coder.domain.login.oauth2 import PREFIX_LENGTH, SECRET_LENGTH, join_secret, may_be_legacy

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

EXPERIMENT = "oauth2"
_NOT_FOUND = "OAuth2 application not found."
_OFF = "OAuth2 Provider Functionality functionality requires enabling the 'oauth2' experiment."
_ALPHABET = string.ascii_letters + string.digits
_KIND = "oauth2_provider_app"
_APPS = Class("oauth2_app", narrowed=True)
_SECRETS = Class("oauth2_app_secret", narrowed=True)


def _app_object(app_id: UUID) -> Object:
    return Object("oauth2_app", str(app_id))


def _secret_object(secret_id: UUID) -> Object:
    return Object("oauth2_app_secret", str(secret_id))


def require_experiment(ctx: Context) -> None:
    """Raise Forbidden unless the server was started with `--experiments oauth2` (or `*`)."""
    if not {EXPERIMENT, "*"} & set(ctx.config.experiments):
        raise Forbidden(_OFF)


def new_secret() -> tuple[str, str, str]:
    """Return (prefix, secret, text that contains both)."""
    prefix, secret = (
        "".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (PREFIX_LENGTH, SECRET_LENGTH)
    )
    return prefix, secret, join_secret(prefix, secret)


async def list_apps(ctx: Context, subject: Subject, user_id: UUID | None = None) -> list[OAuth2AppRow]:
    """List all applications, or those with a user's consent: the caller's own, or as administrator any user's."""
    require(subject, "read", _APPS)
    if user_id is not None:
        require(subject, "read", Class("oauth2_app_code_token", owner_id=user_id))
    rows = await ctx.db.read(store.list_apps, user_id)
    return [row for row in rows if may(subject, "read", _app_object(row.id))]


async def list_consents(ctx: Context, subject: Subject, user_id: UUID) -> list[tuple[OAuth2AppRow, datetime | None]]:
    """List the applications with a user's consent, each with the last use of its keys. Permissions as `list_apps`."""
    rows = await list_apps(ctx, subject, user_id)
    uses = await ctx.db.read(store.list_last_uses, user_id)
    return [(row, uses.get(row.id)) for row in rows]


async def get_app(ctx: Context, subject: Subject, app_id: UUID) -> OAuth2AppRow:
    """Load an application that the caller may read. Raises NotFound."""
    row = _require_found(await ctx.db.read(system_oauth2.get_app, app_id))
    if not may(subject, "read", _app_object(row.id)):
        raise NotFound(_NOT_FOUND)
    return row


def _require_found(row: OAuth2AppRow | None) -> OAuth2AppRow:
    if row is None:
        raise NotFound(_NOT_FOUND)
    return row


async def create_app(ctx: Context, subject: Subject, request: PostOAuth2ProviderAppRequest) -> OAuth2AppRow:
    """Create an application. Raises Forbidden."""
    await require_lasting(ctx, subject, "create", _APPS, _KIND)
    now = ctx.clock.now()
    row = OAuth2AppRow(new_uuid(), now, now, request.name, request.icon, request.callback_url, (), False, None, None)
    await ctx.db.run(store.insert_app, row)
    return row


async def update_app(
    ctx: Context, subject: Subject, app_id: UUID, request: PutOAuth2ProviderAppRequest
) -> OAuth2AppRow:
    """Change an application. Raises Forbidden, InvalidFields, NotFound."""
    row = await get_app(ctx, subject, app_id)
    check_request(request, {"name": row.name, "callback_url": row.callback_url})
    await require_lasting(ctx, subject, "update", _app_object(app_id), _KIND)
    now = ctx.clock.now()

    async def write(tx: Tx) -> OAuth2AppRow:
        await _lock(tx, app_id)
        await store.update_app(
            tx, app_id, name=request.name, callback_url=request.callback_url, icon=request.icon, updated_at=now
        )
        return await _lock(tx, app_id)

    return await ctx.db.run(write)


async def _lock(tx: Tx, app_id: UUID) -> OAuth2AppRow:
    return _require_found(await store.lock_app(tx, app_id))


async def set_legacy(ctx: Context, subject: Subject, app_id: UUID, *, legacy: bool) -> OAuth2AppRow:
    """Set whether an application may log in users without PKCE. Raises Forbidden, Invalid (a public client),
    NotFound.
    """
    await get_app(ctx, subject, app_id)
    await require_lasting(ctx, subject, "update", _app_object(app_id), _KIND)
    now = ctx.clock.now()

    async def write(tx: Tx) -> OAuth2AppRow:
        row = await _lock(tx, app_id)
        if legacy and not may_be_legacy(public_client=row.public_client):
            raise Invalid("A public client has no secret: only PKCE binds its codes to it.")
        await store.update_app(tx, app_id, legacy=legacy, updated_at=now)
        return await _lock(tx, app_id)

    return await ctx.db.run(write)


async def delete_app(ctx: Context, subject: Subject, app_id: UUID) -> None:
    row = await get_app(ctx, subject, app_id)
    require(subject, "delete", _app_object(app_id))
    await ctx.db.run(store.delete_app, row.id)


async def list_secrets(ctx: Context, subject: Subject, app_id: UUID) -> list[OAuth2SecretRow]:
    row = await get_app(ctx, subject, app_id)
    require(subject, "read", _SECRETS)
    rows = await ctx.db.read(store.list_secrets, row.id)
    return [secret for secret in rows if may(subject, "read", _secret_object(secret.id))]


async def create_secret(ctx: Context, subject: Subject, app_id: UUID) -> tuple[UUID, str]:
    """Create a secret and return (id, secret). The secret is not stored in plain."""
    row = await get_app(ctx, subject, app_id)
    await require_lasting(ctx, subject, "create", _SECRETS, _KIND)
    secret, text = secret_row(ctx, row.id)
    await ctx.db.run(store.insert_secret, secret)
    return secret.id, text


def secret_row(ctx: Context, app_id: UUID) -> tuple[OAuth2SecretRow, str]:
    """Return a row to insert and its secret."""
    prefix, secret, text = new_secret()
    row = OAuth2SecretRow(new_uuid(), app_id, ctx.clock.now(), None, prefix, hash_secret(secret), secret[-6:])
    return row, text


async def delete_secret(ctx: Context, subject: Subject, app_id: UUID, secret_id: UUID) -> None:
    row = await get_app(ctx, subject, app_id)
    require(subject, "delete", _secret_object(secret_id))
    if not await ctx.db.run(store.delete_secret, row.id, secret_id):
        raise NotFound
