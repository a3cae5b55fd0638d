"""Applications of the OAuth2 provider, and its setting: for administrators, and for users with a consent."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET
from quart import Blueprint, Response

from coder.api.login.oauth2 import (
    OAuth2AppEndpoints,
    OAuth2LegacyClient,
    OAuth2ProviderApp,
    OAuth2ProviderAppSecret,
    OAuth2ProviderAppSecretFull,
    OAuth2ProviderSettings,
    PostOAuth2ProviderAppRequest,
    PutOAuth2ProviderAppRequest,
)
from coder.coderd.http.login.oauth2_refusals import experimental
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.login import oauth2_apps, oauth2_settings
from coder.coderd.services.login.oauth2_apps import OAuth2AppRow
from coder.domain.foundation.zero import NIL_UUID

blueprint = Blueprint("oauth2_apps", __name__)

_API = "/api/v2/oauth2-provider"


@route(
    blueprint, "GET", f"{_API}/apps", scope="oauth2_app:read", query={"user_id": UUID}, answers=list[OAuth2ProviderApp]
)
@experimental
async def get_apps() -> Response:
    """Return all applications, or those a user consented to (only its own list, except for administrators)."""
    query = Query()
    user = query.uuid("user_id")
    query.check()
    if user is None or user == NIL_UUID:
        return reply([_view(row) for row in await oauth2_apps.list_apps(context(), subject())])
    consents = await oauth2_apps.list_consents(context(), subject(), user)
    return reply([_view(row, used) for row, used in consents])


@route(
    blueprint,
    "POST",
    f"{_API}/apps",
    scope="oauth2_app:create",
    body=PostOAuth2ProviderAppRequest,
    required=("name", "callback_url"),
    answers=OAuth2ProviderApp,
    status=201,
    audit=Audited("oauth2_provider_app", "create", "body:id"),
)
@experimental
async def post_app() -> Response:
    body = await read_body(PostOAuth2ProviderAppRequest)
    row = await oauth2_apps.create_app(context(), subject(), body)
    return reply(_view(row), 201)


@route(blueprint, "GET", f"{_API}/apps/<id:app>", scope="oauth2_app:read", answers=OAuth2ProviderApp)
@experimental
async def get_app(app: str) -> Response:
    return reply(_view(await oauth2_apps.get_app(context(), subject(), path_uuid(app))))


@route(
    blueprint,
    "PUT",
    f"{_API}/apps/<id:app>",
    scope="oauth2_app:update",
    body=PutOAuth2ProviderAppRequest,
    required=("name", "callback_url"),
    answers=OAuth2ProviderApp,
    audit=Audited("oauth2_provider_app", "write"),
)
@experimental
async def put_app(app: str) -> Response:
    body = await read_body(PutOAuth2ProviderAppRequest)
    row = await oauth2_apps.update_app(context(), subject(), path_uuid(app), body)
    return reply(_view(row))


@route(
    blueprint,
    "DELETE",
    f"{_API}/apps/<id:app>",
    scope="oauth2_app:delete",
    status=204,
    audit=Audited("oauth2_provider_app", "delete"),
)
@experimental
async def delete_app(app: str) -> Response:
    await oauth2_apps.delete_app(context(), subject(), path_uuid(app))
    return no_content()


@route(
    blueprint,
    "GET",
    f"{_API}/apps/<id:app>/secrets",
    scope="oauth2_app_secret:read",
    answers=list[OAuth2ProviderAppSecret],
)
@experimental
async def get_secrets(app: str) -> Response:
    rows = await oauth2_apps.list_secrets(context(), subject(), path_uuid(app))
    return reply(
        [
            OAuth2ProviderAppSecret(
                id=row.id, last_used_at=row.last_used_at, client_secret_truncated=row.display_secret
            )
            for row in rows
        ]
    )


@route(
    blueprint,
    "POST",
    f"{_API}/apps/<id:app>/secrets",
    scope="oauth2_app_secret:create",
    answers=OAuth2ProviderAppSecretFull,
    status=201,
    audit=Audited("oauth2_provider_app_secret", "create", "body:id"),
)
@experimental
async def post_secret(app: str) -> Response:
    """Create a secret; return its id and the secret, which is never shown again."""
    secret_id, secret = await oauth2_apps.create_secret(context(), subject(), path_uuid(app))
    return reply(OAuth2ProviderAppSecretFull(id=secret_id, client_secret_full=secret), 201)


@route(
    blueprint,
    "DELETE",
    f"{_API}/apps/<id:app>/secrets/<id:secret>",
    scope="oauth2_app_secret:delete",
    status=204,
    audit=Audited("oauth2_provider_app_secret", "delete", "path:1"),
)
@experimental
async def delete_secret(app: str, secret: str) -> Response:
    await oauth2_apps.delete_secret(context(), subject(), path_uuid(app), path_uuid(secret))
    return no_content()


@route(blueprint, "GET", f"{_API}/apps/<id:app>/legacy", scope="oauth2_app:read", answers=OAuth2LegacyClient)
@experimental
async def get_legacy(app: str) -> Response:
    """Return whether an application may sign users in without PKCE (ours)."""
    return reply(OAuth2LegacyClient((await oauth2_apps.get_app(context(), subject(), path_uuid(app))).legacy))


@route(
    blueprint,
    "PUT",
    f"{_API}/apps/<id:app>/legacy",
    scope="oauth2_app:update",
    body=OAuth2LegacyClient,
    answers=OAuth2LegacyClient,
    audit=Audited("oauth2_provider_app", "write"),
)
@experimental
async def put_legacy(app: str) -> Response:
    body = await read_body(OAuth2LegacyClient)
    row = await oauth2_apps.set_legacy(context(), subject(), path_uuid(app), legacy=body.legacy)
    return reply(OAuth2LegacyClient(row.legacy))


@route(blueprint, "GET", f"{_API}/settings", scope="deployment_config:read", answers=OAuth2ProviderSettings)
@experimental
async def get_settings() -> Response:
    allowed = await oauth2_settings.read_settings(context(), subject())
    return reply(OAuth2ProviderSettings(dynamic_client_registration_enabled=allowed))


@route(
    blueprint,
    "PUT",
    f"{_API}/settings",
    scope="deployment_config:update",
    body=OAuth2ProviderSettings,
    answers=OAuth2ProviderSettings,
    audit=Audited("oauth2_provider_settings", "write", "", settings=oauth2_settings.audited_settings),
)
@experimental
async def put_settings() -> Response:
    """Change the settings; None keeps a setting."""
    body = await read_body(OAuth2ProviderSettings)
    enabled = body.dynamic_client_registration_enabled
    allowed = await oauth2_settings.change_settings(context(), subject(), None if enabled is UNSET else bool(enabled))
    return reply(OAuth2ProviderSettings(dynamic_client_registration_enabled=allowed))


def _view(row: OAuth2AppRow, last_used: datetime | None = None) -> OAuth2ProviderApp:
    base = context().access_url
    return OAuth2ProviderApp(
        id=row.id,
        name=row.name,
        callback_url=row.callback_url,
        icon=row.icon,
        endpoints=OAuth2AppEndpoints(
            authorization=f"{base}/oauth2/authorize",
            token=f"{base}/oauth2/tokens",
            token_revoke=f"{base}/oauth2/revoke",
            device_authorization="",
        ),
        last_used=UNSET if last_used is None else last_used,
    )
