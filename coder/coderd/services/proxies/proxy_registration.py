"""Registration of workspace proxies: each process of a proxy registers at intervals and deregisters when it ends."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound
from coder.api.field_rules.rules import is_http_url
from coder.api.proxies.proxies import (
    DeregisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyResponse,
    Replica,
)
from coder.api.proxies.sealed_keys import REGISTRATION_AGE
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.proxies.proxy_authentication import ProxyCaller
from coder.coderd.services.proxies.proxy_health import FIRST_REGION
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.proxies import system_workspace_proxies
from coder.coderd.store.proxies import workspace_proxies as store
from coder.coderd.store.proxies.workspace_proxies import ProxyReplicaRow, ProxyRow
from coder.domain.apps.app_addresses import explain_wildcard
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_LONGEST_URL = 1024


async def register(
    ctx: Context, caller: ProxyCaller, body: RegisterWorkspaceProxyRequest, version: str
) -> RegisterWorkspaceProxyResponse:
    """Store a process of a proxy with its `process_version`, and return keys, relay map and siblings. Raises
    Invalid."""
    _check(body)
    now = ctx.clock.now()
    row = caller.row
    replica = ProxyReplicaRow(
        id=body.replica_id,
        proxy_id=row.id,
        hostname=body.replica_hostname,
        relay_address=body.replica_relay_address,
        error=body.replica_error,
        version=version,
        created_at=now,
        updated_at=now,
    )
    values: ColumnValues = {
        "url": body.access_url.rstrip("/"),
        "wildcard_hostname": body.wildcard_hostname,
        "derp_enabled": body.derp_enabled,
        "derp_only": body.derp_only,
        "version": body.version,
    }
    changed: ColumnValues = {name: value for name, value in values.items() if getattr(row, name) != value}
    region, siblings = await ctx.db.run(_register, replica, changed, now)
    if "url" in changed or ctx.services.api.proxy_health.of(row).status != "ok":
        stored = await ctx.db.read(system_workspace_proxies.find_proxy, str(row.id))
        if stored is not None:  # check now: an administrator may wait for it to become healthy
            ctx.nursery.start_soon(_check_health, ctx, stored)
    return RegisterWorkspaceProxyResponse(
        derp_mesh_key=_mesh_key(ctx, row.id),
        derp_region_id=FIRST_REGION + region,
        derp_map=derpmap.to_json(current_map(ctx)),
        derp_force_websockets=ctx.config.derp_force_websockets,
        sibling_replicas=[_sibling(sibling, FIRST_REGION + region) for sibling in siblings],
    )


def _mesh_key(ctx: Context, proxy_id: UUID) -> str:
    """Return the key by which a proxy's relays trust each other, in hex; the server's relays do not accept it."""
    server_key = ctx.services.relay.derp.mesh_key
    return (
        hmac.new(bytes.fromhex(server_key), b"workspace proxy" + proxy_id.bytes, hashlib.sha256).hexdigest()
        if server_key
        else ""
    )


async def _check_health(ctx: Context, row: ProxyRow) -> None:
    try:
        await ctx.services.api.proxy_health.check(row)
    except Exception as error:
        # An error here would end the server's nursery.
        ctx.log.warn("the health check of a workspace proxy failed", proxy=row.name, error=error)


def _check(body: RegisterWorkspaceProxyRequest) -> None:
    faults: list[tuple[str, str]] = []
    if not is_http_url(body.access_url):
        faults.append(("access_url", "It must be a URL with http:// or https://."))
    elif "?" in body.access_url or len(body.access_url) > _LONGEST_URL:
        faults.append(("access_url", f"It must have no query, and at most {_LONGEST_URL} letters."))
    problem = explain_wildcard(body.wildcard_hostname)
    if problem:
        faults.append(("wildcard_hostname", f"Not usable: {problem}."))
    if body.derp_only and not body.derp_enabled:
        faults.append(("derp_only", "A proxy that only relays must have its relay enabled."))
    if faults:
        raise Invalid("Validation failed.", validations=faults)


async def _register(
    tx: Tx, replica: ProxyReplicaRow, changed: ColumnValues, now: datetime
) -> tuple[int, list[ProxyReplicaRow]]:
    if changed:
        await store.update_proxy(tx, replica.proxy_id, {**changed, "updated_at": now})
    if not await store.put_replica(tx, replica):
        raise Invalid("Validation failed.", validations=[("replica_id", "It is another proxy's.")])
    living = await store.list_replicas(tx, replica.proxy_id, now - REGISTRATION_AGE)
    return await store.get_region_id(tx, replica.proxy_id), [other for other in living if other.id != replica.id]


def _sibling(row: ProxyReplicaRow, region_id: int) -> Replica:
    return Replica(
        id=row.id,
        hostname=row.hostname,
        created_at=row.created_at,
        relay_address=row.relay_address,
        region_id=region_id,
        error=row.error,
        database_latency=0,
    )


async def deregister(ctx: Context, caller: ProxyCaller, body: DeregisterWorkspaceProxyRequest) -> None:
    """Delete a process of the proxy that ends. Raises NotFound."""
    if not await ctx.db.run(store.delete_replica, caller.row.id, body.replica_id):
        raise NotFound("Replica not found.")
