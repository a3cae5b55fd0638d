"""Workspaces over HTTP: creating, reading, changing, building."""

from functools import partial
from typing import Any
from uuid import uuid4

from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import agent, resource
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import build, create, new_workspace, without_daemon, workspace_world


async def test_creation_pending_then_complete() -> None:
    async with workspace_world() as (world, _):
        answer = await create(world, "one", ttl_ms=3_600_000, rich_parameter_values=[{"name": "cpu", "value": "4"}])
        assert answer.status_code == 201, answer.text
        first = answer.json()["latest_build"]
        assert (first["status"], first["job"]["status"], first["template_version_name"]) == ("pending", "pending", "")
        assert first["matched_provisioners"]["count"] == 1
        workspace = await new_workspace(world, "two", ttl_ms=3_600_000)
        latest = workspace["latest_build"]
        assert latest["status"] == "running"
        assert [item["name"] for item in latest["resources"]] == ["box", "disk"]
        agent_shape = latest["resources"][0]["agents"][0]
        assert agent_shape["status"] == "connecting"
        assert agent_shape["health"] == {"healthy": False, "reason": "agent has not yet connected"}
        assert [app["slug"] for app in agent_shape["apps"]] == ["web", "pub"]
        assert agent_shape["apps"][1]["subdomain_name"] == "pub--two--admin"
        assert workspace["health"] == {"healthy": False, "failing_agents": [agent_shape["id"]]}
        assert latest["deadline"] is not None
        assert latest["has_external_agent"] is False


async def test_creation_refusals() -> None:
    async with workspace_world() as (world, _):
        await new_workspace(world, "one")
        taken = await create(world, "ONE")
        assert taken.status_code == 409
        assert taken.json()["message"] == 'Workspace "ONE" already exists.'
        response = await create(world, "a_b")
        assert response.json()["validations"] == [
            {"field": "name", "detail": 'Validation failed for tag "workspace_name" with value: "a_b"'}
        ]
        response = await create(world, "x", rich_parameter_values=[{"name": "region", "value": "mars"}])
        assert response.status_code == 400
        assert response.json()["message"] == "Unable to validate parameters"
        response = await create(world, "x", ttl_ms=59_999)
        assert response.json()["message"] == "Invalid Workspace Time to Shutdown."
        response = await create(world, "x", autostart_schedule="tomorrow")
        assert response.json()["message"] == "Invalid Autostart Schedule."
        unknown = await create(world, "x", template_id="11111111-1111-4111-8111-111111111111")
        assert unknown.status_code == 400
        assert unknown.json()["validations"] == [{"field": "template_id", "detail": "template not found"}]
        listed = await world.get("/api/v2/workspaces", params={"q": "name:x"})
        assert listed.json() == {"workspaces": [], "count": 0}


async def test_start_stop_start_delete() -> None:
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "w", rich_parameter_values=[{"name": "cpu", "value": "4"}])
        first_agent = workspace["latest_build"]["resources"][0]["agents"][0]["id"]
        stopped = await build(world, workspace["id"], "stop")
        assert stopped["latest_build"]["status"] == "stopped"
        assert [item["name"] for item in stopped["latest_build"]["resources"]] == ["disk"]
        assert (await world.get(f"/api/v2/workspaceagents/{first_agent}")).status_code == 404
        started = await build(
            world, workspace["id"], "start", rich_parameter_values=[{"name": "debug", "value": "true"}]
        )
        assert started["latest_build"]["build_number"] == 3
        assert started["latest_build"]["resources"][0]["agents"][0]["id"] != first_agent
        values = (await world.get(f"/api/v2/workspacebuilds/{started['latest_build']['id']}/parameters")).json()
        assert {item["name"]: item["value"] for item in values} == {"region": "eu", "cpu": "4", "debug": "true"}
        assert answers.seen[-1].workspace_build.state == b'{"stopped":true}'
        lowered = await world.post(
            f"/api/v2/workspaces/{workspace['id']}/builds",
            {"transition": "start", "rich_parameter_values": [{"name": "cpu", "value": "2"}]},
        )
        assert lowered.status_code == 400
        deleted = await build(world, workspace["id"], "delete")
        assert deleted["latest_build"]["status"] == "deleted"
        assert (await world.get(f"/api/v2/workspaces/{workspace['id']}")).status_code == 410
        assert (await world.get("/api/v2/users/me/workspace/w")).status_code == 404
        numbers = [
            item["build_number"] for item in (await world.get(f"/api/v2/workspaces/{workspace['id']}/builds")).json()
        ]
        assert numbers == [4, 3, 2, 1]
        await new_workspace(world, "w")  # the name is free again


