"""The server starts, responds, and stops."""

from __future__ import annotations

from coder.domain.access.signed_in import SIGNED_IN
from tests.kit.server.server_in_process import running_coderd


async def test_healthz_and_unknown_routes() -> None:
    async with running_coderd() as world:
        answer = await world.get("/healthz")
        assert (answer.status_code, answer.text) == (200, "OK")
        assert answer.headers["x-coder-build-version"] == "v2.34.0"
        missing = await world.get("/api/v2/nothing")
        assert (missing.status_code, missing.json()) == (404, {"message": "Route not found."})
        info = (await world.get("/api/v2/buildinfo")).json()
        assert info["version"] == "v2.34.0"


async def test_missing_routes_require_sign_in() -> None:
    """Behind the sign-in a stranger learns neither routes nor methods; in front of it every caller does."""
    behind = [f"/api/v2/{part}" for part in sorted(SIGNED_IN)] + ["/api/v2/users/me", "/api/v2/users/none"]
    async with running_coderd(first_user=True) as world:
        for path in behind:
            # Where there is only a WebSocket, every method is answered with 426.
            for method, address, known in (
                ("GET", f"{path}/x/y/z/nothing", {404, 405}),
                ("TRACE", path, {404, 405, 426}),
            ):
                refused = await world.request(method, address, token="")
                assert refused.status_code == 401, (method, address, refused.status_code)
                answer = await world.request(method, address)
                assert answer.status_code in known, (method, address)
        for method, path, status in (
            ("PUT", "/api/v2/users", 405),
            ("PUT", "/api/v2/buildinfo", 405),
            ("POST", "/api/v2/regions", 405),
            ("GET", "/api/v2/buildinfo/nothing", 404),
            ("DELETE", "/api/v2/users/first", 401),
            ("GET", "/api/v2/users/login", 401),
        ):
            assert (await world.request(method, path, token="")).status_code == status, (method, path)
