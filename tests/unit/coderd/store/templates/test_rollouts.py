"""Rollouts as rows: one open at a time, and what the deletion of a group leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from coder.base.ids import new_uuid
from coder.coderd.store.engine.errors import IntegrityError, constraint_of
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates.rollouts import RolloutRow
from coder.domain.templates.rollouts import OPEN
from tests.kit.server.workspaces import new_workspace, workspace_world


async def test_rollout_rows() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        made = await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "few"})
        group_id, template_id = UUID(made.json()["id"]), UUID(workspace["template_id"])
        version_id = UUID(workspace["latest_build"]["template_version_id"])
        now = world.ctx.clock.now()
        first = RolloutRow(
            id=new_uuid(),
            template_id=template_id,
            template_version_id=version_id,
            former_version_id=version_id,
            group_id=group_id,
            stages=[0, 100],
            percent=0,
            status="running",
            message="",
            failure_percent=20,
            minimum_builds=5,
            created_by=UUID(world.user_id),
            created_at=now,
            updated_at=now,
            stage_started_at=now,
            ended_at=None,
        )
        run: Any = world.ctx.db.run
        await run(store.insert_rollout, first)
        for status in OPEN:
            with pytest.raises(IntegrityError) as refused:
                await run(store.insert_rollout, replace(first, id=new_uuid(), status=status))
            assert constraint_of(refused.value) == "ix_template_rollouts_open"
        await run(store.insert_rollout, replace(first, id=new_uuid(), status="completed", ended_at=now))
        assert await run(store.find_open, template_id) == first
        assert await run(store.list_applying, [template_id, new_uuid()]) == {template_id: first}
        assert await run(store.list_open_templates) == [template_id]
        assert len(await run(store.list_views, template_id, 10)) == 2

        assert await run(store.list_members, group_id) == set()
        await run(group_store.add_members, group_id, [UUID(world.user_id)])
        assert await run(store.list_members, group_id) == {UUID(world.user_id)}
        (item,) = await run(store.list_workspaces, first)
        assert (item.version_id, item.has_succeeded, item.in_group) == (version_id, True, True)
        assert [build.status for build in await run(store.list_builds, first)] == []
        earlier = replace(first, stage_started_at=workspace_time(workspace))
        assert [build.status for build in await run(store.list_builds, earlier)] == ["succeeded"]
        await run(group_store.delete_group, group_id)
        left = await run(store.find_open, template_id)
        assert left == replace(first, group_id=None)
        assert [item.in_group for item in await run(store.list_workspaces, left)] == [False]


def workspace_time(workspace: Any) -> datetime:
    return datetime.fromisoformat(workspace["latest_build"]["created_at"])
