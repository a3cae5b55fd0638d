"""Access to a template may change between a request's first check and its transaction, which must check again.

Otherwise a user who loses access at that moment could restore it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest

from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import TemplateSearch
from tests.kit.api.api_description import changing
from tests.kit.provisioners.scripted_provisioner import ended, new_version, upload
from tests.kit.server.race_conditions import filled, overtaken
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import workspace_world

_TEMPLATE = "/api/v2/templates/<id:template>"
_VERSION = "/api/v2/templateversions/<id:version>"
_NEW_VERSION = "POST /api/v2/organizations/<organization>/templateversions"
_NEW = {"storage_method": "file", "provisioner": "echo", "file_id": "{file}", "template_id": "{template}"}
CHANGES: dict[str, tuple[Any, ...]] = {
    f"PATCH {_TEMPLATE}": ({"name": "stolen"}, {"disable_everyone_group_access": False}),
    f"DELETE {_TEMPLATE}": (None,),
    f"PATCH {_TEMPLATE}/acl": ({"user_perms": {"{alice}": "admin"}},),
    f"PUT {_TEMPLATE}/build-tokens": ({"all_roles": False},),
    f"PATCH {_TEMPLATE}/versions": ({"id": "{version}"},),
    f"POST {_TEMPLATE}/rollouts": ({"template_version_id": "{version}"},),
    f"PATCH {_TEMPLATE}/rollouts": ({"rollout_id": "{version}", "action": "stop"},),
    f"POST {_TEMPLATE}/versions/archive": ({"all": True},),
    f"POST {_TEMPLATE}/prebuilds/invalidate": (None,),
    f"PATCH {_VERSION}": ({"name": "renamed"},),
    f"PATCH {_VERSION}/cancel": (None,),
    f"POST {_VERSION}/archive": (None,),
    f"POST {_VERSION}/unarchive": (None,),
    _NEW_VERSION: (_NEW,),
}
NO_CHANGES = {
    "PUT /api/v2/notifications/templates/<id:template>/method": "a notification's template",
    f"PATCH {_VERSION}/dry-run/<id:job>/cancel": "as private as a workspace: never another user's",
    f"POST {_VERSION}/dry-run": "leaves nothing at the template",
    f"POST {_VERSION}/dynamic-parameters/evaluate": "leaves nothing",
    f"POST {_TEMPLATE}/update-preview": "leaves nothing at the template; each plan checks its workspace again",
    f"DELETE {_TEMPLATE}/update-preview/<id:preview>": "cancels a preview of the caller's own",
}


def test_table_covers_every_change() -> None:
    routes = changing("id:template") | changing("id:version")
    assert routes == (CHANGES.keys() | NO_CHANGES.keys()) - {_NEW_VERSION}


async def _state(world: World) -> Any:
    """Return everything that a change could have modified, except the access lists."""

    async def read(tx: Any) -> Any:
        views = await store.list_views(tx, TemplateSearch())
        versions = [await version_store.list_views(tx, view.template.id, include_archived=True) for view in views]
        templates = [replace(view.template, user_acl={}) for view in views]
        return templates, [view.version for items in versions for view in items]

    return await world.ctx.db.read(read)


async def test_lost_access_prevents_pending_change() -> None:
    wrong = []
    async with workspace_world() as (world, _):
        alice, token = await world.member("alice")
        template = (await world.get("/api/v2/templates")).json()[0]
        version = await new_version(world, template_id=template["id"], name="other")
        await ended(world, f"/api/v2/templateversions/{version['id']}")  # its import changes it
        template_id, path = UUID(template["id"]), f"/api/v2/templates/{template['id']}"
        file = await upload(world, {"main.tf": ""}, token=token)
        values = {"alice": alice, "version": version["id"], "template": template["id"], "file": file}
        for name, bodies in CHANGES.items():
            for body in bodies:
                perms = {"user_perms": {alice: "admin"}, "group_perms": {world.organization_id: ""}}
                assert (await world.patch(f"{path}/acl", perms)).status_code == 200
                if name.endswith("unarchive"):
                    archived = await world.post(f"/api/v2/templateversions/{version['id']}/archive")
                    assert archived.status_code == 200, archived.text
                method, rule = name.split(" ")
                target = rule.replace("<id:template>", template["id"]).replace("<id:version>", version["id"])
                target = target.replace("<organization>", world.organization_id)

                async def request(method: str = method, target: str = target, body: Any = body) -> httpx.Response:
                    return await world.request(method, target, json=filled(body, values), token=token)

                async def revoke_access(tx: Any) -> None:
                    await system_templates.get_template(tx, template_id, lock=True)
                    await store.update_template(tx, template_id, user_acl={})

                before = await _state(world)
                answer = await overtaken(world, revoke_access, request)
                if answer.status_code not in {403, 404}:
                    wrong.append(f"{name}: {answer.status_code} {answer.text[:150]}")
                row = await world.ctx.db.read(system_templates.get_template, template_id)
                if row is None or row.user_acl or await _state(world) != before:
                    wrong.append(f"{name}: it was done")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("shut", [True, False])
async def test_everyone_change_keeps_concurrent_revocation(shut: bool) -> None:
    async with workspace_world() as (world, _):
        template = (await world.get("/api/v2/templates")).json()[0]
        template_id, path = UUID(template["id"]), f"/api/v2/templates/{template['id']}"
        group = (await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "few"})).json()
        perms = {"group_perms": {group["id"]: "admin", world.organization_id: "use"}}
        assert (await world.patch(f"{path}/acl", perms)).status_code == 200

        async def request() -> httpx.Response:
            return await world.patch(path, {"disable_everyone_group_access": shut})

        async def revoke_access(tx: Any) -> None:
            await system_templates.get_template(tx, template_id, lock=True)
            await store.update_template(tx, template_id, group_acl={world.organization_id: "use"})

        assert (await overtaken(world, revoke_access, request)).status_code == 200
        row = await world.ctx.db.read(system_templates.get_template, template_id)
        assert row is not None
        assert row.group_acl == ({} if shut else {world.organization_id: "use"})


async def test_no_workspace_of_deleted_template() -> None:
    async with workspace_world() as (world, _):
        _, token = await world.member("alice")
        template = (await world.get("/api/v2/templates")).json()[0]

        async def request() -> httpx.Response:
            body = {"name": "late", "template_id": template["id"]}
            return await world.post("/api/v2/users/me/workspaces", body, token=token)

        async def delete(tx: Any) -> None:
            await system_templates.get_template(tx, UUID(template["id"]), lock=True)
            await store.update_template(tx, UUID(template["id"]), deleted=True)

        assert (await overtaken(world, delete, request)).status_code == 404
