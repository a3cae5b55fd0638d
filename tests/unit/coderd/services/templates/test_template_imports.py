"""A version from upload to import, through the real API."""

import trio

from tests.kit.provisioners.scripted_provisioner import ended, new_version, working_daemon
from tests.kit.server.server_in_process import running_coderd


async def test_import_from_upload_to_resources() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world, name="v1", message="first")
        assert version["job"]["status"] == "pending"
        assert version["matched_provisioners"] == {"count": 0, "available": 0, "most_recently_seen": None}
        async with working_daemon(world):
            with trio.fail_after(60):
                current = await ended(world, f"/api/v2/templateversions/{version['id']}")
        assert current["job"]["status"] == "succeeded"
        assert "matched_provisioners" not in current
        logs = (await world.get(f"/api/v2/templateversions/{version['id']}/logs")).json()
        assert [entry["output"] for entry in logs] == ["a template_import"]
        resources = (await world.get(f"/api/v2/templateversions/{version['id']}/resources")).json()
        assert [(item["name"], item["workspace_transition"]) for item in resources] == [("box", "start")]
        assert resources[0]["agents"][0]["name"] == "main"
