"""Organizations: creation and deletion, groups, custom roles, sync settings and quotas."""

from __future__ import annotations

from typing import Any

from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.api.api_description import check, check_list
from tests.kit.provisioners.scripted_provisioner import SERVICE, connected_daemon, ended, new_template, resource
from tests.kit.server.server_in_process import World, running_coderd

DEFAULT = "/api/v2/organizations/default"


async def _organization(world: World, name: str = "science") -> Any:
    created = await world.post("/api/v2/organizations", {"name": name, "display_name": "Science"})
    assert created.status_code == 201, created.text
    check("Organization", created.json())
    return created.json()


async def test_organization_lifecycle() -> None:
    async with running_coderd(first_user=True) as world:
        organization = await _organization(world)
        path = f"/api/v2/organizations/{organization['id']}"
        (me,) = (await world.get(f"{path}/members")).json()
        assert [role["name"] for role in me["roles"]] == ["organization-admin"]
        changed = await world.patch(path, {"name": "sciences", "description": "d"})
        assert (changed.json()["name"], changed.json()["display_name"]) == ("sciences", "Science")
        assert (await world.post("/api/v2/organizations", {"name": "Sciences"})).status_code == 409
        for wrong in ("default", "Bad Name!", ""):
            assert (await world.post("/api/v2/organizations", {"name": wrong})).status_code == 400, wrong
        refused = await world.delete(DEFAULT)
        assert refused.json()["message"] == "Default organization cannot be deleted."
        await world.post(f"{path}/groups", {"name": "left"})
        refused = await world.delete(path)
        assert refused.status_code == 400 and "1 groups" in refused.json()["detail"]
        (left,) = [group for group in (await world.get(f"{path}/groups")).json() if group["name"] == "left"]
        await world.delete(f"/api/v2/groups/{left['id']}")
        assert (await world.delete(path)).json() == {"message": "Organization has been deleted."}
        assert (await world.get(path)).status_code == 404
        assert (await world.get("/api/v2/users/me")).json()["organization_ids"] == [world.organization_id]


async def test_another_organization_is_hidden() -> None:
    async with running_coderd(first_user=True) as world:
        organization = await _organization(world)
        _, token = await world.member("alice")
        group = (await world.get(f"/api/v2/organizations/{organization['id']}/groups")).json()[0]
        for path in (
            f"/api/v2/organizations/{organization['id']}",
            f"/api/v2/organizations/{organization['id']}/groups",
            f"/api/v2/organizations/{organization['id']}/members",
            f"/api/v2/groups/{group['id']}",
        ):
            assert (await world.get(path, token=token)).status_code == 404, path
        assert (await world.post("/api/v2/organizations", {"name": "x"}, token=token)).status_code == 403
        view = (await world.get("/api/v2/groups", token=token)).json()
        assert [item["organization_id"] for item in view] == [world.organization_id]


async def test_groups_and_members() -> None:
    async with running_coderd(first_user=True) as world:
        alice, token = await world.member("alice")
        await world.member("bob")
        created = await world.post(f"{DEFAULT}/groups", {"name": "ops", "quota_allowance": 5})
        assert created.status_code == 201
        check("Group", created.json())
        path = f"/api/v2/groups/{created.json()['id']}"
        assert (await world.get(path, token=token)).status_code == 404, "she is not a member"
        changed = await world.patch(path, {"add_users": [alice], "display_name": "Operations"})
        check("Group", changed.json())
        assert [user["username"] for user in changed.json()["members"]] == ["alice"]
        mine = (await world.get(path, token=token)).json()
        assert (mine["display_name"], mine["total_member_count"]) == ("Operations", 1)
        assert (await world.patch(path, {"name": "mine"}, token=token)).status_code == 403
        assert (await world.patch(path, {"add_users": [alice]})).status_code == 400, "twice"
        page = (await world.get(f"{path}/members", params={"q": "ali", "limit": 1})).json()
        check("GroupMembersResponse", page)
        assert page["count"] == 1
        everyone = (await world.get(f"{DEFAULT}/groups/Everyone")).json()
        assert {user["username"] for user in everyone["members"]} == {"admin", "alice", "bob"}
        seen = (await world.get(f"{DEFAULT}/groups/Everyone", token=token)).json()
        assert [user["username"] for user in seen["members"]] == ["alice"], "members see themselves"
        listed = await world.get("/api/v2/groups", params={"organization": "coder", "has_member": "alice"})
        check_list("Group", listed.json())
        assert {group["name"] for group in listed.json()} == {"Everyone", "ops"}
        assert (await world.get("/api/v2/groups", params={"has_member": "unknown"})).status_code == 400
        await world.delete(f"{DEFAULT}/members/{alice}")
        assert (await world.get(path)).json()["members"] == []
        assert (await world.delete(path)).status_code == 200
        assert (await world.get(path)).status_code == 404


