"""First user, login, who am I, members."""

from __future__ import annotations

from tests.kit.coderd import running_coderd


async def test_from_empty_to_a_member() -> None:
    async with running_coderd() as world:
        assert (await world.get("/api/v2/users/first")).status_code == 404
        await world.first_user()
        me = (await world.get("/api/v2/users/me")).json()
        assert me["roles"] == [{"name": "owner", "display_name": "Owner"}]
        member_id, token = await world.member("alice")
        seen = await world.get(f"/api/v2/users/{member_id}", token=token)
        assert seen.json()["status"] == "active"
        hidden = await world.get("/api/v2/users/admin", token=token)
        assert hidden.status_code == 404
        signed_out = await world.get("/api/v2/users/me", token="")
        assert signed_out.status_code == 401
        assert "must be provided" in signed_out.json()["detail"]
