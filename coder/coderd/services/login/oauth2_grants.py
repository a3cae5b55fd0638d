"""Access for applications: consent gives a code, a code gives tokens, tokens are renewed and revoked.

RFC 6749 sections 4.1 and 6, RFC 7636 (PKCE), RFC 7009 (revocation). An access token is an API key of the user with
login type `oauth2_provider_app`; using a refresh token ends the pair it belonged to, using it twice all that came of
the same consent (RFC 9700 section 4.14.2).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.base.errors import CoderError
from coder.coderd.services.access.authentication import hash_secret, split_token
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.keys import new_key
from coder.coderd.services.login.oauth2_apps import new_secret
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login.oauth2 import CodeRow, OAuth2AppRow, TokenRow
from coder.coderd.store.people import users as user_store
from coder.domain.access import scopes
from coder.domain.access.policy import Resource, Subject
from coder.domain.foundation.zero import NIL_UUID
from coder.domain.login.oauth2 import split_secret, verifier_fits

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

CODE_LIFETIME = timedelta(minutes=10)
LOGIN_TYPE = key_store.APPLICATION


class GrantError(CoderError):
    """An OAuth2 refusal: `error` is one of RFC 6749's codes. Answered as `{error, error_description}`."""

    statuses = (400, 401, 403)
    "All it is ever answered with; the API's description tells."

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error, description)
        self.error, self.description, self.status = error, description, status


def invalid_client() -> GrantError:
    return GrantError("invalid_client", "The client credentials are invalid", 401)


@dataclass(frozen=True, slots=True)
class Client:
    """An application that proved to be itself."""

    app: OAuth2AppRow
    secret_id: UUID | None
    "By which of its secrets; None for a public client that sent none."


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an application gets. `scopes` is empty for full access."""

    user_id: UUID
    access: str
    refresh: str
    expires_at: datetime
    seconds: int
    scopes: Sequence[str]


async def find_app(ctx: Context, client_id: str) -> OAuth2AppRow:
    """Raises GrantError: invalid_request without an id, invalid_client for an unknown one and what is none."""
    if not client_id:
        raise GrantError("invalid_request", "Missing client_id parameter")
    try:
        app_id = UUID(client_id)
    except ValueError:
        raise invalid_client() from None
    row = await ctx.db.read(store.get_app, app_id)
    if row is None:
        raise invalid_client()
    return row


def asked_scopes(text: str) -> tuple[str, ...]:
    """The scopes of ours among those an application asks for; none of ours means full access, as with upstream."""
    asked = {scopes.canonical(name) for name in text.split()}
    return tuple(sorted(asked & set(scopes.external()) - {"coder:all"})) if "coder:all" not in asked else ()


async def issue_code(
    ctx: Context, subject: Subject, key_id: str, app: OAuth2AppRow, *, redirect_uri: str, challenge: str, scope: str
) -> str:
    """The user consents: a code for the application's redirect address (empty: none was named), bound to a challenge.

    Raises GrantError invalid_scope where the application would reach further than the key the user shows,
    access_denied where that is an application's, which agrees to nothing for its user, and Unauthenticated where it
    has ended meanwhile: whatever ends it ends the code, too.
    """
    if subject.user_id == NIL_UUID:
        raise Unauthenticated("Only a user can let an application in.")
    require(subject, "create", Resource("oauth2_app_code_token", owner_id=subject.user_id))
    asked = asked_scopes(scope)
    if scopes.exceeds(scopes.combined(asked or ("coder:all",)), subject.scope):
        raise GrantError("invalid_scope", "The scope reaches further than the key that was used")
    prefix, secret, shown = new_secret()
    now = ctx.clock.now()
    row = CodeRow(
        prefix,
        hash_secret(secret),
        app.id,
        subject.user_id,
        now + CODE_LIFETIME,
        redirect_uri,
        challenge,
        asked,
        key_id,
    )

    async def write(tx: Tx) -> bool:
        if await store.consent_of_key(tx, key_id) is not None:
            raise GrantError("access_denied", "An application cannot let another one in")
        if await store.hold_app(tx, app.id) is None:
            return False
        user = await user_store.get_user(tx, subject.user_id, hold=True)
        if user is None or user.deleted or not await key_store.hold_key(tx, key_id):
            raise Unauthenticated("The session has ended meanwhile. Sign in again.")
        await store.lock_consents(tx, app.id, subject.user_id)
        await store.insert_code(tx, row, now)
        return True

    if not await ctx.db.run(write):
        raise invalid_client()
    return shown


async def prove_client(ctx: Context, client_id: str, secret: str) -> Client:
    """Raises GrantError unless the secret is one of the application's, or the client is public and sends none.

    Nothing is written: whoever asks is not counted yet.
    """
    parts = split_secret(secret)
    # First: as much is asked for an application that nobody knows.
    row = await ctx.db.read(store.find_secret, parts[0]) if parts else None
    app = await find_app(ctx, client_id)
    if app.public_client and not secret:
        return Client(app, None)
    if parts is None or row is None or row.app_id != app.id:
        raise invalid_client()
    if not hmac.compare_digest(row.hashed_secret, hash_secret(parts[1])):
        raise invalid_client()
    return Client(app, row.id)


async def note_use(ctx: Context, client: Client) -> None:
    """When its secret was used last."""
    if client.secret_id is not None:
        await ctx.db.run(store.touch_secret, client.secret_id, ctx.clock.now())


def application_account(app_id: UUID) -> str:
    """Whom the requests of an application are counted for."""
    return f"application {app_id}"


async def account_of(ctx: Context, client: Client, shown: str) -> str | None:
    """The same for one that shows a code or a refresh token. A public client proves nothing by its name: its requests
    are those of the person whose consent stands for what it shows. None: nobody's."""
    account = application_account(client.app.id)
    if client.secret_id is not None:
        return account
    parts = split_secret(shown)
    if parts is None:
        return None
    user_id = await ctx.db.read(_consenting, client.app.id, parts[0], hash_secret(parts[1]))
    return f"{account} for {user_id}" if user_id is not None else None


