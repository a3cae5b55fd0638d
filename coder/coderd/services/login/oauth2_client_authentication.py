"""Authentication of OAuth2 applications by client id and secret (RFC 6749 section 2.3)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.errors import CoderError
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login.oauth2 import OAuth2AppRow
from coder.domain.login.oauth2 import split_secret

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


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
