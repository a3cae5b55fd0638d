"""The server starts, answers, and stops."""

from __future__ import annotations

from tests.kit.coderd import running_coderd


async def test_healthz_and_unknown_routes() -> None:
    async with running_coderd() as world:
        answer = await world.get("/healthz")
        assert (answer.status_code, answer.text) == (200, "OK")
        assert answer.headers["x-coder-build-version"] == "v2.34.0"
        missing = await world.get("/api/v2/nothing")
        assert (missing.status_code, missing.json()) == (404, {"message": "Route not found."})
        info = (await world.get("/api/v2/buildinfo")).json()
        assert info["version"] == "v2.34.0"
