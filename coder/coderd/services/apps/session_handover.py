"""Sessions of signed-in users on other hosts: API keys for applications' hosts, tickets for terminals.

Opening an application is in `app_access.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.api.proxies.sealed_keys import REGISTRATION_AGE, reads_wrapped_keys
from coder.appproxy.apps.app_tickets import DIRECT, WRAPPED, Ticket, opens_terminal_untrusted, terminal_request
from coder.appproxy.apps.app_visitor import Visitor
from coder.coderd.services.access import api_tokens, keys, new_keys
from coder.coderd.services.access.authorization import require
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.apps import app_tokens
from coder.coderd.services.apps.app_access import find_workspace_id
from coder.coderd.store.proxies import workspace_proxies as proxy_store
from coder.domain.access import scopes
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AppRequest, HostPattern, parse_app_label
from coder.domain.apps.app_headers import API_KEY_QUERY
from coder.domain.foundation.web_addresses import host_of_origin, split_untrusted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject

SCOPE = "coder:application_connect"
_UNKNOWN_REDIRECT = (
    "The redirect_uri query parameter must be the primary wildcard app hostname, a workspace proxy access URL or a "
    "workspace proxy wildcard app hostname."
)


def app_host(ctx: Context) -> str:
    """Return the wildcard host as links use it; empty without one."""
    return HostPattern(ctx.config.wildcard_access_url).with_port(ctx.access_url)


async def create_redirect(ctx: Context, caller: Caller, redirect_uri: str) -> str:
    """Return the URL to redirect the browser to: the application's host, with a sealed key of its own.

    The key grants access to applications only, and only to the workspace it is for: a script of that host may read the
    URL with the key, and must not reach another user's application. Raises Invalid, Forbidden, Unauthenticated.
    """
    parts = split_untrusted(redirect_uri)
    target = await _find_target(ctx, redirect_uri)
    if target is None:
        raise Invalid("Invalid redirect_uri.", _UNKNOWN_REDIRECT)
    require(caller.subject, "create", keys.keys_of(caller.user.id), hidden=False)
    # The key for the application has at most the limits of the key the user signed in with.
    request = await _request_of(ctx, parts.netloc)
    if request is None:  # a proxy's own address serves all workspaces
        allow: Sequence[str] = caller.key.allow_list or new_keys.ANY
    else:
        allow = (f"workspace:{await find_workspace_id(ctx, request) or NIL}",)
    api_tokens.check_reach(caller.subject, scopes.combined([SCOPE], allow))
    row, token = new_keys.new_key(
        caller.user.id,
        caller.key.login_type,
        ctx.config.session_duration,
        ctx.clock.now(),
        scopes=(SCOPE,),
        allow_list=allow,
        ip=caller.credentials.remote_ip,
        user_agent=caller.credentials.user_agent,
    )
    row = replace(row, login_type="password" if row.login_type == "token" else row.login_type)
    await ctx.db.run(new_keys.derive_session, caller.key, row)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != API_KEY_QUERY]
    query.append((API_KEY_QUERY, await app_tokens.seal_key(ctx, token, await _sealing_for(ctx, target.proxy))))
    # The scheme known for that host, not the requested one: the key must not cross the network in plain text.
    return urlunsplit((target.scheme, parts.netloc, parts.path or "/", urlencode(query, quote_via=quote), ""))


class _Target(NamedTuple):
    """Host of applications. `proxy` is the workspace proxy that serves it; None for this server."""

    scheme: str
    proxy: UUID | None = None


async def _sealing_for(ctx: Context, proxy: UUID | None) -> str:
    """Return the algorithm that every process of a proxy reads. Replicas of this server, some of an older version
    during an upgrade, all read `dir`."""
    if proxy is None:
        return DIRECT
    since = ctx.clock.now() - REGISTRATION_AGE
    versions = [replica.version for replica in await ctx.db.read(proxy_store.list_replicas, proxy, since)]
    return WRAPPED if all(map(reads_wrapped_keys, versions)) else DIRECT


async def _find_target(ctx: Context, redirect_uri: str) -> _Target | None:
    """Return the host, if only this deployment serves it, itself or by a proxy; None for any other host."""
    parts = split_untrusted(redirect_uri)
    port = parts.port
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or "\\" in redirect_uri:
        return None
    host = f"{parts.hostname}:{port}" if port else parts.hostname
    # The host alone is not enough: another program of the same machine may listen on another port.
    access_url = urlsplit(ctx.access_url)
    if _is_below(ctx.config.wildcard_access_url, host) and port_of(parts) in _ports(
        ctx.config.wildcard_access_url, access_url
    ):
        return _Target(access_url.scheme)
    for proxy in await ctx.db.read(proxy_store.list_proxies):
        proxy_url = split_untrusted(proxy.url)
        if not proxy.url:
            continue
        if _is_below(proxy.wildcard_hostname, host) and port_of(parts) in _ports(proxy.wildcard_hostname, proxy_url):
            return _Target(proxy_url.scheme, proxy.id)
        if host_of_origin(proxy.url) == host_of_origin(redirect_uri):
            return _Target(proxy_url.scheme, proxy.id)
    return None


def port_of(parts: SplitResult) -> int:
    """Return the port of a URL; 0 for an invalid one."""
    try:
        return parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return 0


def _ports(pattern: str, url: SplitResult) -> frozenset[int]:
    """Return the ports that serve applications: the wildcard's or else the access URL's, and the web's default
    ports."""
    port = pattern.rpartition(":")[2]
    return frozenset({int(port) if port.isdigit() else port_of(url), 80, 443})


async def _request_of(ctx: Context, host: str) -> AppRequest | None:
    """Return the application that a host of this deployment names."""
    patterns = [ctx.config.wildcard_access_url]
    patterns += [proxy.wildcard_hostname for proxy in await ctx.db.read(proxy_store.list_proxies)]
    labels = [HostPattern(pattern).label_of(host) for pattern in patterns if pattern]
    label = next((item for item in labels if item and "--" in item), None)
    return (parse_app_label(label) or AppRequest("subdomain", "/", "", "", "", "")) if label else None


def _is_below(pattern: str, host: str) -> bool:
    label = HostPattern(pattern).label_of(host) if pattern else None
    return bool(label) and "--" in str(label)


# ---- terminals


async def issue_terminal_token(ctx: Context, subject: Subject, url: str, agent_id: UUID) -> str:
    """Issue a ticket for one agent's terminal, to use where the user has no session (a proxy). Raises Invalid,
    NotFound."""
    parts = split_untrusted(url)
    if parts.scheme not in {"ws", "wss"}:
        raise Invalid("Invalid URL.", 'invalid URL scheme "' + parts.scheme + "\", expected 'ws' or 'wss'")
    expected_path = f"/api/v2/workspaceagents/{agent_id}/pty"
    if parts.path != expected_path:
        raise Invalid("Invalid URL.", f'invalid URL path "{parts.path}", expected "{expected_path}"')
    if not await _is_server(ctx, host_of_origin(url)):
        raise Invalid("Invalid URL.", f'invalid hostname "{parts.netloc}"')
    location = await load_agent(ctx, subject, agent_id, "ssh")
    ticket = Ticket(
        terminal_request(agent_id), location.workspace_id, agent_id, "", subject.user_id, key_id=subject.key_id
    )
    token, _ = await app_tokens.issue_ticket(ctx, ticket)
    return token


async def _is_server(ctx: Context, host: str) -> bool:
    """Return whether the host is this server's access URL or a proxy's."""
    if host == host_of_origin(ctx.access_url):
        return True
    return any(proxy.url and host_of_origin(proxy.url) == host for proxy in await ctx.db.read(proxy_store.list_proxies))


async def find_terminal_visitor(ctx: Context, token: str, agent_id: UUID) -> Visitor | None:
    """Return the visitor that a ticket for this agent's terminal names; None for an invalid ticket."""
    ticket = await opens_terminal_untrusted(ctx.services.signing_keys, ctx.clock.now(), token, agent_id)
    return Visitor(Credentials(), ticket.user_id, ticket.key_id) if ticket else None