async def test_one_build_at_a_time_pending_cancels_immediately() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        await without_daemon(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        pending = (await world.post(path, {"transition": "stop"})).json()
        refused = await world.post(path, {"transition": "start"})
        assert refused.status_code == 409
        assert refused.json() == {
            "message": "A workspace build is already active.",
            "detail": "A workspace build is already active.",
        }
        build_path = f"/api/v2/workspacebuilds/{pending['id']}"
        mismatched = await world.patch(f"{build_path}/cancel", params={"expect_status": "running"})
        assert mismatched.status_code == 412
        assert (await world.patch(f"{build_path}/cancel", params={"expect_status": "soon"})).status_code == 400
        assert (await world.get(f"{build_path}/resources")).status_code == 400
        canceled = await world.patch(f"{build_path}/cancel", params={"expect_status": "pending"})
        assert canceled.json() == {"message": "Job has been marked as canceled..."}
        assert (await world.get(build_path)).json()["status"] == "canceled"
        assert (await world.patch(f"{build_path}/cancel")).status_code == 400


async def test_settings_changes() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w", ttl_ms=3_600_000)
        path = f"/api/v2/workspaces/{workspace['id']}"
        put = world.put
        assert (await put(f"{path}/autostart", {"schedule": "CRON_TZ=UTC 0 7 * * 1-5"})).status_code == 204
        current = (await world.get(path)).json()
        assert current["autostart_schedule"] == "CRON_TZ=UTC 0 7 * * 1-5"
        assert current["next_start_at"] is not None
        assert (await put(f"{path}/autostart", {"schedule": "CRON_TZ=UTC 0 7 1 * *"})).status_code == 400
        assert (await put(f"{path}/autostart", {"schedule": None})).status_code == 204
        assert "autostart_schedule" not in (await world.get(path)).json()
        past = await put(f"{path}/extend", {"deadline": "2020-01-01T00:00:00Z"})
        assert past.status_code == 400
        extended = await put(f"{path}/extend", {"deadline": "2100-01-01T00:00:00Z"})
        assert extended.json() == {"message": "Deadline updated to 2100-01-01T00:00:00Z."}
        assert (await put(f"{path}/ttl", {"ttl_ms": 59_999})).status_code == 400
        assert (await put(f"{path}/ttl", {"ttl_ms": None})).status_code == 204
        assert (await world.get(path)).json()["latest_build"]["deadline"] is None
        manual = await put(f"{path}/extend", {"deadline": "2100-01-01T00:00:00Z"})
        assert (manual.status_code, manual.json()["message"]) == (409, "Workspace shutdown is manual.")
        assert (await put(f"{path}/autoupdates", {"automatic_updates": "always"})).status_code == 204
        assert (await put(f"{path}/autoupdates", {})).status_code == 400
        assert (await put(f"{path}/favorite")).status_code == 204
        assert (await world.get(path)).json()["favorite"] is True
        assert (await world.delete(f"{path}/favorite")).status_code == 204
        assert (await world.patch(path, {"name": "w"})).status_code == 204
        assert (await world.patch(path, {"name": "other"})).status_code == 400
        for body in ({}, {"agent_id": "no id", "app_name": 5}, {"app_name": "unknown-app"}, ["no object"]):
            assert (await world.post(f"{path}/usage", body)).status_code == 204
        assert (await world.post(f"{path}/usage")).status_code == 204
        assert (await world.get(f"{path}/resolve-autostart")).json() == {"parameter_mismatch": False}


async def test_dormancy_hides_and_starting_activates() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        dormant = await world.put(f"{path}/dormant", {"dormant": True})
        assert dormant.json()["dormant_at"] is not None
        assert (await world.put(f"{path}/dormant", {"dormant": True})).status_code == 304
        assert (await world.get("/api/v2/workspaces")).json()["count"] == 0
        assert (await world.get("/api/v2/workspaces", params={"q": "dormant:true"})).json()["count"] == 1
        activated = await build(world, workspace["id"], "start")
        assert activated["dormant_at"] is None


async def test_workspace_permissions() -> None:
    async with workspace_world() as (world, _):
        owner_id, owner = await world.member("alice")
        _, stranger = await world.member("bob")
        _, manager = await world.member("tadm", ["template-admin"])
        workspace = await new_workspace(world, "w", user="alice")
        path = f"/api/v2/workspaces/{workspace['id']}"
        assert (await world.get(path, token="")).status_code == 401
        assert (await world.get(path, token=stranger)).status_code == 404
        assert (await world.get(path, token=manager)).status_code == 200
        assert (await world.put(f"{path}/ttl", {"ttl_ms": None}, token=manager)).status_code == 403
        assert (
            await world.put(f"{path}/autoupdates", {"automatic_updates": "never"}, token=manager)
        ).status_code == 404
        assert (await world.put(f"{path}/favorite", token=world.token)).status_code == 403
        assert (await create(world, "x", user="alice", token=stranger)).status_code == 403
        assert (await world.get("/api/v2/workspaces", token=stranger)).json()["count"] == 0
        assert (await world.get("/api/v2/workspaces", token=owner)).json()["count"] == 1
        build_path = f"/api/v2/workspacebuilds/{workspace['latest_build']['id']}"
        assert (await world.get(f"{build_path}/state", token=owner)).status_code == 404
        assert (await world.get(f"{build_path}/state", token=manager)).content == b'{"version":4}'
        assert (await world.patch(f"{build_path}/cancel", token=owner)).status_code == 403
        state = await world.post(f"{path}/builds", {"transition": "start", "state": "e30="}, token=owner)
        assert (state.status_code, state.json()["message"]) == (403, "Only template managers may provide custom state")
        # shared with role `use`: reading and building, not changing
        me = (await world.get("/api/v2/users/me", token=stranger)).json()["id"]
        shared = await world.patch(f"{path}/acl", {"user_roles": {me: "use"}}, token=owner)
        assert shared.status_code == 204
        readable = await world.get(path, token=stranger)
        assert readable.json()["shared_with"] == [{"id": me, "actor_type": "user", "name": "", "roles": ["use"]}]
        assert (await world.get("/api/v2/workspaces", params={"q": "shared:true"}, token=stranger)).json()["count"] == 1
        assert (await world.put(f"{path}/ttl", {"ttl_ms": None}, token=stranger)).status_code == 403
        assert (await world.post(f"{path}/builds", {"transition": "stop"}, token=stranger)).status_code == 201
        own_role = await world.patch(f"{path}/acl", {"user_roles": {owner_id: "use"}}, token=owner)
        assert own_role.json()["message"] == "You cannot change your own workspace sharing role."
        everyone = await world.patch(f"{path}/acl", {"group_roles": {world.organization_id: "use"}}, token=owner)
        assert everyone.status_code == 204
        listed = (await world.get(f"{path}/acl", token=owner)).json()
        assert [item["username"] for item in listed["users"]] == ["bob"]
        assert listed["group"][0]["total_member_count"] == 4
        assert (await world.delete(f"{path}/acl", token=owner)).status_code == 204
        assert (await world.get(path, token=stranger)).status_code == 404


async def test_build_refusal_messages() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        user_id, token = await world.member("tadm")
        assert (await world.put(f"/api/v2/users/{user_id}/roles", {"roles": ["template-admin"]})).status_code == 200
        for transition, action in (("start", "update"), ("stop", "update"), ("delete", "delete")):
            answer = await world.post(path, {"transition": transition}, token=token)
            refusal = answer.json()
            assert answer.status_code == 403
            assert refusal["message"] == f"You do not have permission to {action} this workspace."
            assert refusal["detail"].startswith("You don't have permission to view this content.")
        _, stranger = await world.member("stranger")
        assert (await world.post(path, {"transition": "stop"}, token=stranger)).status_code == 404
        unknown = "11111111-1111-4111-8111-111111111111"
        answer = await world.get(path, params={"after_id": unknown})
        assert (answer.status_code, answer.json()) == (
            400,
            {"message": f'Record at "after_id" ("{unknown}") does not exist.'},
        )


async def test_unstorable_result_fails_build_with_reason() -> None:
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "w")
        for agents, reason in (
            ([agent(token="no uuid")], "it must be a UUID"),
            ([agent(name="twin"), agent(name="TWIN")], "duplicate agent name"),
            ([agent(env={"A": "b\x00"})], "contains a zero byte"),
            ([agent(troubleshooting_url="\x00")], "contains a zero byte"),
        ):
            resources = [resource("box", agents=agents)]
            answers.build = partial(lambda resources, _job: {"state": b"kept", "resources": resources}, resources)
            failed = await build(world, workspace["id"], "start")
            assert failed["latest_build"]["status"] == "failed"
            assert reason in failed["latest_build"]["job"]["error"]
            state = await world.get(f"/api/v2/workspacebuilds/{failed['latest_build']['id']}/state")
            assert state.content == b"kept"