async def test_everyone_group_changes_only_quota() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/groups/{world.organization_id}"
        for change in ({"name": "all"}, {"add_users": [world.user_id]}, {"display_name": "All"}):
            assert (await world.patch(path, change)).status_code == 400, change
        assert (await world.delete(path)).status_code == 400
        assert (await world.post(f"{DEFAULT}/groups", {"name": "Everyone"})).status_code == 400
        assert (await world.post(f"{DEFAULT}/groups", {"name": "a", "quota_allowance": -1})).status_code == 400
        assert (await world.post(f"{DEFAULT}/groups", {"name": "a"})).status_code == 201
        assert (await world.post(f"{DEFAULT}/groups", {"name": "a"})).status_code == 409
        assert (await world.patch(path, {"quota_allowance": 7})).json()["quota_allowance"] == 7


def _role(name: str, *permissions: tuple[str, str, bool], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "display_name": "A Role",
        "organization_permissions": [
            {"resource_type": kind, "action": action, "negate": negate} for kind, action, negate in permissions
        ],
        **more,
    }


async def test_custom_role_grants_exact_permissions() -> None:
    async with running_coderd(first_user=True) as world:
        alice, token = await world.member("alice")
        path = f"{DEFAULT}/members/roles"
        created = await world.post(path, _role("auditing", ("idpsync_settings", "read", False)))
        assert created.status_code == 200, created.text
        check("Role", created.json())
        sync = f"{DEFAULT}/settings/idpsync/groups"
        assert (await world.get(sync, token=token)).status_code == 403
        given = await world.put(f"{DEFAULT}/members/{alice}/roles", {"roles": ["auditing"]})
        assert [role["display_name"] for role in given.json()["roles"]] == ["A Role"]
        assert (await world.get(sync, token=token)).status_code == 200
        assert (await world.patch(sync, {}, token=token)).status_code == 403
        await world.put(path, _role("auditing", ("idpsync_settings", "*", False)))
        assert (await world.patch(sync, {}, token=token)).status_code == 200
        listed = [role for role in (await world.get(path)).json() if role["name"] == "auditing"]
        check("AssignableRoles", {**listed[0], "organization_permissions": []})
        assert listed[0]["built_in"] is False and listed[0]["assignable"] is True
        assert (await world.delete(f"{path}/auditing")).status_code == 204
        assert (await world.get(f"{DEFAULT}/members/{alice}")).json()["roles"] == []
        assert (await world.get(sync, token=token)).status_code == 403


