"""A user's consent, and the authorization code it gives an application (RFC 6749 section 4.1.2)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.api.base.refusals import Unauthenticated
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.authorization import require
from coder.coderd.services.login.oauth2_apps import new_secret
from coder.coderd.services.login.oauth2_client_authentication import GrantError, invalid_client
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as store
from coder.coderd.store.login.oauth2 import CodeRow, OAuth2AppRow
from coder.coderd.store.people import system_users
from coder.domain.access import scopes
from coder.domain.access.build_tokens import NARROWED
from coder.domain.access.policy import Class, Subject
from coder.domain.foundation.zero import NIL_UUID

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


CODE_LIFETIME = timedelta(minutes=10)


def requested_scopes(text: str) -> tuple[str, ...]:
    """Return the scopes of the request that exist here. Without any, the application gets full access, as upstream
    does.
    """
    requested = {scopes.canonical(name) for name in text.split()}
    return tuple(sorted(requested & set(scopes.external()) - {"coder:all"})) if "coder:all" not in requested else ()


async def issue_code(
    ctx: Context, subject: Subject, key_id: str, app: OAuth2AppRow, *, redirect_uri: str, challenge: str, scope: str
) -> str:
    """Issue a code for the application's redirect URI (empty: the request had none), bound to the PKCE challenge.

    Raises GrantError invalid_scope when the application would reach further than the caller's key, access_denied for an
    application's key, which cannot consent for its user, and Unauthenticated when the key has ended meanwhile. Ending
    the key also ends the code.
    """
    if subject.user_id == NIL_UUID:
        raise Unauthenticated("Only a user can authorize an application.")
    require(subject, "create", Class("oauth2_app_code_token", owner_id=subject.user_id))
    if subject.narrowed_to is not None:
        raise GrantError("access_denied", f"Session tokens of workspaces cannot authorize applications: {NARROWED}")
    requested = requested_scopes(scope)
    if scopes.exceeds(scopes.combined(requested or ("coder:all",)), subject.scope):
        raise GrantError("invalid_scope", "The scope exceeds that of the key that was used")
    prefix, secret, text = new_secret()
    now = ctx.clock.now()
    row = CodeRow(
        prefix,
        hash_secret(secret),
        app.id,
        subject.user_id,
        now + CODE_LIFETIME,
        redirect_uri,
        challenge,
        requested,
        key_id,
    )

    async def write(tx: Tx) -> bool:
        if await store.consent_of_key(tx, key_id) is not None:
            raise GrantError("access_denied", "An application cannot authorize another application")
        if await store.hold_app(tx, app.id) is None:
            return False
        user = await system_users.get_user(tx, subject.user_id, hold=True)
        if user is None or user.deleted or not await key_store.hold_key(tx, key_id):
            raise Unauthenticated("The session has ended meanwhile. Sign in again.")
        await store.lock_consents(tx, app.id, subject.user_id)
        await store.insert_code(tx, row, now)
        return True

    if not await ctx.db.run(write):
        raise invalid_client()
    return text
