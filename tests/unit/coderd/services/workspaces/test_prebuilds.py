"""Prebuilt workspaces: made for a preset, claimed by who asks, removed when nobody wants them."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.api.base.refusals import Conflict
from coder.base.clock import FakeClock
from coder.coderd.services.workspaces import prebuild_builds, prebuild_claims, prebuild_reconciliation
from coder.coderd.services.workspaces.prebuild_claims import ClaimWaiter, watch_claim
from coder.coderd.services.workspaces.prebuild_reconciliation import Reconciled, reconcile
from coder.coderd.services.workspaces.prebuilds import is_paused
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import TOKEN, listens, make_ready, prebuilt, settled, world_with_preset


async def test_made_claimed_and_made_again() -> None:
    async with world_with_preset() as (world, answers, preset):
        assert await reconcile(world.ctx) == Reconciled(created=1)
        assert await reconcile(world.ctx) == Reconciled(), "one is on its way"
        (ahead,) = await eventually(lambda: prebuilt(world))
        shown = await settled(world, str(ahead))
        assert shown["is_prebuild"] and shown["owner_name"] == "prebuilds"
        assert answers.seen[-1].workspace_build.metadata.prebuilt_workspace_build_stage == pb.CREATE
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        early = await world.post("/api/v2/users/me/workspaces", {**body, "name": "early"})
        assert early.json()["id"] != str(ahead), "its agent is not ready yet"
        await settled(world, early.json()["id"])
        await make_ready(world, ahead)
        async with (
            aclosing(watch_claim(world.ctx, _waiter(ahead), only_prebuilt=True)) as claims,  # type: ignore[type-var]
            trio.open_nursery() as nursery,
        ):
            told: list[Any] = []

            async def listen() -> None:
                told.append(await anext(claims))

            nursery.start_soon(listen)
            await eventually(lambda: listens(world))
            claimed = await world.post("/api/v2/users/me/workspaces", body)
            with pytest.raises(Conflict):
                await anext(watch_claim(world.ctx, _waiter(UUID(early.json()["id"])), only_prebuilt=True))
        owner = (await world.get("/api/v2/users/me")).json()["id"]
        assert told == [{"workspace_id": str(ahead), "reason": "prebuild_claimed", "owner_id": owner}]
        assert claimed.status_code == 201 and claimed.json()["id"] == str(ahead)
        mine = await settled(world, str(ahead))
        assert (mine["name"], mine["owner_name"], mine["is_prebuild"]) == ("mine", "admin", False)
        assert mine["latest_build"]["build_number"] == 2
        metadata = answers.seen[-1].workspace_build.metadata
        assert metadata.prebuilt_workspace_build_stage == pb.CLAIM
        assert [one.token for one in metadata.running_agent_auth_tokens] == [TOKEN]
        assert await reconcile(world.ctx) == Reconciled(created=1)


def _waiter(workspace_id: UUID) -> ClaimWaiter:
    return ClaimWaiter(workspace_id, UUID(TOKEN))


@pytest.mark.parametrize("only_prebuilt", [True, False])
async def test_an_agent_waits_for_a_claim_as_long_as_its_token_is_good(
    only_prebuilt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prebuild_claims, "LOOK_EVERY", 0.05)
    looks, may_hear = 0, prebuild_claims._is_valid_waiter

    async def look(*args: Any) -> bool:
        nonlocal looks
        looks += 1
        return await may_hear(*args)

    monkeypatch.setattr(prebuild_claims, "_is_valid_waiter", look)
    async with world_with_preset() as (world, _, _preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        headers = {"Coder-Session-Token": TOKEN}
        path = f"/api/v2/workspaceagents/me/reinit{'?wait=true' if only_prebuilt else ''}"
        async with trio.open_nursery() as nursery:
            statuses: list[int] = []

            async def wait() -> None:
                statuses.append((await world.get(path, headers=headers, token="")).status_code)

            nursery.start_soon(wait)
            with trio.fail_after(60):
                while looks < 3:
                    await trio.sleep(0.01)
            assert statuses == []
            await world.ctx.db.run(workspace_store.update_workspace, ahead, deleted=True)
            with trio.fail_after(60):
                while not statuses:
                    await trio.sleep(0.01)
        assert statuses == [401]


async def test_asked_for_new_ones() -> None:
    async with world_with_preset() as (world, _, preset):
        assert (await reconcile(world.ctx)).created == 1
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        path = f"/api/v2/templates/{world.extra['template']['id']}/prebuilds/invalidate"
        _, token = await world.member()
        assert (await world.post(path, token="")).status_code == 401
        assert (await world.post(path, token=token)).status_code == 403
        answer = await world.post(path)
        check("InvalidatePresetsResponse", answer.json())
        (said,) = answer.json()["invalidated"]
        assert said["template_name"] == world.extra["template"]["name"] and said["preset_name"]
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        claimed = await world.post("/api/v2/users/me/workspaces", body)
        assert claimed.json()["id"] != str(ahead), "it is out of date"
        assert await reconcile(world.ctx) == Reconciled(created=1, deleted=1)


async def test_expired_paused_and_unwanted() -> None:
    clock = FakeClock()
    async with world_with_preset(2, clock=clock, session_duration=timedelta(days=9)) as (world, _, _preset):
        assert (await reconcile(world.ctx)).created == 2

        async def both() -> bool:
            return len(await prebuilt(world)) == 2

        await eventually(both)
        settings = "/api/v2/prebuilds/settings"
        assert (await world.get(settings)).json() == {"reconciliation_paused": False}
        assert (await world.put(settings, {"reconciliation_paused": True})).status_code == 200
        assert (await world.put(settings, {"reconciliation_paused": True})).status_code == 304
        clock.advance(3700)
        assert await reconcile(world.ctx) == Reconciled()
        assert (await world.put(settings, {"reconciliation_paused": False})).status_code == 200
        assert await reconcile(world.ctx) == Reconciled(created=2, deleted=2)
        await eventually(both)
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"deprecation_message": "old"})).status_code == 200
        assert await reconcile(world.ctx) == Reconciled(deleted=2)


async def test_one_that_cannot_be_deleted_keeps_those_behind_it_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world_with_preset(2) as (world, _, _preset):
        await reconcile(world.ctx)

        async def both() -> bool:
            return len(await prebuilt(world)) == 2

        await eventually(both)
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"deprecation_message": "old"})).status_code == 200
        really, seen = prebuild_builds.delete_prebuild, set[UUID]()

        async def delete(tx: Any, workspace_id: UUID, *rest: Any) -> Any:
            seen.add(workspace_id)
            if len(seen) == 1:
                raise ValueError("a row that nobody foresaw")
            return await really(tx, workspace_id, *rest)

        monkeypatch.setattr(prebuild_reconciliation, "delete_prebuild", delete)
        assert await reconcile(world.ctx) == Reconciled(deleted=1)


async def test_who_may_set_it() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member()
        path = "/api/v2/prebuilds/settings"
        assert (await world.get(path, token=token)).status_code == 403
        assert (await world.put(path, {"reconciliation_paused": True}, token=token)).status_code == 403
        assert not await world.ctx.db.read(is_paused)
        assert PREBUILDS_USER_ID.version == 4
