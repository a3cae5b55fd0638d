"""The arrival of an agent: what its new link changes, in one statement, as thousands return after a restart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

from coder.coderd.store.agents.disconnects import KEPT
from coder.coderd.store.workspaces.change_feed import CHANNEL

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class ArrivalRow:
    """A link that opened."""

    agent_id: UUID
    agent_name: str
    workspace_id: UUID
    link_id: UUID
    api_version: str
    at: datetime
    lost_at: datetime | None
    """Time of an end that no server stored; None if the end of the last link is known."""
    ended: str
    cause: str
    detail: str
    """About that end, as are the two before."""


# All parts see the rows of before: the new disconnect has to be inserted as ended, and is not among those counted.
_ARRIVE = text(
    "WITH lost AS (INSERT INTO workspace_agent_disconnects "
    "(workspace_id, agent_name, disconnected_at, ended, returned_at, cause, detail) "
    "SELECT CAST(:workspace_id AS uuid), CAST(:agent_name AS text), CAST(:lost_at AS timestamptz), "
    "CAST(:ended AS text), CAST(:at AS timestamptz), CAST(:cause AS text), CAST(:detail AS text) "
    "WHERE CAST(:lost_at AS timestamptz) IS NOT NULL), "
    "surplus AS (DELETE FROM workspace_agent_disconnects WHERE workspace_id = CAST(:workspace_id AS uuid) "
    "AND agent_name = CAST(:agent_name AS text) AND CAST(:lost_at AS timestamptz) IS NOT NULL AND id NOT IN ("
    "SELECT id FROM workspace_agent_disconnects WHERE workspace_id = CAST(:workspace_id AS uuid) "
    "AND agent_name = CAST(:agent_name AS text) ORDER BY id DESC LIMIT CAST(:kept AS integer))), "
    "returned AS (UPDATE workspace_agent_disconnects SET returned_at = CAST(:at AS timestamptz) "
    "WHERE workspace_id = CAST(:workspace_id AS uuid) AND agent_name = CAST(:agent_name AS text) "
    "AND returned_at IS NULL), "
    "connected AS (UPDATE workspace_agents SET link_id = CAST(:link_id AS uuid), "
    "api_version = CAST(:api_version AS text), "
    "first_connected_at = coalesce(first_connected_at, CAST(:at AS timestamptz)), "
    "last_connected_at = CAST(:at AS timestamptz), disconnected_at = NULL, updated_at = CAST(:at AS timestamptz) "
    "WHERE id = CAST(:agent_id AS uuid) RETURNING id) "
    "SELECT pg_notify(CAST(:channel AS text), CAST(:notice AS text)) FROM connected"
)


async def record_arrival(tx: Tx, arrival: ArrivalRow, notice: str) -> None:
    """Record that a link opened, end the agent's open disconnects, and send `notice` of a change.

    An end that no server stored is inserted, and the oldest disconnects beyond `KEPT` are deleted.
    """
    await tx.execute(_ARRIVE, {**asdict(arrival), "kept": KEPT - 1, "channel": CHANNEL, "notice": notice})
