"""Times of last use: written in one batch, kept when writing fails, never moved back."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from coder.coderd.loops import last_use as loop
from coder.coderd.services.activity import last_use
from coder.coderd.store.engine.availability import DatabaseAwayError
from tests.kit.agents.scripted_agent import workspace_world


async def test_use_written_once_and_never_decreases(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world() as scene:
        ctx, path = scene.world.ctx, f"/api/v2/workspaces/{scene.workspace['id']}"
        workspace_id, later = UUID(scene.workspace["id"]), ctx.clock.now() + timedelta(hours=1)
        used = ctx.services.last_use
        assert await used.flush() == 0
        used.note(workspace_id, later)
        used.note(workspace_id, later - timedelta(minutes=5))

        async def away(*_: object) -> None:
            raise OSError("the database is away")

        with monkeypatch.context() as broken:
            broken.setattr(last_use, "_write", away)
            with pytest.raises(DatabaseAwayError):
                await used.flush()
        assert await loop.turn(ctx, ctx.log) == loop.EVERY
        workspace = (await scene.world.get(path)).json()
        assert datetime.fromisoformat(workspace["last_used_at"]) == later
        used.note(workspace_id, later - timedelta(minutes=5))
        assert await used.flush() == 1
        workspace = (await scene.world.get(path)).json()
        assert datetime.fromisoformat(workspace["last_used_at"]) == later
