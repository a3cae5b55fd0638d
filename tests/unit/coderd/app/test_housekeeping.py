"""Purging and key rotation: deleted rows, kept rows, valid tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from coder.api.base.refusals import Unauthenticated
from coder.base.clock import FakeClock
from coder.coderd.services.foundation.signing_keys import SigningKeys, rotate_due
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.site.retention import limits, purge_due
from coder.coderd.store.workspaces.port_shares import PortShareRow, list_port_shares, put_port_share
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.server.server_in_process import running_coderd

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_only_old_rows_are_purged() -> None:
    clock = FakeClock(START)
    day = timedelta(days=1)
    settings: dict[str, Any] = {
        "audit_logs_retention": 30 * day,
        "connection_logs_retention": timedelta(),
        "session_duration": day,
    }
    async with agent_world(clock=clock, **settings) as view_context:
        async with connected_agent(view_context) as agent:
            stats = agent_pb2.UpdateStatsRequest(stats=agent_pb2.Stats(connection_count=1))
            await agent.call("UpdateStats", stats, agent_pb2.UpdateStatsResponse)
        ctx, workspace_id = view_context.world.ctx, UUID(view_context.workspace["id"])
        for port, expires_at in ((8080, START + day), (9090, None)):
            await ctx.db.run(put_port_share, PortShareRow(workspace_id, "main", port, "public", "http", expires_at))
        assert not any((await purge_due(ctx)).values())
        assert "connection_logs" not in limits(ctx, clock.now()), "0 keeps for ever"
        clock.advance((9 * day).total_seconds())
        deleted = await purge_due(ctx)
        assert deleted["expired_port_shares"] == 1
        assert [item.port for item in await ctx.db.read(list_port_shares, workspace_id, START)] == [9090]
        assert deleted["expired_api_keys"] > 0 and deleted["audit_logs"] == deleted["workspace_agent_stats"] == 0
        clock.advance((30 * day).total_seconds())
        assert (await purge_due(ctx))["audit_logs"] > 0
        clock.advance((150 * day).total_seconds())
        assert (await purge_due(ctx))["workspace_agent_stats"] == 1
        assert (await purge_due(ctx))["workspace_agent_logs"] == 0, "the current agent's stay"


async def test_tokens_outlive_key_by_a_day() -> None:
    clock = FakeClock(START)
    async with running_coderd(clock=clock) as world:
        ctx, peer = world.ctx, uuid4()
        session = resume_tokens.ResumeBinding(uuid4(), "key")
        await ctx.services.signing_keys.get(resume_tokens.FEATURE)
        clock.advance(timedelta(days=29, hours=23).total_seconds())
        assert await rotate_due(ctx) == []
        token = (await resume_tokens.issue(ctx, peer, session)).token
        clock.advance(timedelta(hours=2).total_seconds())
        assert await rotate_due(ctx) == [resume_tokens.FEATURE]
        assert await rotate_due(ctx) == []
        assert await resume_tokens.read_untrusted(ctx, token, session) == (peer, "")
        young = (await resume_tokens.issue(ctx, peer, session)).token
        assert await resume_tokens.read_untrusted(ctx, young, session) == (peer, "")
        ctx.services.signing_keys = SigningKeys(ctx)  # another replica
        assert await resume_tokens.read_untrusted(ctx, token, session) == (peer, "")
        clock.advance(timedelta(hours=26).total_seconds())
        with pytest.raises(Unauthenticated):
            await resume_tokens.read_untrusted(ctx, token, session)
