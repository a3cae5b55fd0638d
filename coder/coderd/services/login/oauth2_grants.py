"""Exchange authorization codes and refresh tokens of OAuth2 applications for tokens.

RFC 6749 sections 4.1.3 and 6, RFC 7636 (PKCE). An access token is an API key of the user with login type
`oauth2_provider_app`. Using a refresh token revokes the pair it belongs to; using it twice revokes every token of the
same consent (RFC 9700 section 4.14.2). `oauth2_consent` issues the codes, `oauth2_revocation` revokes tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.new_keys import new_key
from coder.coderd.services.login.oauth2_apps import new_secret
from coder.coderd.services.login.oauth2_client_authentication import Client, GrantError
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login.oauth2 import OAuth2AppRow, TokenRow
from coder.coderd.store.people import system_users
from coder.domain.login.oauth2 import split_secret, verifies_challenge

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

LOGIN_TYPE = key_store.APPLICATION


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens for an application. `scopes` is empty for full access."""

    user_id: UUID
    access: str
    refresh: str
    expires_at: datetime
    seconds: int
    scopes: Sequence[str]


async def exchange_code(
    ctx: Context, client: Client, *, code: str, redirect_uri: str, verifier: str, ip: str
) -> Tokens:
    """Exchange a code for tokens. Raises GrantError invalid_grant. Any faulty request uses up the code.

    A code that is used twice has leaked: its tokens are revoked (RFC 6749 section 4.1.2).
    """
    parts = split_secret(code)
    if parts is None:
        raise _refused_code()
    exchange = _Exchange(parts[0], hash_secret(parts[1]), redirect_uri, verifier)
    return _raise_refusal(await ctx.db.run(_exchange, ctx, client, exchange, ip))


def _refused_code() -> GrantError:
    return GrantError("invalid_grant", "The authorization code is invalid or expired")


@dataclass(frozen=True, slots=True)
class _Exchange:
    prefix: str
    hashed: bytes
    redirect_uri: str
    verifier: str


async def _exchange(tx: Tx, ctx: Context, client: Client, exchange: _Exchange, ip: str) -> Tokens | GrantError:
    app = await _hold(tx, client)
    user_id = await store.user_of_code(tx, exchange.prefix, exchange.hashed)
    if app is None or user_id is None:
        return _refused_code()
    await _hold_person(tx, app.id, user_id)
    row = await store.take_code(tx, exchange.prefix, exchange.hashed, ctx.clock.now())
    if row is None or row.app_id != app.id or row.expires_at <= ctx.clock.now():
        return _refused_code()
    # The redirect URI of the authorization request, or none if that had none (RFC 6749 section 4.1.3).
    if exchange.redirect_uri != row.redirect_uri and (row.redirect_uri or exchange.redirect_uri != app.callback_url):
        return _refused_code()
    if not verifies_challenge(
        row.code_challenge, exchange.verifier, legacy=app.legacy and client.secret_id is not None
    ):
        return GrantError("invalid_grant", "The PKCE code verifier is invalid")
    return await _issue(tx, ctx, client, row.user_id, row.scopes, exchange.prefix, ip) or _refused_code()


async def refresh(ctx: Context, client: Client, token: str, ip: str) -> Tokens:
    """Issue new tokens for a refresh token, which ends with its access token. Raises GrantError invalid_grant.

    Using it twice revokes every token of the same consent, because either user of the token may have stolen it.
    """
    parts = split_secret(token)
    if parts is None:
        raise _refused_token()
    return _raise_refusal(await ctx.db.run(_renew, ctx, client, parts[0], hash_secret(parts[1]), ip))


def _refused_token() -> GrantError:
    return GrantError("invalid_grant", "The refresh token is invalid or expired")


async def _renew(tx: Tx, ctx: Context, client: Client, prefix: str, hashed: bytes, ip: str) -> Tokens | GrantError:
    app = await _hold(tx, client)
    grant = await store.grant_of_token(tx, prefix, hashed, client.app.id)
    if app is None or grant is None:
        return _refused_token()
    await _hold_person(tx, app.id, grant[0])
    row = await store.renew_token(tx, prefix, hashed, app.id)
    if row is None or row.expires_at <= ctx.clock.now():
        return _refused_token()
    issued = await _issue(tx, ctx, client, row.user_id, row.scopes, row.grant_id, ip)
    if issued is None:  # the old pair is used up without a new one: also end everything derived from it
        await store.revoke_keys_made_by(tx, app.id, row.user_id)
        return _refused_token()
    return issued


async def _hold(tx: Tx, client: Client) -> OAuth2AppRow | None:
    """Return the application and lock it against deletion, if the client's proof is still valid; otherwise None.

    Deleting the application or the secret also ends the tokens issued here.
    """
    app = await store.hold_app(tx, client.app.id)
    if app is None:
        return None
    proven = app.public_client if client.secret_id is None else await store.has_secret(tx, app.id, client.secret_id)
    return app if proven else None


async def _hold_person(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """Lock the user and the consents, so that this transaction and one that ends all keys or the consent run in
    turn.
    """
    await system_users.get_user(tx, user_id, hold=True)
    await store.lock_consents(tx, app_id, user_id)


def _raise_refusal(result: Tokens | GrantError) -> Tokens:
    """Raise a refusal after the commit, so that the code or token stays used up."""
    if isinstance(result, GrantError):
        raise result
    return result


async def _issue(
    tx: Tx, ctx: Context, client: Client, user_id: UUID, granted: Sequence[str], grant_id: str, ip: str
) -> Tokens | None:
    """Issue tokens; None for a user who may not log in any more."""
    user = await key_store.find_user_with_roles(tx, user_id)
    if user is None or user.deleted or user.status == "suspended":
        return None
    app = client.app
    now = ctx.clock.now()
    lifetime = ctx.config.session_duration
    key, access = new_key(
        user_id,
        LOGIN_TYPE,
        lifetime,
        now,
        scopes=granted or ("coder:all",),
        token_name=f"{user_id}_{app.id}_oauth_session_token",
        ip=ip,
    )
    prefix, secret, text = new_secret()
    expires_at = now + ctx.config.default_oauth_refresh_lifetime
    row = TokenRow(
        prefix, hash_secret(secret), app.id, key.id, user_id, expires_at, granted, grant_id, client.secret_id
    )
    await store.delete_tokens_of(tx, app.id, user_id, renewed=True)
    await store.revoke_keys_of_older_consents(tx, app.id, user_id, grant_id)
    await key_store.insert_key(tx, key)
    await store.insert_token(tx, row)
    return Tokens(user_id, access, text, key.expires_at, int(lifetime.total_seconds()), granted)
