"""Rows renewed during a purge are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert, update

from coder.base.clock import FakeClock
from coder.coderd.store.site.purge import STATEMENTS, purge
from coder.coderd.store.tables.large_nodes import large_nodes
from coder.coderd.store.tables.node_keys import node_keys
from coder.coderd.store.tables.people import api_keys
from coder.coderd.store.tables.workspaces import workspace_port_shares
from coder.coderd.store.workspaces.port_shares import PortShareRow, put_port_share
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.workspaces import new_workspace, workspace_world

LIMIT = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = LIMIT - timedelta(days=1), LIMIT + timedelta(days=1)


@pytest.mark.parametrize("kind", sorted({*STATEMENTS} - {"workspace_agent_logs"}))
def test_conditions_are_rechecked_for_renewed_rows(kind: str) -> None:
    """Only log lines never change."""
    inner, _, outer = STATEMENTS[kind].text.partition(" LIMIT :batch) AND ")
    assert outer and inner.endswith(f" WHERE {outer}")


async def test_rows_renewed_meanwhile_stay() -> None:
    async with workspace_world(clock=FakeClock(NEW + timedelta(days=30))) as (world, _):
        ctx, workspace = world.ctx, await new_workspace(world, "w")
        ident = UUID(workspace["id"])
        key = (await world.post("/api/v2/users/me/keys/tokens", {"token_name": "t"})).json()["key"].partition("-")[0]

        async def insert_old_rows(tx: Any) -> None:
            await put_port_share(tx, PortShareRow(ident, "main", 8080, "public", "http", OLD))
            await tx.execute(insert(node_keys).values(key=b"k" * 32, owner="owner", seen_at=OLD))
            await tx.execute(insert(large_nodes).values(peer_id=ident, node=b"", told_at=OLD))
            await tx.execute(update(api_keys).where(api_keys.c.id == key).values(expires_at=OLD))

        await ctx.db.run(insert_old_rows)
        renewals = {
            "expired_port_shares": update(workspace_port_shares).values(expires_at=NEW),
            "node_keys": update(node_keys).values(seen_at=NEW),
            "large_nodes": update(large_nodes).values(told_at=NEW),
            "expired_api_keys": update(api_keys).where(api_keys.c.id == key).values(expires_at=NEW),
        }
        deleted: dict[str, int] = {}
        for kind, statement in renewals.items():

            async def renew(tx: Any, statement: Any = statement) -> None:
                await tx.execute(statement)

            async def purge_rows(kind: str = kind) -> Any:
                return await ctx.db.run(purge, {kind: LIMIT})

            deleted |= await overtaken(world, renew, purge_rows)
        assert deleted == dict.fromkeys(renewals, 0)
        later = NEW + timedelta(days=1)
        assert await ctx.db.run(purge, dict.fromkeys(renewals, later)) == dict.fromkeys(renewals, 1)
