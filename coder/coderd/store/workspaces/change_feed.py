"""Notices to watchers of workspaces: one NOTIFY channel for all of them.

Written inside the transaction of the change, so that a rolled-back change is never reported.
`services/workspaces/change_feed.py` is the other end, which distributes changes to watchers inside the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from coder.coderd.store.engine.pubsub import notify, notify_all

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

CHANNEL = "workspace_changes"

Kind = Literal[
    "state",  # a build or its job moved, the workspace was edited or deleted
    "settings",  # schedule, time to live, favourite and the like
    "connection",  # an agent connected, disconnected or timed out
    "lifecycle",  # an agent's lifecycle state
    "startup",  # version and directory of an agent
    "app_health",
    "app_status",
    "stats",  # last used, deadline bumped
    "metadata",  # for watchers of the agent only
    "logs",  # likewise
    "resync",  # never sent: delivered after notices may have been missed
]

AGENT_ONLY: frozenset[str] = frozenset({"metadata", "logs"})
"""Kinds that do not concern watchers of the workspace: they arrive every second."""


@dataclass(frozen=True, slots=True)
class Change:
    """Changed object and kind of change; never its content."""

    kind: Kind
    owner_id: UUID | None = None
    workspace_id: UUID | None = None
    agent_id: UUID | None = None


async def notify_change(
    tx: Tx, kind: Kind, *, owner_id: UUID, workspace_id: UUID, agent_id: UUID | None = None
) -> None:
    """Delivered when `tx` commits."""
    await notify(tx, CHANNEL, notice_of(kind, owner_id, workspace_id, agent_id))


async def notify_changes(tx: Tx, kind: Kind, places: Sequence[tuple[UUID, UUID]]) -> None:
    """Notify changes of many workspaces, each with its owner before it: one statement for any number."""
    await notify_all(tx, CHANNEL, [notice_of(kind, owner_id, workspace_id) for owner_id, workspace_id in places])


async def notify_agents(tx: Tx, kind: Kind, places: Sequence[tuple[UUID, UUID, UUID]]) -> None:
    """Notify changes of many agents, each with owner and workspace before it: one statement for any number."""
    await notify_all(tx, CHANNEL, [notice_of(kind, *place) for place in places])


def notice_of(kind: Kind, owner_id: UUID, workspace_id: UUID, agent_id: UUID | None = None) -> str:
    """Return the notice of a change, for statements that send it themselves."""
    return f"{kind} {owner_id} {workspace_id} {agent_id or ''}"


def parse_change(payload: str) -> Change:
    """Parse a notice of `notify_change`. Raises ValueError for anything else."""
    kind, owner, workspace, agent = payload.split(" ")
    return Change(kind, UUID(owner), UUID(workspace), UUID(agent) if agent else None)  # type: ignore[arg-type]
