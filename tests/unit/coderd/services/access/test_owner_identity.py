"""Owners of workspaces in an organization, and the workspaces that get their owner's token, key and secrets."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import trio

from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent, eventually
from tests.kit.server.elsewhere import EVERYTHING, NOTHING, PROVIDER, Elsewhere, elsewhere
from tests.kit.server.workspaces import make_ready, prebuilt, settled, world_with_preset


def _maker() -> dict[str, Any]:
    """Create a role that creates workspaces and tasks for other members, and reads no users outside of the
    organization.
    """
    grants = ("workspace:create", "workspace:read", "task:create", "task:read", "template:read", "template:use")
    pairs = [grant.split(":") for grant in grants]
    permissions = [{"negate": False, "resource_type": kind, "action": action} for kind, action in pairs]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    return {"name": "maker", "display_name": "", "organization_permissions": permissions, **none}


OWNERS: dict[str, dict[str, int]] = {
    # caller: owner -> status; "dormant" has never logged in
    "boss": {"boss": 201, "insider": 201, "dormant": 201, "suspended": 403, "outsider": 403, "admin": 403},
    "maker": {"insider": 201, "dormant": 201, "suspended": 403, "outsider": 404, "admin": 404},
    "insider": {"insider": 201, "dormant": 403, "suspended": 403, "outsider": 404, "admin": 404},
    "site-owner": {"insider": 201, "dormant": 201, "suspended": 201, "outsider": 201, "admin": 201},
}


async def test_owner_must_be_active_member() -> None:
    wrong = []
    async with elsewhere() as result:
        world = result.world
        roles = f"/api/v2/organizations/{result.organization}/members/roles"
        assert (await world.post(roles, _maker())).status_code == 200
        await result.add("maker", result.organization, role="maker")
        body = {"email": "d@b.c", "username": "dormant", "password": "SomeSecure123!"}
        created = await world.post("/api/v2/users", body | {"organization_ids": [result.organization]})
        result.ids["dormant"] = created.json()["id"]
        result.tokens["site-owner"] = world.token
        template, version = result.template["id"], result.template["active_version_id"]
        for caller, owners in OWNERS.items():
            for owner, expected in owners.items():
                for path, more in (
                    (f"users/{owner}/workspaces", {"template_id": template}),
                    (f"users/{result.ids[owner]}/workspaces", {"template_version_id": version}),
                    (f"organizations/elsewhere/members/{owner}/workspaces", {"template_id": template}),
                    (
                        f"organizations/{result.organization}/members/{result.ids[owner]}/workspaces",
                        {"template_version_id": version},
                    ),
                    (f"tasks/{owner}", {"template_version_id": version, "input": "x"}),
                    (f"tasks/{result.ids[owner]}", {"template_version_id": version, "input": "x"}),
                ):
                    wanted = {"name": f"w{uuid4().hex[:12]}", **more}
                    answer = await world.post(f"/api/v2/{path}", wanted, token=result.tokens[caller])
                    if answer.status_code != expected:
                        wrong.append(f"{caller} {path}: {answer.status_code} {answer.text[:120]}")
                view = await world.get(
                    f"/api/v2/templateversions/{version}/external-auth",
                    params={"user_id": result.ids[owner]},
                    token=result.tokens[caller],
                )
                if view.is_success != (expected == 201):
                    wrong.append(f"{caller} sees the accounts of {owner}: {view.status_code}")
        body = {"name": "x", "template_id": template}
        refused = await world.post("/api/v2/users/outsider/workspaces", body, token=result.tokens["boss"])
    assert not wrong, "\n".join(wrong)
    assert refused.json()["message"] == "The workspace's owner must be an active member of the template's organization."


async def test_build_gets_active_members_identity() -> None:
    """Also when a site owner who is no member creates a workspace for a member."""
    async with elsewhere() as result:
        for owner in ("insider", "outsider"):
            await result.link(owner)
        for owner, expected in (("insider", EVERYTHING), ("outsider", NOTHING), ("suspended", NOTHING)):
            workspace = await result.create(owner)
            assert result.delivered() == expected, owner
            assert workspace["latest_build"]["status"] == "running"
        assert result.answers.seen[-1].workspace_build.metadata.workspace_owner_ssh_public_key


async def _doors(result: Elsewhere, workspace: Any) -> list[httpx.Response]:
    token = result.agent_tokens[workspace["id"]]
    me = "/api/v2/workspaceagents/me"
    paths = ("gitsshkey", f"external-auth?id={PROVIDER}", f"gitauth?id={PROVIDER}")
    return [await result.world.get(f"{me}/{path}", token=token) for path in paths]


async def _secrets(link: Any) -> list[str]:
    manifest = await link.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
    return [secret.env_name for secret in manifest.secrets]


async def test_identity_ends_with_the_membership() -> None:
    """For the running agent, on old and new connections, and for the next build. Rejoining restores it."""
    async with elsewhere() as result:
        world, boss = result.world, result.tokens["boss"]
        await result.link("insider")
        secret = {"name": "db", "value": "hush", "env_name": "DB"}
        kept = await world.post("/api/v2/users/me/secrets", secret, token=result.tokens["insider"])
        assert kept.status_code == 201, kept.text
        workspace = await result.create("insider")
        assert result.delivered() == EVERYTHING
        member = f"/api/v2/organizations/{result.organization}/members/insider"
        builds = f"/api/v2/workspaces/{workspace['id']}/builds"
        async with connected_agent(result.agent_of(workspace)) as link:
            assert [answer.status_code for answer in await _doors(result, workspace)] == [200, 200, 200]
            assert await _secrets(link) == ["DB"]
            assert (await world.delete(member, token=boss)).status_code == 204
            refused = await _doors(result, workspace)
            assert [answer.status_code for answer in refused] == [403, 403, 403]
            assert await _secrets(link) == []
        async with connected_agent(result.agent_of(workspace)) as link:
            assert await _secrets(link) == []
        for transition in ("start", "stop", "start"):
            built = await world.post(builds, {"transition": transition}, token=boss)
            assert built.status_code == 201, built.text
            workspace = await settled(world, workspace["id"])
            assert workspace["latest_build"]["status"] in {"running", "stopped"}
            assert result.delivered() == NOTHING, transition
        assert [answer.status_code for answer in await _doors(result, workspace)] == [403, 403, 403]
        assert (await world.post(member, token=boss)).status_code == 200
        assert [answer.status_code for answer in await _doors(result, workspace)] == [200, 200, 200]
        assert (await world.post(builds, {"transition": "start"}, token=boss)).status_code == 201
        await settled(world, workspace["id"])
        assert result.delivered() == EVERYTHING


async def test_identity_withheld_from_others_builds() -> None:
    """With `--withhold-owner-identity` only builds that the owner requested get it, and so do their agents."""
    async with elsewhere(withhold_owner_identity=True) as result:
        world = result.world
        await result.link("insider")
        workspace = await result.create("insider")
        assert result.delivered() == NOTHING
        assert [answer.status_code for answer in await _doors(result, workspace)] == [403, 403, 403]
        builds = f"/api/v2/workspaces/{workspace['id']}/builds"
        for name, expected, status in (("insider", EVERYTHING, 200), ("boss", NOTHING, 403)):
            token = result.tokens[name]
            assert (await world.post(builds, {"transition": "start"}, token=token)).status_code == 201
            await settled(world, workspace["id"])
            assert result.delivered() == expected, name
            assert [answer.status_code for answer in await _doors(result, workspace)] == [status] * 3, name


async def test_waiting_agents_lose_account() -> None:
    """An agent that waits for its owner's account gets none after the owner has left."""
    async with elsewhere() as result:
        world, heard = result.world, []
        workspace = await result.create("insider")
        token = result.agent_tokens[workspace["id"]]

        async def wait() -> None:
            path = f"/api/v2/workspaceagents/me/external-auth?id={PROVIDER}&listen"
            heard.append((await world.get(path, token=token)).status_code)

        async def waits() -> bool:
            return bool(world.ctx.services.api.link_waits._waiting)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await eventually(waits)
            member = f"/api/v2/organizations/{result.organization}/members/insider"
            assert (await world.delete(member, token=result.tokens["boss"])).status_code == 204
            await result.link("insider")
        assert heard == [403]


async def test_claim_requires_member() -> None:
    """The system user is exempt; the user who claims is not."""
    async with world_with_preset() as (world, answers, preset):
        home = (await world.post("/api/v2/organizations", {"name": "home"})).json()["id"]
        await world.member("outsider", organizations=[home])
        await world.member("claimer")
        boss, token = await world.member("boss")
        path = f"/api/v2/organizations/default/members/{boss}/roles"
        assert (await world.put(path, {"roles": ["organization-admin"]})).status_code == 200
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        refused = await world.post("/api/v2/users/outsider/workspaces", body, token=token)
        assert (refused.status_code, await prebuilt(world)) == (403, [ahead])
        claimed = await world.post("/api/v2/users/claimer/workspaces", body, token=token)
        assert claimed.json()["id"] == str(ahead), claimed.text
        await settled(world, str(ahead))
        metadata = answers.seen[-1].workspace_build.metadata
        assert metadata.workspace_owner_session_token and metadata.workspace_owner_ssh_private_key