async def test_default_roles_require_assign_permission() -> None:
    async with running_coderd(first_user=True) as world:
        alice, token = await world.member("alice")
        permissions = [("organization", "read", False), ("organization", "update", False)]
        assert (await world.post(f"{DEFAULT}/members/roles", _role("naming", *permissions))).status_code == 200
        member = f"{DEFAULT}/members/{alice}/roles"
        assert (await world.put(member, {"roles": ["naming"]})).status_code == 200
        now = (await world.get(DEFAULT)).json()["default_org_member_roles"]
        more = {"default_org_member_roles": [*now, "organization-admin"]}
        fewer: dict[str, Any] = {"default_org_member_roles": []}
        same = {"default_org_member_roles": now, "description": "renamed"}
        assert (await world.patch(DEFAULT, same, token=token)).json()["description"] == "renamed"
        for change in (more, fewer):
            assert (await world.patch(DEFAULT, change, token=token)).status_code == 403, change
        assert (await world.put(member, {"roles": ["naming", "organization-user-admin"]})).status_code == 200
        refused = await world.patch(DEFAULT, more, token=token)
        assert (refused.status_code, refused.json()["message"]) == (
            400,
            f'not authorized to assign role "organization-admin:{world.organization_id}"',
        )
        assert (await world.patch(DEFAULT, fewer, token=token)).json()["default_org_member_roles"] == []
        changed = await world.patch(DEFAULT, more)
        assert sorted(changed.json()["default_org_member_roles"]) == sorted(more["default_org_member_roles"])


async def test_custom_default_role_applies() -> None:
    """Its grants apply, and its denials, also to members with another role that grants the same."""
    async with running_coderd(first_user=True) as world:
        alice, token = await world.member("alice")
        roles, member = f"{DEFAULT}/members/roles", f"{DEFAULT}/members/{alice}/roles"
        now = (await world.get(DEFAULT)).json()["default_org_member_roles"]

        async def may_make_groups(name: str) -> bool:
            return (await world.post(f"{DEFAULT}/groups", {"name": name}, token=token)).is_success

        async def set_default_role(*names: str) -> None:
            expected = {"default_org_member_roles": [*now, *names]}
            assert (await world.patch(DEFAULT, expected)).status_code == 200

        grants = (("group", "create", False), ("group", "read", False))
        assert (await world.post(roles, _role("grouping", *grants))).status_code == 200
        assert (await world.post(roles, _role("alone", ("group", "create", True)))).status_code == 200
        assert not await may_make_groups("a")
        await set_default_role("grouping")
        assert await may_make_groups("a")
        await set_default_role()
        assert not await may_make_groups("b")
        assert (await world.put(member, {"roles": ["organization-user-admin"]})).status_code == 200
        assert await may_make_groups("b")
        await set_default_role("alone")
        assert not await may_make_groups("c")


async def test_invalid_custom_roles() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"{DEFAULT}/members/roles"
        wrong = [
            _role("organization-admin"),
            _role("Bad Name"),
            _role("a", ("nothing", "read", False)),
            _role("a", ("workspace", "fly", False)),
            _role("a", site_permissions=[{"resource_type": "user", "action": "read", "negate": False}]),
            _role("a", user_permissions=[{"resource_type": "user", "action": "read", "negate": False}]),
        ]
        for body in wrong:
            assert (await world.post(path, body)).status_code == 400, body
        assert (await world.put(path, _role("unknown"))).status_code == 404
        assert (await world.post(path, _role("twice"))).status_code == 200
        assert (await world.post(path, _role("twice"))).status_code == 409
        maker, token = await world.member("maker")
        await world.post(path, _role("makers", ("assign_org_role", "create", False)))
        await world.put(f"{DEFAULT}/members/{maker}/roles", {"roles": ["makers"]})
        refused = await world.post(path, _role("more", ("template", "delete", False)), token=token)
        assert refused.status_code == 403 and "template" in refused.json()["detail"]
        less = await world.post(path, _role("less", ("workspace", "create", True)), token=token)
        assert less.status_code == 200, "removing a permission does not escalate"


