"""Tokens of providers for agents (git) and builds (templates)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

import trio
from msgspec import UNSET

from coder.api.base.refusals import Conflict, TooSlow
from coder.api.login.external_auth import AgentAuth
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.services.login import external_auth, oidc
from coder.coderd.services.login.oauth_exchange import renew
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.login import external_auth as store
from coder.coderd.store.login import user_links
from coder.domain.login.external_providers import ExternalProvider, git_login, provider_for

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

LINK_POLL_INTERVAL = 15.0
"Seconds between two checks for a link that a user is creating in a browser. Its notice usually comes first."
MAX_WAIT = 15 * 60.0
"Seconds. A client that wants to wait longer sends another request and authenticates again."
MAX_WAITING = 8
"Concurrent waiting calls of one agent."


@dataclass(frozen=True, slots=True)
class Waiter:
    """An agent that waits until its owner has linked an account."""

    agent_id: UUID
    require_right: Callable[[], Awaitable[None]]
    "CheckedLink at every turn; raises the refusal of the route."


class LinkWaits:
    """Waiting agents of one server process, and their events."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._waiting: dict[UUID, int] = {}
        self._next: WeakValueDictionary[str, trio.Event] = WeakValueDictionary()
        "Next event by owner; the waiting calls hold references."

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for new links, until cancelled."""
        nursery.start_soon(self._listen)
        nursery.start_soon(self._end)

    def next_link(self, owner_id: UUID) -> trio.Event:
        """Return an event that the owner's next link sets. Take it before the check, so that a link meanwhile
        counts.
        """
        return self._next.setdefault(str(owner_id), trio.Event())

    @contextmanager
    def count_waiting(self, agent_id: UUID) -> Iterator[None]:
        """Count a waiting call of the agent. Raises Conflict above the limit."""
        if self._waiting.get(agent_id, 0) >= MAX_WAITING:
            raise Conflict(f"At most {MAX_WAITING} calls of one agent can wait for an account.")
        self._waiting[agent_id] = self._waiting.get(agent_id, 0) + 1
        try:
            yield
        finally:
            self._waiting[agent_id] -= 1
            if not self._waiting[agent_id]:
                del self._waiting[agent_id]

    def _notify(self, owner: str) -> None:
        event = self._next.pop(owner, None)
        if event is not None:
            event.set()

    def _notify_all(self) -> None:
        for owner in list(self._next):
            self._notify(owner)

    async def _listen(self) -> None:
        async with self._ctx.db.listen(store.LINKED) as notices:
            self._notify_all()  # links before the subscription started
            async for _channel, owner in notices:
                if owner == RESYNC:
                    self._notify_all()
                else:
                    self._notify(owner)

    async def _end(self) -> None:
        await self._ctx.stopping.wait()
        self._notify_all()


def provider(ctx: Context, ident: str, match: str) -> ExternalProvider | None:
    return provider_for(ctx.config.external_auth_providers, ident=ident, url=match)


async def for_agent(
    ctx: Context, provider: ExternalProvider, owner_id: UUID, waiter: Waiter | None = None
) -> AgentAuth:
    """Return the owner's token, or the URL to link an account. An agent that waits gets a token only.

    Raises TooSlow, Conflict, and what the waiter's right raises.
    """
    token_and_expiry = await external_auth.token_for(ctx, provider, owner_id)
    if token_and_expiry is None and waiter is not None:
        token_and_expiry = await _awaited(ctx, provider, owner_id, waiter)
    if token_and_expiry is None:
        url = f"{ctx.access_url}/external-auth/{provider.id}"
        return AgentAuth(access_token="", token_extra=None, url=url, type=provider.kind, username="", password="")
    token, expires = token_and_expiry
    username, password = git_login(provider, token.reveal())
    return AgentAuth(
        access_token=token.reveal(),
        token_extra=None,
        url="",
        type=provider.kind,
        username=username,
        password=password,
        expires_at=expires or UNSET,
    )


async def _awaited(
    ctx: Context, provider: ExternalProvider, owner_id: UUID, waiter: Waiter
) -> tuple[Secret, datetime | None] | None:
    """Wait for a token. Return None when the server stops."""
    waits = ctx.services.api.link_waits
    ends, tried = trio.current_time() + MAX_WAIT, None
    with waits.count_waiting(waiter.agent_id):
        while trio.current_time() < ends:
            linked = waits.next_link(owner_id)
            if ctx.stopping.is_set():
                return None
            await waiter.require_right()
            row = await ctx.db.read(store.get_link, provider.id, owner_id)
            if row is not None and row != tried:  # the provider is asked once for each token
                token = await external_auth.token_for(ctx, provider, owner_id)
                if token is not None:
                    return token
                tried = row
            with trio.move_on_after(LINK_POLL_INTERVAL):
                await linked.wait()
    raise TooSlow("No account has been linked yet. Try again.")


async def external_tokens(ctx: Context, owner_id: UUID, required: Sequence[str]) -> list[tuple[str, Secret]]:
    """Return valid tokens of the owner for a template's providers, without those that have none."""
    tokens = []
    for ident in required:
        configured = provider(ctx, ident, "")
        token = await external_auth.token_for(ctx, configured, owner_id) if configured is not None else None
        if token is not None:
            tokens.append((ident, token[0]))
    return tokens


async def oidc_token(ctx: Context, owner_id: UUID) -> str:
    """Return the owner's access token at the OpenID provider, refreshed if expired; empty without one."""
    if not oidc.enabled(ctx):
        return ""
    row = await ctx.db.read(user_links.get_link, owner_id, "oidc")
    if row is None or not row.oauth_access_token:
        return ""
    sealer = ctx.services.sealer
    try:
        token, refresh = sealer.open(row.oauth_access_token), sealer.open(row.oauth_refresh_token)
        if row.oauth_expiry is None or row.oauth_expiry > ctx.clock.now():
            return token.reveal()
        if not refresh:
            return ""
        granted = await renew(ctx, await ctx.services.api.oidc.endpoint(), refresh)
    except CoderError as error:
        newer = await _newer_oidc_token(ctx, row)
        if newer:
            return newer
        ctx.log.warn("the owner's OIDC token could not be refreshed", user_id=owner_id, error=error)
        return ""
    renewed = replace(
        row,
        oauth_access_token=sealer.seal(granted.access),
        oauth_refresh_token=sealer.seal(granted.refresh),
        oauth_expiry=granted.expires_at,
    )
    if await ctx.db.run(user_links.renew_link, renewed, row.oauth_refresh_token):
        return granted.access.reveal()
    return await _newer_oidc_token(ctx, row)


async def _newer_oidc_token(ctx: Context, old: user_links.LinkRow) -> str:
    """Return the token that a concurrent request got meanwhile; empty if there is none."""
    row = await ctx.db.read(user_links.get_link, old.user_id, old.login_type)
    if row is None or row.oauth_refresh_token == old.oauth_refresh_token:
        return ""
    if row.oauth_expiry is not None and row.oauth_expiry <= ctx.clock.now():
        return ""
    sealer = ctx.services.sealer
    return sealer.open(row.oauth_access_token).reveal()
