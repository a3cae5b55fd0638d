"""Attacks by timing: concurrent requests, and rights that are lost between the begin and the end of a request."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from coder.net.errors import HttpError
from tests.kit.agents.real_agent import running_overlay_agent
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.server.server_in_process import World, running_coderd
from tests.unit.coderd.rpc_endpoints.test_coordination import coordinating
from tests.unit.conformance.test_attacks_on_workspaces import at_once

# ---- two callers who remove each other's rights


@pytest.mark.parametrize("undo", ["roles", "removed"])
async def test_concurrent_organization_admins(undo: str) -> None:
    """The first one who loses the role cannot remove the other's: the role must exist at the moment of the change."""
    async with running_coderd(first_user=True) as world:
        organization = f"/api/v2/organizations/{world.organization_id}/members"
        for number in range(4):
            people = [await world.member(f"{name}{number}") for name in ("ann", "ben", "control")]
            for who, _ in people:
                given = await world.put(f"{organization}/{who}/roles", {"roles": ["organization-admin"]})
                assert given.status_code == 200, given.text

            async def act(who: str, by: str, world: World = world) -> httpx.Response:
                if undo == "roles":
                    return await world.put(f"{organization}/{who}/roles", {"roles": []}, token=by)
                return await world.delete(f"{organization}/{who}", token=by)

            (ann, ann_key), (ben, ben_key), (control, _) = people
            assert (await act(control, ann_key)).status_code < 300, "an admin removes another"
            pairs = [(ben, ann_key), (ann, ben_key)]
            await at_once(2, lambda turn, act=act, pairs=pairs: act(*pairs[turn]))  # type: ignore[misc]
            members = (await world.get(organization)).json()
            admins = [item["user_id"] for item in members if item["roles"] and item["user_id"] in {ann, ben}]
            assert len(admins) == 1, f"{undo} {number}: {admins}"


async def test_concurrent_suspensions() -> None:
    async with running_coderd(first_user=True) as world:
        for number in range(4):
            people = [await world.member(f"{name}{number}", ["user-admin"]) for name in ("ann", "ben", "control")]

            async def act(who: str, by: str, world: World = world) -> httpx.Response:
                return await world.put(f"/api/v2/users/{who}/status/suspend", token=by)

            (ann, ann_key), (ben, ben_key), (control, _) = people
            assert (await act(control, ann_key)).status_code < 300, "an administrator suspends another"
            pairs = [(ben, ann_key), (ann, ben_key)]
            await at_once(2, lambda turn, act=act, pairs=pairs: act(*pairs[turn]))  # type: ignore[misc]
            states = [(await world.get(f"/api/v2/users/{who}")).json()["status"] for who in (ann, ben)]
            assert states.count("suspended") == 1, f"{number}: {states}"


@pytest.mark.parametrize("undo", ["roles", "deleted"])
async def test_concurrent_owners(undo: str) -> None:
    """With a third owner, so that the protection of the last owner does not save one of them."""
    async with running_coderd(first_user=True) as world:
        for number in range(3):
            people = [await world.member(f"{name}{number}", ["owner"]) for name in ("ann", "ben", "control")]

            async def act(who: str, by: str, world: World = world) -> httpx.Response:
                if undo == "roles":
                    return await world.put(f"/api/v2/users/{who}/roles", {"roles": []}, token=by)
                return await world.delete(f"/api/v2/users/{who}", token=by)

            (ann, ann_key), (ben, ben_key), (control, _) = people
            assert (await act(control, ann_key)).status_code < 300, "an owner removes another"
            pairs = [(ben, ann_key), (ann, ben_key)]
            await at_once(2, lambda turn, act=act, pairs=pairs: act(*pairs[turn]))  # type: ignore[misc]
            mine = [await world.get("/api/v2/users/me", token=key) for key in (ann_key, ben_key)]
            left = [item for item in mine if item.status_code == 200 and item.json()["roles"]]
            assert len(left) == 1, f"{undo} {number}: {[item.text for item in mine]}"


# ---- concurrent use of a resume token


async def test_concurrent_resume_is_one_peer() -> None:
    """With the same session, one of the two connections stays; another session or user is refused."""
    async with workspace_world() as view_context, running_overlay_agent(view_context) as agent:
        world, path = view_context.world, "/api/v2/tailnet?version=2.0"
        _, eve = await world.member("eve")
        again = (await world.post("/api/v2/users/me/keys/tokens", {"token_name": "second"})).json()["key"]
        async with coordinating(world, path, world.token) as first:
            await first.tell(first.key)
            await first.ask(view_context.agent_id)
            resume = await first.resume_token()
        links: dict[int, Any] = {}
        statuses: dict[int, str] = {}
        turned_away: list[int] = []
        overwritten = trio.Event()

        async def own(number: int) -> None:
            async with coordinating(world, path, world.token, resume=resume) as link:
                links[number] = link
                await link.tell(first.key, first.disco)
                statuses[number] = await link.refusal()
                overwritten.set()

        async def foreign(token: str) -> None:
            with pytest.raises(HttpError) as refused:
                async with coordinating(world, path, token, resume=resume):
                    pass
            turned_away.append(refused.value.status)

        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as strangers:
                for number in range(2):
                    nursery.start_soon(own, number)
                    strangers.start_soon(foreign, again)
                    strangers.start_soon(foreign, eve)
            with trio.fail_after(60):
                await overwritten.wait()
            ((number, why),) = statuses.items()
            assert "overwritten" in why
            assert await links[1 - number].resume_token(), "the other one stays connected"
            assert statuses.keys() == {number}
            nursery.cancel_scope.cancel()
        assert turned_away == [401] * 4
        assert [*agent._node.peers()].count(first.key) <= 1
