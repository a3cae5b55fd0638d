"""Prebuilt workspaces: created for a preset, claimed by a user, deleted when surplus."""

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


async def test_claimed_prebuild_is_replaced() -> None:
    async with world_with_preset() as (world, answers, preset):
        assert await reconcile(world.ctx) == Reconciled(created=1)
        assert await reconcile(world.ctx) == Reconciled(), "a build is active"
        (prebuilt_id,) = await eventually(lambda: prebuilt(world))
        workspace = await settled(world, str(prebuilt_id))
        assert workspace["is_prebuild"] and workspace["owner_name"] == "prebuilds"
        assert answers.seen[-1].workspace_build.metadata.prebuilt_workspace_build_stage == pb.CREATE
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        unclaimed = await world.post("/api/v2/users/me/workspaces", {**body, "name": "unclaimed"})
        assert unclaimed.json()["id"] != str(prebuilt_id), "its agent is not ready yet"
        await settled(world, unclaimed.json()["id"])
        await make_ready(world, prebuilt_id)
        async with (
            aclosing(watch_claim(world.ctx, _waiter(prebuilt_id), only_prebuilt=True)) as claims,  # type: ignore[type-var]
            trio.open_nursery() as nursery,
        ):
            events: list[Any] = []

            async def listen() -> None:
                events.append(await anext(claims))

            nursery.start_soon(listen)
            await eventually(lambda: listens(world))
            claimed = await world.post("/api/v2/users/me/workspaces", body)
            with pytest.raises(Conflict):
                await anext(watch_claim(world.ctx, _waiter(UUID(unclaimed.json()["id"])), only_prebuilt=True))
        owner = (await world.get("/api/v2/users/me")).json()["id"]
        assert events == [{"workspace_id": str(prebuilt_id), "reason": "prebuild_claimed", "owner_id": owner}]
        assert claimed.status_code == 201 and claimed.json()["id"] == str(prebuilt_id)
        own = await settled(world, str(prebuilt_id))
        assert (own["name"], own["owner_name"], own["is_prebuild"]) == ("mine", "admin", False)
        assert own["latest_build"]["build_number"] == 2
        metadata = answers.seen[-1].workspace_build.metadata
        assert metadata.prebuilt_workspace_build_stage == pb.CLAIM
        assert [item.token for item in metadata.running_agent_auth_tokens] == [TOKEN]
        assert await reconcile(world.ctx) == Reconciled(created=1)


def _waiter(workspace_id: UUID) -> ClaimWaiter:
    return ClaimWaiter(workspace_id, UUID(TOKEN))


@pytest.mark.parametrize("only_prebuilt", [True, False])
async def test_claim_watch_ends_with_invalid_token(only_prebuilt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuild_claims, "CHECK_INTERVAL", 0.05)
    checks, original = 0, prebuild_claims._is_valid_waiter

    async def count_check(*args: Any) -> bool:
        nonlocal checks
        checks += 1
        return await original(*args)

    monkeypatch.setattr(prebuild_claims, "_is_valid_waiter", count_check)
    async with world_with_preset() as (world, _, _preset):
        await reconcile(world.ctx)
        (prebuilt_id,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, prebuilt_id)
        headers = {"Coder-Session-Token": TOKEN}
        path = f"/api/v2/workspaceagents/me/reinit{'?wait=true' if only_prebuilt else ''}"
        async with trio.open_nursery() as nursery:
            statuses: list[int] = []

            async def wait() -> None:
                statuses.append((await world.get(path, headers=headers, token="")).status_code)

            nursery.start_soon(wait)
            with trio.fail_after(60):
                while checks < 3:
                    await trio.sleep(0.01)
            assert statuses == []
            await world.ctx.db.run(workspace_store.update_workspace, prebuilt_id, deleted=True)
            with trio.fail_after(60):
                while not statuses:
                    await trio.sleep(0.01)
        assert statuses == [401]


async def test_invalidated_presets_replace_prebuilds() -> None:
    async with world_with_preset() as (world, _, preset):
        assert (await reconcile(world.ctx)).created == 1
        (prebuilt_id,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, prebuilt_id)
        path = f"/api/v2/templates/{world.extra['template']['id']}/prebuilds/invalidate"
        _, token = await world.member()
        assert (await world.post(path, token="")).status_code == 401
        assert (await world.post(path, token=token)).status_code == 403
        answer = await world.post(path)
        check("InvalidatePresetsResponse", answer.json())
        (invalidated,) = answer.json()["invalidated"]
        assert invalidated["template_name"] == world.extra["template"]["name"] and invalidated["preset_name"]
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        claimed = await world.post("/api/v2/users/me/workspaces", body)
        assert claimed.json()["id"] != str(prebuilt_id), "the old one is invalidated"
        assert await reconcile(world.ctx) == Reconciled(created=1, deleted=1)


async def test_expired_paused_and_surplus_prebuilds() -> None:
    clock = FakeClock()
    async with world_with_preset(2, clock=clock, session_duration=timedelta(days=9)) as (world, _, _preset):
        assert (await reconcile(world.ctx)).created == 2

        async def both_exist() -> bool:
            return len(await prebuilt(world)) == 2

        await eventually(both_exist)
        settings = "/api/v2/prebuilds/settings"
        assert (await world.get(settings)).json() == {"reconciliation_paused": False}
        assert (await world.put(settings, {"reconciliation_paused": True})).status_code == 200
        assert (await world.put(settings, {"reconciliation_paused": True})).status_code == 304
        clock.advance(3700)
        assert await reconcile(world.ctx) == Reconciled()
        assert (await world.put(settings, {"reconciliation_paused": False})).status_code == 200
        assert await reconcile(world.ctx) == Reconciled(created=2, deleted=2)
        await eventually(both_exist)
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"deprecation_message": "old"})).status_code == 200
        assert await reconcile(world.ctx) == Reconciled(deleted=2)


async def test_failed_deletion_does_not_block_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world_with_preset(2) as (world, _, _preset):
        await reconcile(world.ctx)

        async def both_exist() -> bool:
            return len(await prebuilt(world)) == 2

        await eventually(both_exist)
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"deprecation_message": "old"})).status_code == 200
        original, attempted = prebuild_builds.delete_prebuild, set[UUID]()

        async def delete(tx: Any, workspace_id: UUID, *rest: Any) -> Any:
            attempted.add(workspace_id)
            if len(attempted) == 1:
                raise ValueError("an unexpected row")
            return await original(tx, workspace_id, *rest)

        monkeypatch.setattr(prebuild_reconciliation, "delete_prebuild", delete)
        assert await reconcile(world.ctx) == Reconciled(deleted=1)


async def test_settings_permissions() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member()
        path = "/api/v2/prebuilds/settings"
        assert (await world.get(path, token=token)).status_code == 403
        assert (await world.put(path, {"reconciliation_paused": True}, token=token)).status_code == 403
        assert not await world.ctx.db.read(is_paused)
        assert PREBUILDS_USER_ID.version == 4
