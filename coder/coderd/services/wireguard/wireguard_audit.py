"""What the audit log says of plain WireGuard clients: made, removed, and everything that cut them off in between.

Losses have a dozen causes (`wireguard_service.py`), so they are found by comparison: the present reach of a client
against its reach at the latest audit entry (table `wireguard_reach`). The entry and the new comparison are one
transaction, which only the first replica completes: a loss is one entry, regardless of the number of replicas, polls
and restarts. A stopped workspace is no loss: the client reaches it when it is started again.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.store.audit.audit import AuditSnapshot
from coder.coderd.store.wireguard import wireguard_clients as client_store
from coder.coderd.store.wireguard.wireguard_clients import ACTIVE, EXPIRED, Reach, WatchedClient, WireguardClientRow
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.workspaces import WorkspaceRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.wireguard.wireguard_access import ReachableAgent
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

_KIND = "api_key"
"""Kinds of audited things are upstream's; a client counts as the key to its owner's workspaces that it is."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A client as last looked at."""

    client: WatchedClient
    owner: Subject | None
    targets: Sequence[ReachableAgent]


@dataclass(frozen=True, slots=True)
class _Missed:
    """A workspace that a client does not reach at present."""

    row: WorkspaceRow
    owner: str
    agents: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Change:
    client_id: UUID
    known: Reach
    new: Reach
    events: Sequence[AuditEvent]


def change(action: Literal["create", "delete"], row: WireguardClientRow, origin: Origin) -> AuditEvent:
    """A client somebody made or removed."""
    state = {
        "name": row.name,
        "public_key": key_text(row.public_key),
        "user_id": str(row.user_id),
        "expires_at": row.expires_at.isoformat() if row.expires_at else "",
        "workspace_ids": [str(ident) for ident in row.workspace_ids] if row.workspace_ids is not None else None,
    }
    before, after = (state, None) if action == "delete" else (None, state)
    return _event(action, row, origin, 204 if action == "delete" else 201, before, after)


def _event(
    action: str,
    row: WireguardClientRow,
    origin: Origin,
    status: int,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    **additional: Any,
) -> AuditEvent:
    def shown(state: dict[str, Any] | None) -> AuditSnapshot | None:
        return AuditSnapshot(row.id, row.name, None, "", "", state) if state is not None else None

    more = {"wireguard_client": row.name, **additional}
    return AuditEvent(_KIND, action, origin, status, shown(before), shown(after), additional=more)


async def tell_losses(ctx: Context, watched: Sequence[Watched]) -> bool:
    """Writes an entry for each loss. False: another replica was at it, so `watched` is of the past.

    What is known of a client must have been read before its targets: so whoever gets through has seen at least as
    much as the one before.
    """
    gone = {ident for one in watched for ident in set(one.client.known.workspaces) - _reached(one)}
    missed = await ctx.db.read(_read_missed, sorted(gone)) if gone else {}
    changes = [found for one in watched if (found := _compare(one, missed))]
    if not changes:
        return True
    changes.sort(key=lambda found: found.client_id)  # replicas wait for each other, none for ever
    return await ctx.db.run(_write, changes, ctx.clock.now())


async def _read_missed(tx: Tx, ids: Sequence[UUID]) -> dict[UUID, _Missed]:
    agents: dict[UUID, list[str]] = {}
    for place in await workspace_store.list_agents_of(tx, ids):
        agents.setdefault(place.workspace_id, []).append(place.agent.name)
    rows = await workspace_store.list_with_owners(tx, ids)
    return {row.id: _Missed(row, owner, agents.get(row.id, [])) for row, owner in rows}


async def _write(tx: Tx, changes: Sequence[_Change], now: datetime) -> bool:
    was_first = True
    for found in changes:
        if not await client_store.change_reach(tx, found.client_id, found.known, found.new):
            was_first = False
            continue
        for event in found.events:
            await audit.write(tx, event, now)
    return was_first


def _reached(one: Watched) -> set[UUID]:
    return {target.place.workspace_id for target in one.targets}


def _compare(one: Watched, missed: Mapping[UUID, _Missed]) -> _Change | None:
    client, known = one.client, one.client.known
    if known.standing == EXPIRED:
        return None  # for good: another replica's clock was ahead of ours
    if client.standing != ACTIVE:
        events = [_cut_off(client)] if known.standing == ACTIVE else []
        workspaces: set[UUID] = set()
    else:
        before = set(known.workspaces)
        lost = {ident for ident in before - _reached(one) if not _may_return(one.owner, missed.get(ident))}
        workspaces = _reached(one) | before - lost
        events = _lost(client, before, {ident: missed.get(ident) for ident in sorted(lost)})
    if client.standing == known.standing and workspaces == set(known.workspaces):
        return None
    return _Change(client.row.id, known, Reach(client.standing, sorted(workspaces)), events)


def _may_return(owner: Subject | None, missed: _Missed | None) -> bool:
    """Whether it is only stopped: its owner still may enter it."""
    if owner is None or missed is None or missed.row.deleted:
        return False
    resource = workspace_resource(missed.row, dormant=False)
    return may(owner, "read", resource) and may(owner, "ssh", resource)


def _cut_off(client: WatchedClient) -> AuditEvent:
    row, standing = client.row, client.standing
    more = {"expires_at": row.expires_at.isoformat()} if standing == EXPIRED and row.expires_at else {}
    return _change_of(client, {"status": ACTIVE}, {"status": standing}, reason=standing, **more)


def _lost(client: WatchedClient, before: Collection[UUID], lost: Mapping[UUID, _Missed | None]) -> list[AuditEvent]:
    """An entry for each workspace, in turn."""
    events = []
    left = sorted(before)
    for ident, missed in lost.items():
        old, left = left, [other for other in left if other != ident]
        about: dict[str, Any] = {"workspace_id": str(ident)}
        if missed is not None:
            about |= {"workspace_name": missed.row.name, "workspace_owner": missed.owner, "agents": missed.agents}
        is_deleted = missed is None or missed.row.deleted
        reason = "workspace_deleted" if is_deleted else "permission_lost"
        states = [{"workspaces": [str(other) for other in some]} for some in (old, left)]
        events.append(_change_of(client, *states, reason=reason, **about))
    return events


def _change_of(client: WatchedClient, before: dict[str, Any], after: dict[str, Any], **additional: Any) -> AuditEvent:
    """One that nobody made: the server found it."""
    return _event("write", client.row, Origin(), 200, before, after, owner=client.username, **additional)


def key_text(key: bytes) -> str:
    """A key as configurations have it."""
    return base64.b64encode(key).decode()


def log_change(ctx: Context, subject: Subject, action: Literal["create", "delete"], row: WireguardClientRow) -> None:
    """A line for the server's log; the audit entry is written with the change itself."""
    ctx.log.info(
        "wireguard client",
        action=action,
        by=subject.username,
        client=row.name,
        client_id=str(row.id),
        owner_id=str(row.user_id),
        expires_at=row.expires_at.isoformat() if row.expires_at else "never",
        workspaces=len(row.workspace_ids) if row.workspace_ids is not None else "all",
    )
