"""Workspace proxies as users see them: regions in addition to this server, created here, each with a token.

Calls of the proxies are `proxy_calls.py` and `proxy_registration.py`, their health is `proxy_health.py`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from coder.api.base.refusals import Conflict, Invalid, NotFound
from coder.api.proxies.proxies import (
    CreateWorkspaceProxyRequest,
    PatchWorkspaceProxy,
    Region,
    UpdateWorkspaceProxyResponse,
    WorkspaceProxy,
    WorkspaceProxyStatus,
)
from coder.api.site.health import ProxyHealthReport
from coder.base.ids import new_uuid
from coder.base.version import BUILD_VERSION
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.apps.session_handover import app_host
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.proxies import system_workspace_proxies
from coder.coderd.store.proxies import workspace_proxies as store
from coder.coderd.store.proxies.workspace_proxies import ProxyRow
from coder.domain.access.policy import Class, Object, Subject
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_PRIMARY = "primary"
_SECRET_BYTES = 32


def primary_region(ctx: Context) -> Region:
    """Return this server as a region."""
    return Region(
        id=ctx.deployment_id,
        name=_PRIMARY,
        display_name="Default",
        icon_url="/emojis/1f3e1.png",
        healthy=True,
        path_app_url=ctx.access_url,
        wildcard_hostname=app_host(ctx),
    )


async def list_regions(ctx: Context) -> list[Region]:
    """Return the regions that serve applications: this server, and all proxies that are not only relays.

    A proxy that never registered is included as unhealthy, so that administrators see that it is missing.
    """
    proxies = [proxy_view(ctx, row) for row in await ctx.db.read(store.list_proxies) if not row.derp_only]
    return [primary_region(ctx), *(_region(proxy) for proxy in proxies)]


def _region(proxy: WorkspaceProxy) -> Region:
    return Region(**{name: getattr(proxy, name) for name in Region.__struct_fields__})


async def list_proxies(ctx: Context, subject: Subject) -> list[WorkspaceProxy]:
    """Return all proxies, the primary region first. Raises Forbidden."""
    require(subject, "read", Class("workspace_proxy", narrowed=True), hidden=False)
    return [
        proxy for proxy in await list_all_proxies(ctx) if may(subject, "read", Object("workspace_proxy", str(proxy.id)))
    ]


async def list_all_proxies(ctx: Context) -> list[WorkspaceProxy]:
    """Return the primary region and all proxies, without a check of permissions."""
    rows = await ctx.db.read(store.list_proxies)
    region = primary_region(ctx)
    primary = WorkspaceProxy(
        **{name: getattr(region, name) for name in region.__struct_fields__},
        derp_enabled=ctx.config.derp_server_enable,
        derp_only=False,
        created_at=ZERO_TIME,
        updated_at=ZERO_TIME,
        deleted=False,
        version=BUILD_VERSION,
        status=WorkspaceProxyStatus(
            status="ok", checked_at=ctx.clock.now(), report=ProxyHealthReport(errors=[], warnings=[])
        ),
    )
    return [primary, *(proxy_view(ctx, row) for row in rows)]


async def get_proxy(ctx: Context, subject: Subject, reference: str) -> WorkspaceProxy:
    return proxy_view(ctx, await _load(ctx, subject, reference, "read"))


async def _load(ctx: Context, subject: Subject, reference: str, action: str) -> ProxyRow:
    row = await ctx.db.read(system_workspace_proxies.find_proxy, reference)
    if row is None or not may(subject, "read", Object("workspace_proxy", str(row.id))):
        raise NotFound
    require(subject, action, Object("workspace_proxy", str(row.id)))
    return row


async def create_proxy(
    ctx: Context, subject: Subject, body: CreateWorkspaceProxyRequest
) -> UpdateWorkspaceProxyResponse:
    """Create a proxy; its token is in this answer only. Raises Forbidden, Invalid, Conflict."""
    require(subject, "create", Class("workspace_proxy"), hidden=False)
    await refuse_applications(ctx, subject, "workspace_proxy")
    _check_reserved(body.name)
    now = ctx.clock.now()
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    row = ProxyRow(
        id=new_uuid(),
        name=body.name,
        display_name=body.display_name,
        icon=body.icon,
        url="",
        wildcard_hostname="",
        derp_enabled=True,
        derp_only=False,
        version="",
        hashed_secret=hash_secret(secret),
        deleted=False,
        created_at=now,
        updated_at=now,
    )
    with constraint_refusals({_NAME_INDEX: _taken(body.name)}):
        await ctx.db.run(store.insert_proxy, row)
    return UpdateWorkspaceProxyResponse(proxy=proxy_view(ctx, row), proxy_token=f"{row.id}:{secret}")


async def update_proxy(
    ctx: Context, subject: Subject, reference: str, body: PatchWorkspaceProxy
) -> UpdateWorkspaceProxyResponse:
    """Change a proxy; empty fields stay as they are. Raises Forbidden, NotFound, Invalid, Conflict."""
    row = await _load(ctx, subject, reference, "update")
    if body.regenerate_token:
        await refuse_applications(ctx, subject, "workspace_proxy")
    values: ColumnValues = {
        name: getattr(body, name) for name in ("name", "display_name", "icon") if getattr(body, name)
    }
    check_request(body, {"name": row.name})
    _check_reserved(body.name or row.name)
    token = ""
    if body.regenerate_token:
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        values["hashed_secret"] = hash_secret(secret)
        token = f"{row.id}:{secret}"
    with constraint_refusals({_NAME_INDEX: _taken(body.name)}):
        await ctx.db.run(store.update_proxy, row.id, {**values, "updated_at": ctx.clock.now()})
    return UpdateWorkspaceProxyResponse(proxy=await get_proxy(ctx, subject, str(row.id)), proxy_token=token)


async def delete_proxy(ctx: Context, subject: Subject, reference: str) -> None:
    row = await _load(ctx, subject, reference, "delete")
    await ctx.db.run(store.update_proxy, row.id, {"deleted": True, "updated_at": ctx.clock.now()})


def _check_reserved(name: str) -> None:
    if name.lower() == _PRIMARY:
        raise Invalid(f'The name "{name}" is reserved for the primary region.')


_NAME_INDEX = "ix_workspace_proxies_name_living"


def _taken(name: str) -> Conflict:
    return Conflict(
        f'Workspace proxy with name "{name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


def proxy_view(ctx: Context, row: ProxyRow) -> WorkspaceProxy:
    health = ctx.services.api.proxy_health
    status = health.of(row)
    return WorkspaceProxy(
        id=row.id,
        name=row.name,
        display_name=row.display_name or row.name,
        icon_url=row.icon,
        healthy=status.status == "ok",
        path_app_url=row.url,
        wildcard_hostname=row.wildcard_hostname,
        derp_enabled=row.derp_enabled,
        derp_only=row.derp_only,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted=row.deleted,
        version=row.version,
        status=status,
    )
