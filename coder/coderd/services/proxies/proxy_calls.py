"""What workspace proxies say and ask: that they live, keys to check tickets with, tickets, use of applications.

A proxy shows `<its id>:<secret>`. It has no database: whatever it decides, it decides with what it gets here.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import UUID

from coder.api.base.refusals import BadGateway, Invalid, NotFound, Unauthenticated
from coder.api.field_rules.rules import is_http_url
from coder.api.proxies.proxies import (
    AppStat,
    CryptoKey,
    DeregisterWorkspaceProxyRequest,
    IssueTokenRequest,
    MayStayRequest,
    RegisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyResponse,
    Replica,
    SignedAppRequest,
)
from coder.api.proxies.proxy_token import TOKEN_MISSING, TOKEN_REFUSED
from coder.appproxy.apps.app_refusals import AppRefusedError, to_fields
from coder.appproxy.apps.app_tickets import KEY_FEATURE, TICKET_FEATURE, Ticket
from coder.coderd.services.access.authentication import authenticate, hash_secret
from coder.coderd.services.apps import app_tokens, app_usage
from coder.coderd.services.apps.app_access import open_app
from coder.coderd.services.apps.app_streams import OpenVisits
from coder.coderd.services.foundation.signing_keys import SigningKeys
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.relay import Relay
from coder.coderd.services.proxies.proxy_health import FIRST_REGION, ProxyHealth
from coder.coderd.store.proxies import workspace_proxies as store
from coder.coderd.store.proxies.workspace_proxies import ProxyReplicaRow, ProxyRow
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import Subject
from coder.domain.apps.app_addresses import AppRequest, explain_wildcard
from coder.domain.foundation.zero import ZERO_TIME
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

SIBLING_AGE = timedelta(seconds=90)
"""A process that missed two registrations is not named to its siblings."""
_FEATURES = (TICKET_FEATURE, KEY_FEATURE)
_MAX_STATS = 5000
_LONGEST_URL = 1024
_MAX_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProxyCaller:
    row: ProxyRow


async def authenticate_proxy(ctx: Context, token: str) -> ProxyCaller:
    """The proxy behind a token. Raises Unauthenticated."""
    if not token:
        raise Unauthenticated(TOKEN_MISSING)
    identity, _, secret = token.partition(":")
    try:
        proxy_id = UUID(identity)
    except ValueError:
        raise Unauthenticated(TOKEN_REFUSED, "It is written ID:SECRET.") from None
    row = await ctx.db.read(store.find_proxy, str(proxy_id))
    stored = row.hashed_secret if row else b""
    if not hmac.compare_digest(stored, hash_secret(secret)) or row is None:
        raise Unauthenticated(TOKEN_REFUSED, "There is no such proxy, or its token was replaced.")
    return ProxyCaller(row)


async def register(
    ctx: Context, caller: ProxyCaller, said: RegisterWorkspaceProxyRequest
) -> RegisterWorkspaceProxyResponse:
    """Notes a living process of a proxy and tells it what it needs. Raises Invalid."""
    _check(said)
    now = ctx.clock.now()
    row = caller.row
    replica = ProxyReplicaRow(
        id=said.replica_id,
        proxy_id=row.id,
        hostname=said.replica_hostname,
        relay_address=said.replica_relay_address,
        error=said.replica_error,
        version=said.version,
        created_at=now,
        updated_at=now,
    )
    values = {
        "url": said.access_url.rstrip("/"),
        "wildcard_hostname": said.wildcard_hostname,
        "derp_enabled": said.derp_enabled,
        "derp_only": said.derp_only,
        "version": said.version,
    }
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    region, siblings = await ctx.db.run(_register, replica, changed, now)
    if "url" in changed or ctx.part(ProxyHealth).of(row).status != "ok":
        fresh = await ctx.db.read(store.find_proxy, str(row.id))
        if fresh is not None:  # ask it now: people wait for it to become green
            ctx.nursery.start_soon(_look, ctx, fresh)
    return RegisterWorkspaceProxyResponse(
        derp_mesh_key=_mesh_key(ctx, row.id),
        derp_region_id=FIRST_REGION + region,
        derp_map=derpmap.to_json(current_map(ctx)),
        derp_force_websockets=ctx.config.derp_force_websockets,
        sibling_replicas=[_sibling(one, FIRST_REGION + region) for one in siblings],
    )


def _mesh_key(ctx: Context, proxy_id: UUID) -> str:
    """By which relays of one proxy know each other, in hex; one of its own, so that it opens no relay of ours."""
    ours = ctx.part(Relay).mesh_key
    return (
        hmac.new(bytes.fromhex(ours), b"workspace proxy" + proxy_id.bytes, hashlib.sha256).hexdigest() if ours else ""
    )


async def _look(ctx: Context, row: ProxyRow) -> None:
    try:
        await ctx.part(ProxyHealth).look_at(row)
    except Exception as error:
        # It runs beside everything else in the server's nursery, and must not end that.
        ctx.log.warn("a workspace proxy could not be asked", proxy=row.name, error=error)


def _check(said: RegisterWorkspaceProxyRequest) -> None:
    wrong: list[tuple[str, str]] = []
    if not is_http_url(said.access_url):
        wrong.append(("access_url", "It must be a URL with http:// or https://."))
    elif "?" in said.access_url or len(said.access_url) > _LONGEST_URL:
        wrong.append(("access_url", f"It must have no query, and at most {_LONGEST_URL} letters."))
    problem = explain_wildcard(said.wildcard_hostname)
    if problem:
        wrong.append(("wildcard_hostname", f"Not usable: {problem}."))
    if said.derp_only and not said.derp_enabled:
        wrong.append(("derp_only", "A proxy that only relays must have its relay enabled."))
    if wrong:
        raise Invalid("Validation failed.", validations=wrong)


async def _register(
    tx: Tx, replica: ProxyReplicaRow, changed: dict[str, Any], now: Any
) -> tuple[int, list[ProxyReplicaRow]]:
    if changed:
        await store.update_proxy(tx, replica.proxy_id, {**changed, "updated_at": now})
    if not await store.put_replica(tx, replica):
        raise Invalid("Validation failed.", validations=[("replica_id", "It is another proxy's.")])
    living = await store.list_replicas(tx, replica.proxy_id, now - SIBLING_AGE)
    return await store.get_region_id(tx, replica.proxy_id), [one for one in living if one.id != replica.id]


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


async def deregister(ctx: Context, caller: ProxyCaller, said: DeregisterWorkspaceProxyRequest) -> None:
    """A process of the proxy ends. Raises NotFound."""
    if not await ctx.db.run(store.delete_replica, caller.row.id, said.replica_id):
        raise NotFound("Replica not found.")


async def crypto_keys(ctx: Context, feature: str) -> list[CryptoKey]:
    """Keys of one feature. Raises Invalid for those that are none of a proxy's business."""
    if feature not in _FEATURES:
        said = f'Query param "feature" must be one of [{", ".join(_FEATURES)}]' if feature else "It is required."
        raise Invalid("Invalid query parameters.", validations=[("feature", said)])
    keys = ctx.part(SigningKeys)
    return [
        CryptoKey(
            feature=feature,
            secret=found.key.secret.hex(),
            deletes_at=found.deletes_at or ZERO_TIME,
            sequence=int(found.key.id),
            starts_at=found.starts_at,
        )
        for found in await keys.describe(feature)
    ]


