"""Staged rollouts: offers, automatic updates, the failure limit, and every way in which a rollout ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx

from coder.base.clock import FakeClock
from coder.coderd.loops import rollouts as loop
from coder.coderd.services.templates.rollout_watch import watch_rollouts
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.templates import templates as template_store
from coder.domain.templates.rollouts import bucket_of
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_version, resource
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import build, new_workspace, settled, workspace_world

TUESDAY = datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC)


def _answers() -> Answers:
    """Return a daemon's answers for a template without parameters."""
    return Answers(import_=lambda job: {"start_resources": [resource("box", agents=[agent()])]})


def _path(world: World) -> str:
    return f"/api/v2/templates/{world.extra['template']['id']}"


async def _version(world: World, name: str) -> str:
    version = await new_version(world, template_id=world.extra["template"]["id"], name=name)
    await ended(world, f"/api/v2/templateversions/{version['id']}")
    return str(version["id"])


async def _start(world: World, version: str, **body: Any) -> Any:
    answer = await world.post(f"{_path(world)}/rollouts", {"template_version_id": version, **body})
    assert answer.status_code == 201, answer.text
    assert await world.left_an_entry(answer)
    return answer.json()


async def _step(world: World, rollout: Any, action: str, **body: Any) -> httpx.Response:
    return await world.patch(f"{_path(world)}/rollouts", {"rollout_id": rollout["id"], "action": action, **body})


async def _done(world: World, rollout: Any, action: str) -> Any:
    answer = await _step(world, rollout, action)
    assert answer.status_code == 200, answer.text
    assert await world.left_an_entry(answer)
    return answer.json()


async def _latest(world: World) -> Any:
    return (await world.get(f"{_path(world)}/rollouts")).json()[0]


async def _active(world: World) -> str:
    return str((await world.get(_path(world))).json()["active_version_id"])


async def _offers(world: World, *workspaces: Any, token: str | None = None) -> list[str]:
    """Return the offered versions in the order of the workspaces; "" for one without an answer."""
    ids = [item["id"] for item in workspaces]
    answer = await world.get("/api/v2/workspaces/offered-versions", params={"ids": ",".join(ids)}, token=token)
    assert answer.status_code == 200, answer.text
    found = {item["workspace_id"]: item for item in answer.json()}
    for item in found.values():
        assert item["is_staged"] == (item["template_version_id"] != await _active(world))
    return [found[key]["template_version_id"] if key in found else "" for key in ids]


async def _group_of(world: World, *users: str) -> str:
    made = await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "testers"})
    changed = await world.patch(f"/api/v2/groups/{made.json()['id']}", {"add_users": list(users)})
    assert changed.status_code == 200, changed.text
    return str(made.json()["id"])


async def test_group_gets_version_first() -> None:
    """Automatic and requested updates follow the stage; the compatible fields stay those of the active version."""
    clock = FakeClock(TUESDAY)
    async with workspace_world(_answers(), clock=clock, session_duration=timedelta(days=30)) as (world, _):
        alice, inside = await world.member("alice")
        _, outside = await world.member("bob")
        plan = {"autostart_schedule": "CRON_TZ=UTC 30 9 * * 1-5", "automatic_updates": "always"}
        mine = await new_workspace(world, "mine", token=inside, **plan)
        other = await new_workspace(world, "other", token=outside, **plan)
        old, new = await _active(world), await _version(world, "v2")
        assert await _offers(world, mine, other) == [old, old]
        rollout = await _start(world, new, group_id=await _group_of(world, alice))
        assert (rollout["stages"], rollout["percent"], rollout["status"]) == ([0, 100], 0, "running")
        assert (rollout["group_name"], rollout["former_version_id"]) == ("testers", old)
        assert await _offers(world, mine, other) == [new, old]
        shown = (await world.get(f"/api/v2/workspaces/{mine['id']}")).json()
        assert (shown["template_active_version_id"], shown["outdated"]) == (old, False)

        for workspace in (mine, other):
            await build(world, workspace["id"], "stop")
        clock.advance(timedelta(hours=1, minutes=30).total_seconds())
        assert [step.step.reason for step in await take_due_steps(world.ctx)] == ["autostart", "autostart"]
        built = [(await settled(world, item["id"]))["latest_build"]["template_version_id"] for item in (mine, other)]
        assert built == [new, old]
        progress = (await _latest(world))["progress"]
        assert progress == {
            "workspaces": 2,
            "offered": 1,
            "updated": 1,
            "builds_succeeded": 1,
            "builds_failed": 0,
            "builds_unfinished": 0,
            "failure_percent": 0.0,
        }

        # A template that requires its active version accepts the offered one too, from members of the stage alone.
        required = await world.patch(_path(world), {"require_active_version": True})
        assert required.status_code == 200, required.text
        for workspace, token, version, status in (
            (mine, inside, new, 201),
            (mine, inside, old, 201),
            (other, outside, new, 403),
            (other, outside, old, 201),
        ):
            body = {"transition": "start", "template_version_id": version}
            answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", body, token=token)
            assert answer.status_code == status, (version, answer.text)
            await settled(world, workspace["id"])

        completed = await _done(world, rollout, "next")
        assert (completed["status"], completed["percent"], completed["progress"]) == ("completed", 100, None)
        assert await _active(world) == new and await _offers(world, mine, other) == [new, new]


