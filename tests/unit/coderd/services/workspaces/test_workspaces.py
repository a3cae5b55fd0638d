"""Workspaces over the real doors: creating, reading, changing, building."""

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from coder.coderd.store.workspaces.port_shares import PortShareRow, put_port_share
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import agent, resource
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import build, create, new_workspace, without_daemon, workspace_world


async def test_first_answer_is_pending_and_the_result_is_complete() -> None:
    async with workspace_world() as (world, _):
        answer = await create(world, "one", ttl_ms=3_600_000, rich_parameter_values=[{"name": "cpu", "value": "4"}])
        assert answer.status_code == 201, answer.text
        first = answer.json()["latest_build"]
        assert (first["status"], first["job"]["status"], first["template_version_name"]) == ("pending", "pending", "")
        assert first["matched_provisioners"]["count"] == 1
        done = await new_workspace(world, "two", ttl_ms=3_600_000)
        latest = done["latest_build"]
        assert latest["status"] == "running"
        assert [item["name"] for item in latest["resources"]] == ["box", "disk"]
        found = latest["resources"][0]["agents"][0]
        assert found["status"] == "connecting"
        assert found["health"] == {"healthy": False, "reason": "agent has not yet connected"}
        assert [app["slug"] for app in found["apps"]] == ["web", "pub"]
        assert found["apps"][1]["subdomain_name"] == "pub--two--admin"
        assert done["health"] == {"healthy": False, "failing_agents": [found["id"]]}
        assert latest["deadline"] is not None
        assert latest["has_external_agent"] is False


async def test_refusals_of_creation() -> None:
    async with workspace_world() as (world, _):
        await new_workspace(world, "one")
        taken = await create(world, "ONE")
        assert taken.status_code == 409
        assert taken.json()["message"] == 'Workspace "ONE" already exists.'
        bad = await create(world, "a_b")
        assert bad.json()["validations"] == [
            {"field": "name", "detail": 'Validation failed for tag "workspace_name" with value: "a_b"'}
        ]
        bad = await create(world, "x", rich_parameter_values=[{"name": "region", "value": "mars"}])
        assert bad.status_code == 400
        assert bad.json()["message"] == "Unable to validate parameters"
        bad = await create(world, "x", ttl_ms=59_999)
        assert bad.json()["message"] == "Invalid Workspace Time to Shutdown."
        bad = await create(world, "x", autostart_schedule="tomorrow")
        assert bad.json()["message"] == "Invalid Autostart Schedule."
        unknown = await create(world, "x", template_id="11111111-1111-4111-8111-111111111111")
        assert unknown.status_code == 400
        assert unknown.json()["validations"] == [{"field": "template_id", "detail": "template not found"}]
        found = await world.get("/api/v2/workspaces", params={"q": "name:x"})
        assert found.json() == {"workspaces": [], "count": 0}


async def test_a_life_start_stop_start_delete() -> None:
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