async def test_apps_keep_ids_and_older_agents_disappear() -> None:
    app_id = "99999999-1111-4111-8111-111111111111"
    async with workspace_world() as (world, answers):

        def result(job: Any) -> dict[str, Any]:
            return {"state": b"", "resources": [resource("box", agents=[agent(apps=[pb.App(id=app_id, slug="web")])])]}

        answers.build = result
        first = await new_workspace(world, "w")
        second = await build(world, first["id"], "start")
        other = await new_workspace(world, "other")

        def app_of(workspace: dict[str, Any]) -> Any:
            return workspace["latest_build"]["resources"][0]["agents"][0]["apps"][0]["id"]

        assert app_of(first) == app_of(second) == app_id
        assert app_of(other) != app_id  # another workspace's app id is not reused
        builds = (await world.get(f"/api/v2/workspaces/{first['id']}/builds")).json()
        assert ["agents" in item["resources"][0] for item in builds] == [True, False]


async def test_invalid_build_number_reveals_no_users() -> None:
    async with running_coderd(first_user=True) as world:
        other_user, _ = await world.member("somebody")
        _, token = await world.member("curious")
        answers = {
            user: (await world.get(f"/api/v2/users/{user}/workspace/none/builds/x", token=token)).json()["message"]
            for user in ("me", other_user, str(uuid4()))
        }
        own_message, other_message, unknown_message = answers.values()
        assert own_message == "Failed to parse build number as integer."
        assert other_message == unknown_message == "Resource not found or you do not have access to this resource"