async def test_deleted_group_stops_rollout() -> None:
    """Without its group the first stage reaches no workspace; a later stage goes on, and says what is missing."""
    async with workspace_world(_answers()) as (world, _):
        alice, _ = await world.member("alice")
        new = await _version(world, "v2")
        for percent, status in ((0, "stopped"), (50, "running")):
            group = await _group_of(world, alice)
            rollout = await _start(world, new, group_id=group, stages=[0, 50, 100])
            if percent:
                await _done(world, rollout, "next")
            assert (await world.delete(f"/api/v2/groups/{group}")).status_code == 200
            assert await watch_rollouts(world.ctx) == ([] if percent else [UUID(rollout["template_id"])])
            assert await watch_rollouts(world.ctx) == []
            shown = await _latest(world)
            assert (shown["status"], shown["percent"], shown["group_name"]) == (status, percent, "")
            if not percent:
                reason = 'it reaches no workspace. The group "testers" was deleted.'
                assert shown["message"] == f"Stopped automatically: {reason}"
                assert (await _step(world, rollout, "resume")).status_code == 409
                moved = await _step(world, rollout, "next", status="stopped")
                assert (moved.json()["status"], moved.json()["percent"]) == ("running", 50)
            else:
                assert shown["message"] == 'The group "testers" was deleted.'
            await _done(world, rollout, "rollback")


async def test_group_deleted_meanwhile_is_refused() -> None:
    async with workspace_world(_answers()) as (world, _):
        alice, _ = await world.member("alice")
        body = {"template_version_id": await _version(world, "v2"), "group_id": await _group_of(world, alice)}
        answer = await overtaken(
            world,
            lambda tx: group_store.delete_group(tx, UUID(body["group_id"])),
            lambda: world.post(f"{_path(world)}/rollouts", body),
        )
        assert answer.status_code == 404, answer.text


async def test_failures_stop_rollout() -> None:
    """The watcher stops at the limit, once; canceled builds and other workspaces do not count."""
    failing: list[str] = []
    answers = _answers()
    answers.build = lambda job: {"error": "no such image"} if failing else {"state": b"{}"}
    async with workspace_world(answers) as (world, _):
        workspaces = [await new_workspace(world, f"ws{number}") for number in range(4)]
        old, new = await _active(world), await _version(world, "v2")
        rollout = await _start(world, new, stages=[50, 99, 100], failure_percent=40, minimum_builds=2)
        assert rollout["progress"]["failure_percent"] is None
        rollout = await _done(world, rollout, "next")
        expected = [new if bucket_of(UUID(rollout["id"]), UUID(item["id"])) < 99 else old for item in workspaces]
        assert await _offers(world, *workspaces) == expected
        inside = [item for item, version in zip(workspaces, expected, strict=True) if version == new]
        failing.append("yes")
        await build(world, inside[0]["id"], "start", template_version_id=new)
        assert await watch_rollouts(world.ctx) == [], "too few builds"
        await build(world, inside[0]["id"], "start", template_version_id=new)
        assert await watch_rollouts(world.ctx) == [UUID(rollout["template_id"])]
        assert await loop.turn(world.ctx, world.ctx.log) == loop.EVERY
        stopped = await _latest(world)
        assert stopped["status"] == "stopped"
        assert stopped["message"] == "Stopped automatically: 2 of 2 builds failed (limit 40 percent)."
        assert stopped["progress"]["failure_percent"] == 100.0
        entries = (await world.get("/api/v2/audit", params={"q": "resource_type:template", "limit": "1"})).json()
        assert entries["audit_logs"][0]["diff"]["rollout"] == {
            "old": "v2: running at 99 percent",
            "new": "v2: stopped at 99 percent",
            "secret": False,
        }
        assert await _offers(world, *inside) == [new] + [old] * (len(inside) - 1)
        for body in ({}, {"percent": 99}, {"status": "running"}):  # a page that was loaded before the stop
            late = await _step(world, rollout, "next", **body)
            assert late.status_code == 409 and "2 of 2 builds failed" in late.json()["detail"], late.text
        assert await _active(world) == old

        failing.clear()
        assert (await _done(world, rollout, "resume"))["progress"]["builds_failed"] == 0, "counted from now on"
        assert (await _step(world, rollout, "resume")).status_code == 409
        assert (await _step(world, rollout, "next", percent=50)).status_code == 409, "another stage by now"
        assert (await _done(world, rollout, "stop"))["message"] == ""
        assert (await _step(world, rollout, "stop")).status_code == 409
        assert await _active(world) == old
        assert (await _step(world, rollout, "rollback", status="running")).status_code == 409
        rolled_back = await _done(world, rollout, "rollback")
        assert rolled_back["status"] == "rolled_back" and rolled_back["ended_at"] is not None
        assert await _offers(world, *workspaces) == [old] * 4
        assert (await _step(world, rollout, "next")).status_code == 404
        again = await _start(world, new)
        assert (again["stages"], again["percent"]) == ([5, 25, 100], 5)