async def _consenting(tx: Tx, app_id: UUID, prefix: str, hashed: bytes) -> UUID | None:
    grant = await store.grant_of_token(tx, prefix, hashed, app_id)
    return grant[0] if grant is not None else await store.user_of_code(tx, prefix, hashed)


async def exchange_code(
    ctx: Context, client: Client, *, code: str, redirect_uri: str, verifier: str, ip: str
) -> Tokens:
    """Raises GrantError invalid_grant. Whatever is wrong with what is sent, the code is used up.

    A code that comes a second time has been seen by somebody it was not for: what it gave ends (RFC 6749 4.1.2).
    """
    parts = split_secret(code)
    if parts is None:
        raise _refused_code()
    exchange = _Exchange(parts[0], hash_secret(parts[1]), redirect_uri, verifier)
    return _given(await ctx.db.run(_exchange, ctx, client, exchange, ip))


def _refused_code() -> GrantError:
    return GrantError("invalid_grant", "The authorization code is invalid or expired")


@dataclass(frozen=True, slots=True)
class _Exchange:
    prefix: str
    hashed: bytes
    redirect_uri: str
    verifier: str


async def _exchange(tx: Tx, ctx: Context, client: Client, sent: _Exchange, ip: str) -> Tokens | GrantError:
    app = await _hold(tx, client)
    user_id = await store.user_of_code(tx, sent.prefix, sent.hashed)
    if app is None or user_id is None:
        return _refused_code()
    await _hold_person(tx, app.id, user_id)
    row = await store.take_code(tx, sent.prefix, sent.hashed, ctx.clock.now())
    if row is None or row.app_id != app.id or row.expires_at <= ctx.clock.now():
        return _refused_code()
    # What the consent was asked with, and nothing where it named none (RFC 6749 section 4.1.3).
    if sent.redirect_uri != row.redirect_uri and (row.redirect_uri or sent.redirect_uri != app.callback_url):
        return _refused_code()
    if not verifier_fits(row.code_challenge, sent.verifier, legacy=app.legacy and client.secret_id is not None):
        return GrantError("invalid_grant", "The PKCE code verifier is invalid")
    return await _issue(tx, ctx, client, row.user_id, row.scopes, sent.prefix, ip) or _refused_code()


