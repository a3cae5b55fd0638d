"""Audit entries of plain WireGuard clients: created, removed, and every loss of access in between.

Losses have a dozen causes (`wireguard_service.py`), so comparison finds them: the present reach of a client
against its reach at the latest audit entry (table `wireguard_reach`). The entry and the new comparison are one
transaction, which only the first replica completes: a loss is one entry, regardless of the number of replicas, polls
and restarts. A stopped workspace is no loss: the client reaches it when it is started again.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from coder.api.audit.audit import AuditAction, ResourceType
from coder.base.json_types import Json, JsonObject
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

_KIND: ResourceType = "api_key"
"""Upstream's list of audited resource types has no clients; a client is a key to its owner's workspaces."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A client with its owner and its targets, as last read."""

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
    """Return the entry for a client that a user created or removed."""
    state: JsonObject = {
        "name": row.name,
        "public_key": key_text(row.public_key),
        "user_id": str(row.user_id),
        "expires_at": row.expires_at.isoformat() if row.expires_at else "",
        "workspace_ids": [str(ident) for ident in row.workspace_ids] if row.workspace_ids is not None else None,
    }
    before, after = (state, None) if action == "delete" else (None, state)
    return _event(action, row, origin, 204 if action == "delete" else 201, before, after)


def _event(
    action: AuditAction,
    row: WireguardClientRow,
    origin: Origin,
    status: int,
    before: JsonObject | None,
    after: JsonObject | None,
    **additional: Json,
) -> AuditEvent:
    def snapshot(state: JsonObject | None) -> AuditSnapshot | None:
        return AuditSnapshot(row.id, row.name, None, "", "", state) if state is not None else None

    fields = {"wireguard_client": row.name, **additional}
    return AuditEvent(_KIND, action, origin, status, snapshot(before), snapshot(after), additional=fields)


async def write_losses(ctx: Context, watched: Sequence[Watched]) -> bool:
    """Write an entry for each loss. Return False when another replica wrote first, which makes `watched` stale.

    The known reach of a client must be read before its targets: then the replica that writes has seen at least as
    much as the previous writer.
    """
    lost = {ident for item in watched for ident in set(item.client.known.workspaces) - _reached(item)}
    missed = await ctx.db.read(_read_missed, sorted(lost)) if lost else {}
    changes = [difference for item in watched if (difference := _compare(item, missed))]
    if not changes:
        return True
    changes.sort(key=lambda item: item.client_id)  # one order of locks at all replicas prevents deadlocks
    return await ctx.db.run(_write, changes, ctx.clock.now())


async def _read_missed(tx: Tx, ids: Sequence[UUID]) -> dict[UUID, _Missed]:
    agents: dict[UUID, list[str]] = {}
    for current in await workspace_store.list_agents_of(tx, ids):
        agents.setdefault(current.workspace_id, []).append(current.agent.name)
    rows = await workspace_store.list_with_owners(tx, ids)
    return {row.id: _Missed(row, owner, agents.get(row.id, [])) for row, owner in rows}


async def _write(tx: Tx, changes: Sequence[_Change], now: datetime) -> bool:
    was_first = True
    for item in changes:
        if not await client_store.change_reach(tx, item.client_id, item.known, item.new):
            was_first = False
            continue
        for event in item.events:
            await audit.write(tx, event, now)
    return was_first


def _reached(watched: Watched) -> set[UUID]:
    return {target.current.workspace_id for target in watched.targets}


def _compare(watched: Watched, missed: Mapping[UUID, _Missed]) -> _Change | None:
    client, known = watched.client, watched.client.known
    if known.standing == EXPIRED:
        return None  # expiry is final: another replica's clock was ahead
    if client.standing != ACTIVE:
        events = [_cut_off(client)] if known.standing == ACTIVE else []
        workspaces: set[UUID] = set()
    else:
        before = set(known.workspaces)
        lost = {ident for ident in before - _reached(watched) if not _may_return(watched.owner, missed.get(ident))}
        workspaces = _reached(watched) | before - lost
        events = _lost(client, before, {ident: missed.get(ident) for ident in sorted(lost)})
    if client.standing == known.standing and workspaces == set(known.workspaces):
        return None
    return _Change(client.row.id, known, Reach(client.standing, sorted(workspaces)), events)


def _may_return(owner: Subject | None, missed: _Missed | None) -> bool:
    """Return whether the workspace is only stopped: the client's owner still may enter it."""
    if owner is None or missed is None or missed.row.deleted:
        return False
    resource = workspace_resource(missed.row, dormant=False)
    return may(owner, "read", resource) and may(owner, "ssh", resource)


def _cut_off(client: WatchedClient) -> AuditEvent:
    row, standing = client.row, client.standing
    expiry = {"expires_at": row.expires_at.isoformat()} if standing == EXPIRED and row.expires_at else {}
    return _change_of(client, {"status": ACTIVE}, {"status": standing}, reason=standing, **expiry)


def _lost(client: WatchedClient, before: Collection[UUID], lost: Mapping[UUID, _Missed | None]) -> list[AuditEvent]:
    """Return an entry for each lost workspace, in order."""
    events = []
    left = sorted(before)
    for ident, missed in lost.items():
        old, left = left, [other for other in left if other != ident]
        about: JsonObject = {"workspace_id": str(ident)}
        if missed is not None:
            about |= {"workspace_name": missed.row.name, "workspace_owner": missed.owner, "agents": missed.agents}
        is_deleted = missed is None or missed.row.deleted
        reason = "workspace_deleted" if is_deleted else "permission_lost"
        was, stays = _workspaces(old), _workspaces(left)
        events.append(_change_of(client, was, stays, reason=reason, **about))
    return events


def _workspaces(ids: Sequence[UUID]) -> JsonObject:
    return {"workspaces": [str(ident) for ident in ids]}


def _change_of(client: WatchedClient, before: JsonObject, after: JsonObject, **additional: Json) -> AuditEvent:
    """Return an entry without a user: the server found the change."""
    return _event("write", client.row, Origin(), 200, before, after, owner=client.username, **additional)


def key_text(key: bytes) -> str:
    """Return a key in Base64, as WireGuard configurations write it."""
    return base64.b64encode(key).decode()


def log_change(ctx: Context, subject: Subject, action: Literal["create", "delete"], row: WireguardClientRow) -> None:
    """Write a line to the server's log; the audit entry is written with the change itself."""
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