async def test_changes_elsewhere_end_rollout() -> None:
    """A promotion, a deletion, and what a server without rollouts may do."""
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world)
        old, second, third = await _active(world), await _version(world, "v2"), await _version(world, "v3")
        first = await _start(world, second, stages=[99, 100])
        taken = await world.post(f"{_path(world)}/rollouts", {"template_version_id": third})
        assert taken.status_code == 409, taken.text
        kept = await world.post(f"/api/v2/templateversions/{second}/archive")
        assert kept.status_code == 500 and "in use" in kept.text
        unused = await world.post(f"{_path(world)}/versions/archive", {"all": True})
        assert second not in (unused.json()["archived_ids"] or [])
        assert third in unused.json()["archived_ids"]
        refused = await world.post(f"{_path(world)}/rollouts", {"template_version_id": third})
        assert refused.status_code == 400 and "archived" in refused.text
        assert (await world.post(f"/api/v2/templateversions/{third}/unarchive")).status_code == 200

        assert (await world.patch(f"{_path(world)}/versions", {"id": third})).status_code == 200
        canceled = await _latest(world)
        assert (canceled["id"], canceled["status"]) == (first["id"], "canceled")
        assert canceled["message"] == "Another version was promoted by hand."
        assert await _offers(world, workspace) == [third]
        active = await world.post(f"{_path(world)}/rollouts", {"template_version_id": third})
        assert active.status_code == 400 and "active one already" in active.text

        await _start(world, second)
        assert (await world.patch(f"{_path(world)}/versions", {"id": second})).status_code == 200
        assert (await _latest(world))["status"] == "completed"

        void = await _start(world, third, stages=[99, 100])
        template_id = UUID(void["template_id"])
        await world.ctx.db.run(template_store.update_template, template_id, active_version_id=UUID(old))
        assert await _offers(world, workspace) == [old], "an earlier version's server promoted it"
        assert (await _latest(world))["progress"] is None
        assert await watch_rollouts(world.ctx) == [template_id] and await watch_rollouts(world.ctx) == []
        assert (await _latest(world))["status"] == "canceled"

        await _start(world, third)
        await build(world, workspace["id"], "delete")
        assert (await world.delete(_path(world))).status_code == 200
        assert await watch_rollouts(world.ctx) == []
        assert (await world.get(f"{_path(world)}/rollouts")).status_code == 404


INVALID: tuple[tuple[dict[str, Any], str], ...] = (
    ({"stages": [100]}, "stages"),
    ({"stages": [5, 25]}, "stages"),
    ({"stages": [0, 100]}, "stages"),
    ({"failure_percent": 101}, "failure_percent"),
    ({"minimum_builds": 0}, "minimum_builds"),
)


async def test_rollout_refusals() -> None:
    """Readers of the template get 403, others 404; a workspace that the caller may not read is left out."""
    async with workspace_world(_answers()) as (world, _):
        workspace, version = await new_workspace(world), await _version(world, "v2")
        path, start = f"{_path(world)}/rollouts", {"template_version_id": version}
        _, token = await world.member("reader")
        step = {"rollout_id": str(uuid4()), "action": "stop"}
        for status in (403, 404):
            for method, sent in (("GET", None), ("POST", start), ("PATCH", step)):
                answer = await world.request(method, path, json=sent, token=token)
                assert answer.status_code == status, (method, answer.text)
            hidden = await world.patch(_path(world), {"disable_everyone_group_access": True})
            assert hidden.status_code == 200, hidden.text
        assert await _offers(world, workspace, token=token) == [""]
        for body, field in INVALID:
            answer = await world.post(path, start | body)
            assert answer.status_code == 400, answer.text
            assert [item["field"] for item in answer.json()["validations"]] == [field]
        refused: tuple[tuple[dict[str, Any], int], ...] = (
            ({"group_id": str(uuid4())}, 404),
            ({"group_id": world.organization_id}, 400),
            ({"template_version_id": str(uuid4())}, 404),
            ({"stages": ["five", 100]}, 400),
        )
        for body, status in refused:
            assert (await world.post(path, start | body)).status_code == status, body
        assert (await world.patch(path, step)).status_code == 404
        assert (await world.get(path)).json() == []
        many = ",".join(str(uuid4()) for _ in range(201))
        for ids in ("x", many):
            answer = await world.get("/api/v2/workspaces/offered-versions", params={"ids": ids})
            assert answer.status_code == 400, ids