async def refresh(ctx: Context, client: Client, token: str, ip: str) -> Tokens:
    """A new pair for a refresh token, which ends with its access token. Raises GrantError invalid_grant.

    One that comes a second time ends every pair that came of the same consent: nobody can tell who of the two stole it.
    """
    parts = split_secret(token)
    if parts is None:
        raise _refused_token()
    return _given(await ctx.db.run(_renew, ctx, client, parts[0], hash_secret(parts[1]), ip))


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
    if issued is None:  # what was given is used up and nothing comes in its place: with it ends what was made with it
        await store.end_made_by(tx, app.id, row.user_id)
        return _refused_token()
    return issued


async def _hold(tx: Tx, client: Client) -> OAuth2AppRow | None:
    """The application as it is now, if what the client proved itself by is still good. Held until the transaction
    ends: deleting it or its secret ends what we give, too."""
    app = await store.hold_app(tx, client.app.id)
    if app is None:
        return None
    proven = app.public_client if client.secret_id is None else await store.has_secret(tx, app.id, client.secret_id)
    return app if proven else None


async def _hold_person(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """Who ends all keys of the user, or what the user gave the application, waits for us, or we for them."""
    await user_store.get_user(tx, user_id, hold=True)
    await store.lock_consents(tx, app_id, user_id)


def _given(result: Tokens | GrantError) -> Tokens:
    """A refusal is raised only now: what was used up stays so."""
    if isinstance(result, GrantError):
        raise result
    return result


async def _issue(
    tx: Tx, ctx: Context, client: Client, user_id: UUID, granted: Sequence[str], grant_id: str, ip: str
) -> Tokens | None:
    """None for a user who may not sign in any more."""
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
    prefix, secret, shown = new_secret()
    until = now + ctx.config.default_oauth_refresh_lifetime
    row = TokenRow(prefix, hash_secret(secret), app.id, key.id, user_id, until, granted, grant_id, client.secret_id)
    await store.delete_tokens_of(tx, app.id, user_id, renewed=True)
    await store.end_made_of_others(tx, app.id, user_id, grant_id)
    await key_store.insert_key(tx, key)
    await store.insert_token(tx, row)
    return Tokens(user_id, access, shown, key.expires_at, int(lifetime.total_seconds()), granted)


async def revoke(ctx: Context, client: Client, token: str) -> None:
    """Ends an access or refresh token of the application; a token nobody knows is as good as revoked (RFC 7009)."""
    app, parts = client.app, split_secret(token)
    if parts is not None:
        await ctx.db.run(_revoke, app.id, parts[0], hash_secret(parts[1]))
        return
    try:
        key_id, secret = split_token(token)
    except Unauthenticated:
        return
    row = await ctx.db.read(store.find_token_of_key, key_id)
    key = await ctx.db.read(key_store.get_key, key_id)
    if row is None or key is None or row.app_id != app.id:
        return
    if hmac.compare_digest(key.hashed_secret, hash_secret(secret)):
        await ctx.db.run(store.end_grant, app.id, row.user_id, row.grant_id)


async def _revoke(tx: Tx, app_id: UUID, prefix: str, hashed: bytes) -> None:
    """One that is just being used, or was, takes what it gave with it: whoever sends it wants an end."""
    grant = await store.grant_of_token(tx, prefix, hashed, app_id)
    if grant is not None:
        await store.end_grant(tx, app_id, *grant)


async def revoke_all(ctx: Context, subject: Subject, app: OAuth2AppRow) -> None:
    """Ends all a user has given an application."""
    if subject.user_id == NIL_UUID:
        raise Unauthenticated("Only a user can lock an application out.")
    require(subject, "delete", Resource("oauth2_app_code_token", owner_id=subject.user_id))
    await ctx.db.run(store.delete_tokens_of, app.id, subject.user_id)
