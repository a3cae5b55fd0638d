"""Only experiments that are present are announced."""

from __future__ import annotations

from coder.coderd.config.experiments import NOT_SERVED
from tests.kit.server.server_in_process import running_coderd


async def test_absent_experiments_are_not_listed() -> None:
    async with running_coderd(first_user=True, experiments=("oauth2", *NOT_SERVED)) as world:
        assert (await world.get("/api/v2/experiments")).json() == ["oauth2"]
        assert (await world.post("/api/experimental/mcp/http", {})).status_code == 404