_REFUSED = {
    "sign_in": (Unauthenticated, "You are signed out or your session has expired. Please sign in again to continue."),
    "not_found": (NotFound, "Application not found."),
    "path_apps_off": (Invalid, "Path-based applications are disabled."),
    "port_by_path": (Invalid, "Ports cannot be opened under a path."),
    "reserved_port": (Invalid, "Ports below 9 are never proxied."),
    "not_web": (Invalid, "This application is not a page."),
    "workspace_offline": (Invalid, "The workspace is not running."),
    "workspace_dormant": (Invalid, "The workspace is dormant."),
    "agent_offline": (BadGateway, "The workspace's agent is not connected."),
}


async def issue_signed_token(ctx: Context, said: IssueTokenRequest) -> str:
    """A ticket for what a proxy's visitor asked for. Raises what explains to the proxy why not."""
    try:
        return await open_for_visitor(ctx, said)
    except AppRefusedError as error:
        kind, words = _REFUSED[error.reason]
        # The proxy shows the page we would have shown.
        raise kind(words, error.detail, to_fields(error)) from error


async def open_for_visitor(ctx: Context, said: IssueTokenRequest) -> str:
    """A ticket for what a proxy's visitor asked for. Raises AppRefusedError, Invalid."""
    asked = said.app_request
    subject: Subject | None = None
    request = _request_of(asked)
    if said.session_token:
        try:
            subject = (await authenticate(ctx, Credentials(said.session_token))).subject
        except Unauthenticated as error:
            raise AppRefusedError("sign_in") from error
    if asked.access_method == "terminal":
        return await _terminal_token(ctx, subject, request)
    ticket, _ = await open_app(ctx, request, subject)
    token, _ = await app_tokens.issue_ticket(ctx, ticket)
    return token


def _request_of(asked: SignedAppRequest) -> AppRequest:
    """Raises Invalid."""
    if asked.access_method not in {"path", "subdomain", "terminal"}:
        raise Invalid("Validation failed.", validations=[("app_request.access_method", "It is unknown.")])
    return AppRequest(
        cast("Any", asked.access_method),
        asked.base_path,
        asked.username_or_id,
        asked.workspace_name_or_id,
        asked.agent_name_or_id,
        asked.app_slug_or_port,
        asked.app_prefix,
    )


async def may_stay(ctx: Context, said: MayStayRequest) -> bool:
    """Whether who came in by a ticket alone would be let in now. Raises Invalid."""
    ticket = Ticket(_request_of(said.app_request), said.workspace_id, said.agent_id, "", said.user_id)
    return await ctx.part(OpenVisits).may_stay(ticket)


async def _terminal_token(ctx: Context, subject: Subject | None, request: AppRequest) -> str:
    from coder.coderd.services.apps.session_handover import issue_terminal_token

    if subject is None:
        raise AppRefusedError("sign_in")
    try:
        agent_id = UUID(request.agent_name_or_id)
    except ValueError:
        raise AppRefusedError("not_found") from None
    access = urlsplit(ctx.access_url)
    scheme = "wss" if access.scheme == "https" else "ws"
    url = f"{scheme}://{access.netloc}/api/v2/workspaceagents/{agent_id}/pty"
    return await issue_terminal_token(ctx, subject, url, agent_id)


async def report_stats(ctx: Context, stats: list[AppStat]) -> None:
    """Use of applications that passed through a proxy. Raises Invalid."""
    if len(stats) > _MAX_STATS:
        raise Invalid("Too many statistics.", f"At most {_MAX_STATS} at once.")
    now = ctx.clock.now()
    rows = []
    for stat in stats:
        if stat.session_started_at > stat.session_ended_at or stat.requests < 0:
            raise Invalid("Validation failed.", validations=[("stats", "A session ends after it began.")])
        if now - stat.session_ended_at > _MAX_AGE or stat.session_started_at - now > timedelta(minutes=5):
            continue  # a clock that is far off would spoil reports for good
        rows.append(app_usage.row_of(stat))
    if rows:
        await app_usage.write_sessions(ctx, rows)
