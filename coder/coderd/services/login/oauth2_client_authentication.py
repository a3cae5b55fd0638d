"""Authentication of OAuth2 applications by client id and secret (RFC 6749 section 2.3)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.errors import CoderError
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login import system_oauth2
from coder.coderd.store.login.oauth2 import OAuth2AppRow
from coder.domain.login.oauth2 import split_secret

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class GrantError(CoderError):
    """OAuth2 refusal, answered as `{error, error_description}`. `error` is one of RFC 6749's codes."""

    statuses = (400, 401, 403)
    "Every status of a refusal, for the API's description."

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error, description)
        self.error, self.description, self.status = error, description, status


def invalid_client() -> GrantError:
    return GrantError("invalid_client", "The client credentials are invalid", 401)


@dataclass(frozen=True, slots=True)
class Client:
    """An authenticated application."""

    app: OAuth2AppRow
    secret_id: UUID | None
    "Id of the secret it authenticated with; None for a public client without one."


async def find_app(ctx: Context, client_id: str) -> OAuth2AppRow:
    """Find the application of a client id.

    Raises GrantError: invalid_request without an id, invalid_client for an unknown or malformed one.
    """
    if not client_id:
        raise GrantError("invalid_request", "Missing client_id parameter")
    try:
        app_id = UUID(client_id)
    except ValueError:
        raise invalid_client() from None
    row = await ctx.db.read(system_oauth2.get_app, app_id)
    if row is None:
        raise invalid_client()
    return row


async def authenticate_client(ctx: Context, client_id: str, secret: str) -> Client:
    """Authenticate a client: by one of its secrets, or as a public client that sends none. Raises GrantError.

    Writes nothing, because the request is not rate limited yet.
    """
    parts = split_secret(secret)
    # Queried first, so that an unknown application causes the same queries.
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
    """Record the use of the client's secret."""
    if client.secret_id is not None:
        await ctx.db.run(store.touch_secret, client.secret_id, ctx.clock.now())


def application_account(app_id: UUID) -> str:
    """Return the account that the requests of an application are rate limited by."""
    return f"application {app_id}"


async def rate_limit_account(ctx: Context, client: Client, credential: str) -> str | None:
    """Return the rate limit account of a client that sends a code or a refresh token; None if neither is known.

    A public client is not authenticated by its id, so its requests count for the user whose consent the token stands
    for.
    """
    account = application_account(client.app.id)
    if client.secret_id is not None:
        return account
    parts = split_secret(credential)
    if parts is None:
        return None
    user_id = await ctx.db.read(_consenting_user, client.app.id, parts[0], hash_secret(parts[1]))
    return f"{account} for {user_id}" if user_id is not None else None


async def _consenting_user(tx: Tx, app_id: UUID, prefix: str, hashed: bytes) -> UUID | None:
    grant = await store.grant_of_token(tx, prefix, hashed, app_id)
    return grant[0] if grant is not None else await store.user_of_code(tx, prefix, hashed)