async def test_only_one_build_at_a_time_and_a_waiting_one_is_canceled_at_once() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        await without_daemon(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        waiting = (await world.post(path, {"transition": "stop"})).json()
        refused = await world.post(path, {"transition": "start"})
        assert refused.status_code == 409
        assert refused.json() == {
            "message": "A workspace build is already active.",
            "detail": "A workspace build is already active.",
        }
        build_path = f"/api/v2/workspacebuilds/{waiting['id']}"
        wrong = await world.patch(f"{build_path}/cancel", params={"expect_status": "running"})
        assert wrong.status_code == 412
        assert (await world.patch(f"{build_path}/cancel", params={"expect_status": "soon"})).status_code == 400
        assert (await world.get(f"{build_path}/resources")).status_code == 400
        canceled = await world.patch(f"{build_path}/cancel", params={"expect_status": "pending"})
        assert canceled.json() == {"message": "Job has been marked as canceled..."}
        assert (await world.get(build_path)).json()["status"] == "canceled"
        assert (await world.patch(f"{build_path}/cancel")).status_code == 400


async def test_settings() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w", ttl_ms=3_600_000)
        path = f"/api/v2/workspaces/{workspace['id']}"
        put = world.put
        assert (await put(f"{path}/autostart", {"schedule": "CRON_TZ=UTC 0 7 * * 1-5"})).status_code == 204
        found = (await world.get(path)).json()
        assert found["autostart_schedule"] == "CRON_TZ=UTC 0 7 * * 1-5"
        assert found["next_start_at"] is not None
        assert (await put(f"{path}/autostart", {"schedule": "CRON_TZ=UTC 0 7 1 * *"})).status_code == 400
        assert (await put(f"{path}/autostart", {"schedule": None})).status_code == 204
        assert "autostart_schedule" not in (await world.get(path)).json()
        soon = await put(f"{path}/extend", {"deadline": "2020-01-01T00:00:00Z"})
        assert soon.status_code == 400
        late = await put(f"{path}/extend", {"deadline": "2100-01-01T00:00:00Z"})
        assert late.json() == {"message": "Deadline updated to 2100-01-01T00:00:00Z."}
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
        for body in ({}, {"agent_id": "no id", "app_name": 5}, {"app_name": "unheard-of"}, ["no object"]):
            assert (await world.post(f"{path}/usage", body)).status_code == 204
        assert (await world.post(f"{path}/usage")).status_code == 204
        assert (await world.get(f"{path}/resolve-autostart")).json() == {"parameter_mismatch": False}


async def test_dormancy_hides_and_starting_wakes() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        slept = await world.put(f"{path}/dormant", {"dormant": True})
        assert slept.json()["dormant_at"] is not None
        assert (await world.put(f"{path}/dormant", {"dormant": True})).status_code == 304
        assert (await world.get("/api/v2/workspaces")).json()["count"] == 0
        assert (await world.get("/api/v2/workspaces", params={"q": "dormant:true"})).json()["count"] == 1
        woken = await build(world, workspace["id"], "start")
        assert woken["dormant_at"] is None


async def test_who_may_do_what() -> None:
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
        # shared for use: reading and building, not changing
        me = (await world.get("/api/v2/users/me", token=stranger)).json()["id"]
        shared = await world.patch(f"{path}/acl", {"user_roles": {me: "use"}}, token=owner)
        assert shared.status_code == 204
        seen = await world.get(path, token=stranger)
        assert seen.json()["shared_with"] == [{"id": me, "actor_type": "user", "name": "", "roles": ["use"]}]
        assert (await world.get("/api/v2/workspaces", params={"q": "shared:true"}, token=stranger)).json()["count"] == 1
        assert (await world.put(f"{path}/ttl", {"ttl_ms": None}, token=stranger)).status_code == 403
        assert (await world.post(f"{path}/builds", {"transition": "stop"}, token=stranger)).status_code == 201
        own = await world.patch(f"{path}/acl", {"user_roles": {owner_id: "use"}}, token=owner)
        assert own.json()["message"] == "You cannot change your own workspace sharing role."
        everyone = await world.patch(f"{path}/acl", {"group_roles": {world.organization_id: "use"}}, token=owner)
        assert everyone.status_code == 204
        listed = (await world.get(f"{path}/acl", token=owner)).json()
        assert [item["username"] for item in listed["users"]] == ["bob"]
        assert listed["group"][0]["total_member_count"] == 4
        assert (await world.delete(f"{path}/acl", token=owner)).status_code == 204
        assert (await world.get(path, token=stranger)).status_code == 404


async def test_refusals_around_builds_say_what_is_meant() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        user_id, token = await world.member("tadm")
        assert (await world.put(f"/api/v2/users/{user_id}/roles", {"roles": ["template-admin"]})).status_code == 200
        for transition, action in (("start", "update"), ("stop", "update"), ("delete", "delete")):
            answer = await world.post(path, {"transition": transition}, token=token)
            said = answer.json()
            assert answer.status_code == 403
            assert said["message"] == f"You do not have permission to {action} this workspace."
            assert said["detail"].startswith("You don't have permission to view this content.")
        _, stranger = await world.member("stranger")
        assert (await world.post(path, {"transition": "stop"}, token=stranger)).status_code == 404
        unknown = "11111111-1111-4111-8111-111111111111"
        answer = await world.get(path, params={"after_id": unknown})
        assert (answer.status_code, answer.json()) == (
            400,
            {"message": f'Record at "after_id" ("{unknown}") does not exist.'},
        )


async def test_ports() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}/port-share"
        share = {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"}
        assert (await world.post(path, share)).json() == {"workspace_id": workspace["id"], **share}
        assert (await world.post(path, {**share, "share_level": "public"})).status_code == 200
        assert [item["share_level"] for item in (await world.get(path)).json()["shares"]] == ["public"]
        for change, message in (
            ({"share_level": "owner"}, "Port sharing level not allowed."),
            ({"agent_name": "zz"}, "Agent not found."),
            ({"port": 8}, "Port must be between 9 and 65535."),
        ):
            refused = await world.post(path, {**share, **change})
            assert (refused.status_code, refused.json()["message"]) == (400, message)
        gone = await world.request("DELETE", path, json={"agent_name": "main", "port": 8080})
        assert gone.status_code == 200
        assert (await world.request("DELETE", path, json={"agent_name": "main", "port": 8080})).status_code == 404


async def test_shared_ports_end_by_themselves() -> None:
    async with workspace_world() as (world, _):
        workspace, now = await new_workspace(world, "w"), world.ctx.clock.now()
        path = f"/api/v2/workspaces/{workspace['id']}/port-share"
        share = {"agent_name": "main", "port": 8080, "share_level": "public", "protocol": "http"}

        async def ends() -> list[str | None]:
            return [one.get("expires_at") for one in (await world.get(path)).json()["shares"]]

        later, sooner = ((now + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (5, 2))
        answer = await world.post(path, {**share, "expires_at": later})
        assert (answer.status_code, answer.json()["expires_at"]) == (200, later)
        kept = await world.post(path, {**share, "share_level": "authenticated"})  # as upstream's clients say it
        assert kept.json()["expires_at"] == later and await ends() == [later]
        for said, found in ((sooner, sooner), (None, None), (later, later)):
            assert (await world.post(path, {**share, "expires_at": said})).status_code == 200
            assert await ends() == [found]
        refused = await world.post(path, {**share, "expires_at": now.strftime("%Y-%m-%dT%H:%M:%SZ")})
        assert (refused.status_code, refused.json()["validations"][0]["field"]) == (400, "expires_at")
        over = PortShareRow(UUID(workspace["id"]), "main", 8080, "public", "http", now - timedelta(seconds=1))
        await world.ctx.db.run(put_port_share, over)
        assert await ends() == []
        refused = await world.post(path, share)
        assert (refused.status_code, refused.json()["validations"][0]["field"]) == (400, "expires_at")
        assert await ends() == [], "who changes what has just ended does not make it one for ever"
        assert (await world.post(path, {**share, "expires_at": later})).json()["expires_at"] == later
        await world.ctx.db.run(put_port_share, over)
        gone = {"agent_name": "main", "port": 8080}
        assert (await world.request("DELETE", path, json=gone)).status_code == 200
        assert "expires_at" not in (await world.post(path, share)).json(), "nothing is left of it"
        refused = await world.post(path, {**share, "expires_at": later.removesuffix("Z")})
        assert refused.status_code == 400 and "parsing time" in refused.json()["detail"]


async def test_search() -> None:
    async with workspace_world() as (world, _):
        await world.member("alice")
        await new_workspace(world, "one", rich_parameter_values=[{"name": "region", "value": "us"}])
        two = await new_workspace(world, "two", user="alice")
        await build(world, two["id"], "stop")
        await new_workspace(world, "three", user="alice", rich_parameter_values=[{"name": "cpu", "value": "4"}])

        async def names(query: str, **page: str) -> list[str]:
            answer = await world.get("/api/v2/workspaces", params={"q": query, **page})
            assert answer.status_code == 200, answer.text
            return [item["name"] for item in answer.json()["workspaces"]]

        assert await names("") == ["one", "three", "two"]  # running first, then owner and name
        assert await names("", limit="1", offset="1") == ["three"]
        assert await names("owner:me") == ["one"]
        assert await names("owner:ALICE") == ["three", "two"]
        assert await names("alice/tw") == ["two"]
        assert await names("name:HRE") == ["three"]
        assert await names("status:stopped") == ["two"]
        assert await names("status:running owner:alice") == ["three"]
        assert await names("template:full") == ["one", "three", "two"]
        assert await names("template:none") == []
        assert await names("param:region=us param:cpu=4") == ["one", "three"]
        assert await names("param:cpu") == ["one", "three", "two"]
        assert await names("has-agent:connecting") == ["one", "three"]
        assert await names("healthy:true") == []
        assert await names("outdated:false") == ["one", "three", "two"]
        assert await names("has_external_agent:true") == []
        assert await names(f"id:{two['id']}") == ["two"]
        assert await names('last_used_before:"2020-01-01T00:00:00Z"') == []
        assert await names("organization:coder has-ai-task:false") == ["one", "three", "two"]
        assert await names("name:%") == []
        past = await world.get("/api/v2/workspaces", params={"offset": "100"})
        assert past.json() == {"workspaces": [], "count": 3}
        wrong = await world.get("/api/v2/workspaces", params={"q": "colour:red dormant:maybe organization:nope"})
        assert wrong.status_code == 400
        assert {item["field"] for item in wrong.json()["validations"]} == {"colour", "dormant", "organization"}
        assert (await world.get("/api/v2/workspaces", params={"limit": "x"})).status_code == 400


async def test_a_page_costs_a_fixed_number_of_statements() -> None:
    async with workspace_world() as (world, _):
        for number in range(6):
            await new_workspace(world, f"w{number}")
        from sqlalchemy import event

        engine = world.ctx.db.engine.sync_engine
        seen: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
        for limit in ("1", "6"):
            seen.clear()
            answer = await world.get("/api/v2/workspaces", params={"limit": limit})
            assert len(answer.json()["workspaces"]) == int(limit)
            assert len(seen) <= 8, seen


async def test_results_that_cannot_be_stored_fail_the_build_with_a_reason() -> None:
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "w")
        for wrong, said in (
            ([agent(token="no uuid")], "it must be a UUID"),
            ([agent(name="twin"), agent(name="TWIN")], "duplicate agent name"),
            ([agent(env={"A": "b\x00"})], "contains a zero byte"),
            ([agent(troubleshooting_url="\x00")], "contains a zero byte"),
        ):
            made = [resource("box", agents=wrong)]
            answers.build = partial(lambda made, _job: {"state": b"kept", "resources": made}, made)
            failed = await build(world, workspace["id"], "start")
            assert failed["latest_build"]["status"] == "failed"
            assert said in failed["latest_build"]["job"]["error"]
            state = await world.get(f"/api/v2/workspacebuilds/{failed['latest_build']['id']}/state")
            assert state.content == b"kept"


async def test_apps_keep_their_ids_and_older_agents_disappear() -> None:
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
        assert app_of(other) != app_id  # somebody else's id is not taken over
        builds = (await world.get(f"/api/v2/workspaces/{first['id']}/builds")).json()
        assert ["agents" in item["resources"][0] for item in builds] == [True, False]


async def test_a_narrow_key_lists_what_it_may_read() -> None:
    async with workspace_world() as (world, _):
        one = await new_workspace(world, "one")
        await new_workspace(world, "two")

        async def names(**body: Any) -> list[str]:
            made = await world.post("/api/v2/users/me/keys/tokens", body)
            assert made.status_code == 201, made.text
            found = await world.get("/api/v2/workspaces", token=made.json()["key"])
            return [item["name"] for item in found.json()["workspaces"]]

        assert await names(token_name="all") == ["one", "two"]
        assert await names(token_name="templates", scopes=["template:read"]) == []
        assert await names(token_name="reader", scopes=["workspace:read"]) == ["one", "two"]
        limited = [f"workspace:{one['id']}"]
        assert await names(token_name="one", scopes=["workspace:read"], allow_list=limited) == ["one"]


async def test_a_build_number_that_is_none_says_nothing_of_who_there_is() -> None:
    async with running_coderd(first_user=True) as world:
        somebody, _ = await world.member("somebody")
        _, token = await world.member("curious")
        answers = {
            who: (await world.get(f"/api/v2/users/{who}/workspace/none/builds/x", token=token)).json()["message"]
            for who in ("me", somebody, str(uuid4()))
        }
        mine, other, nobody = answers.values()
        assert mine == "Failed to parse build number as integer."
        assert other == nobody == "Resource not found or you do not have access to this resource"