async def test_sync_mapping_changes_by_pair() -> None:
    async with running_coderd(first_user=True) as world:
        group = world.organization_id
        path = f"{DEFAULT}/settings/idpsync/groups"
        whole = {"field": "groups", "mapping": {"a": [group]}, "regex_filter": "^x", "auto_create_missing_groups": True}
        assert (await world.patch(path, whole)).json() == whole
        config = {"field": "g", "regex_filter": None, "auto_create_missing_groups": False}
        assert (await world.patch(f"{path}/config", config)).json() == {**config, "mapping": {"a": [group]}}
        pairs = {"add": [{"Given": "b", "Gets": group}], "remove": [{"Given": "a", "Gets": group}]}
        assert (await world.patch(f"{path}/mapping", pairs)).json()["mapping"] == {"b": [group]}
        assert (await world.patch(path, {"regex_filter": "("})).status_code == 400
        assert (await world.patch(path, {"mapping": {"a": ["no-id"]}})).status_code == 400
        roles = f"{DEFAULT}/settings/idpsync/roles"
        assert (await world.patch(roles, {"field": "r", "mapping": {"a": ["organization-admin"]}})).status_code == 200
        assert (await world.patch(f"{roles}/config", {"field": "q"})).json()["mapping"] == {"a": ["organization-admin"]}
        site = "/api/v2/settings/idpsync/organization"
        assert (await world.patch(f"{site}/config", {"field": "o", "assign_default": False})).status_code == 200
        assert (await world.get(site)).json() == {"field": "o", "mapping": {}, "organization_assign_default": False}


async def test_quotas_hidden_from_other_admins() -> None:
    async with running_coderd(first_user=True) as world:
        elsewhere = f"/api/v2/organizations/{(await _organization(world))['id']}/members"
        user_id, token = await world.member()
        await world.post(f"{elsewhere}/{user_id}")
        await world.put(f"{elsewhere}/{user_id}/roles", {"roles": ["organization-admin"]})
        await world.delete(f"{DEFAULT}/members/{user_id}")
        quota = "members/admin/workspace-quota"
        assert (await world.get(f"{DEFAULT}/{quota}", token=token)).status_code == 404
        assert (await world.get(f"{DEFAULT}/{quota}")).status_code == 200


async def test_quota_refuses_expensive_build() -> None:
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        template = await new_template(world)
        await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
        await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
        quota = f"{DEFAULT}/members/me/workspace-quota"

        async def build(name: str, cost: int, before: Any = None) -> tuple[Any, Any]:
            if before is None:
                body = {"name": name, "template_id": template["id"]}
                created = (await world.post("/api/v2/users/me/workspaces", body)).json()
            else:
                await world.post(f"/api/v2/workspaces/{before['id']}/builds", {"transition": "stop"})
                created = before
            job = await daemon.acquire()
            request = pd.CommitQuotaRequest(job_id=job.job_id, daily_cost=cost)
            answer = await daemon.session.call(f"{SERVICE}CommitQuota", request, pd.CommitQuotaResponse)
            if answer.ok:
                await daemon.complete_build(job, state=b"{}", resources=[pb.Resource(name="box", type="t")])
            else:
                await daemon.fail(job, "insufficient quota")
            return created, answer

        first, answer = await build("free", 50)
        assert (answer.ok, answer.budget) == (True, -1), "no group has an allowance"
        assert (await world.get(quota)).json() == {"credits_consumed": 0, "budget": -1}
        await world.patch(f"/api/v2/groups/{world.organization_id}", {"quota_allowance": 60})
        _, answer = await build("second", 10)
        assert (answer.ok, answer.credits_consumed, answer.budget) == (True, 60, 60)
        third, answer = await build("third", 1)
        assert (answer.ok, answer.credits_consumed) == (False, 60)
        assert (await world.get(quota)).json() == {"credits_consumed": 60, "budget": 60}
        await world.patch(f"/api/v2/groups/{world.organization_id}", {"quota_allowance": 5})
        _, answer = await build("free", 20, before=first)
        assert answer.ok, "a cheaper build is never refused"
        assert (await world.get("/api/v2/workspace-quota/me")).json() == {"credits_consumed": 30, "budget": 5}
        _, answer = await build("third", 0, before=third)
        assert answer.ok


async def test_sharing_can_be_turned_off() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"{DEFAULT}/settings/workspace-sharing"
        check("WorkspaceSharingSettings", (await world.get(path)).json())
        changed = await world.patch(path, {"shareable_workspace_owners": "service_accounts"})
        assert changed.json()["shareable_workspace_owners"] == "service_accounts"
        _, token = await world.member("alice")
        assert (await world.get(path, token=token)).status_code == 200
        assert (await world.patch(path, {"sharing_disabled": False}, token=token)).status_code == 403
