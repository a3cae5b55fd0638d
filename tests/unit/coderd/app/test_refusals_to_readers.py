"""Refusals of workspaces and templates that clients of the original compare, by kind: one table each.

A caller who may read an object, but not change it, hears first what is wrong with the request; a right request is
refused for the permission. (The original answers the latter with 500 and `unauthorized: rbac: forbidden`.)
"""

from __future__ import annotations

from typing import Any

import httpx

from tests.kit.provisioners.scripted_provisioner import new_version
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

UNKNOWN = "11111111-1111-4111-8111-111111111111"
NOT_FOUND = "Resource not found or you do not have access to this resource"
TTL, LEVEL = "Error updating workspace time until shutdown.", "Port sharing level not allowed."
META, BAD_JSON = "Invalid request to update template metadata!", "Request body must be valid JSON."
PORT = {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"}
OF_WORKSPACES: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("PUT", "ttl", {"ttl_ms": 59999}, 400, TTL),
    ("PUT", "ttl", {"ttl_ms": 60000}, 403, "Forbidden."),
    ("PUT", "autostart", {"schedule": "tomorrow"}, 400, "Invalid autostart schedule."),
    ("PUT", "autostart", {"schedule": "CRON_TZ=UTC 0 7 * * *"}, 403, "Forbidden."),
    ("PUT", "extend", {"deadline": ""}, 400, BAD_JSON),
    ("PUT", "extend", {"deadline": "2035-01-01T00:00:00Z"}, 409, "Workspace shutdown is manual."),
    ("PUT", "extend", {}, 400, "Validation failed."),
    ("POST", "port-share", {**PORT, "share_level": "zz"}, 400, LEVEL),
    ("POST", "port-share", {**PORT, "agent_name": "zz"}, 400, "Agent not found."),
    ("POST", "port-share", PORT, 403, "Forbidden."),
    ("DELETE", "port-share", {"agent_name": "main", "port": 9}, 404, "Share not found."),
    ("DELETE", "port-share", {"agent_name": "main", "port": 8081}, 403, "Forbidden."),
]
NEW_TEMPLATE, NEW_VERSION = "organizations/{organization}/templates", "organizations/{organization}/templateversions"
VERSION, TEMPLATE = "templateversions/{version}", "templates/{template}"
SOURCE = {"storage_method": "file", "provisioner": "terraform", "tags": {}}
TAKEN = 'A template version with name "second" already exists for this template.'
OF_TEMPLATES: list[tuple[str, str, dict[str, Any], int, str]] = [
    (
        "POST",
        NEW_TEMPLATE,
        {"name": "FULL", "template_version_id": "{free}"},
        409,
        'Template with name "FULL" already exists.',
    ),
    (
        "POST",
        NEW_TEMPLATE,
        {"name": "x", "template_version_id": UNKNOWN},
        404,
        f'Template version "{UNKNOWN}" does not exist.',
    ),
    (
        "POST",
        NEW_TEMPLATE,
        {"name": "x", "template_version_id": "{version}"},
        400,
        "Template version {version} is already part of a template",
    ),
    (
        "POST",
        NEW_TEMPLATE,
        {"name": "x", "template_version_id": "{free}"},
        404,
        'Template version "{free}" does not exist.',
    ),
    ("POST", NEW_VERSION, {**SOURCE, "file_id": UNKNOWN, "template_id": UNKNOWN}, 404, "Template does not exist."),
    ("POST", NEW_VERSION, {**SOURCE, "file_id": UNKNOWN}, 404, "File not found."),
    ("POST", NEW_VERSION, {**SOURCE, "file_id": "{file}"}, 404, "File not found."),
    ("POST", NEW_VERSION, {**SOURCE, "example_id": "zz"}, 404, "Example not found."),
    ("POST", NEW_VERSION, {**SOURCE, "example_id": "docker"}, 404, NOT_FOUND),
    ("PATCH", VERSION, {"name": "a b"}, 400, "Validation failed."),
    ("PATCH", VERSION, {"name": "second"}, 409, TAKEN),
    ("PATCH", VERSION, {"name": "Second"}, 403, "Forbidden."),
    ("PATCH", VERSION, {}, 403, "Forbidden."),
    ("PATCH", f"{TEMPLATE}/versions", {"id": UNKNOWN}, 404, "Template version not found."),
    ("PATCH", f"{TEMPLATE}/versions", {"id": "{free}"}, 404, "Template version not found."),
    ("PATCH", f"{TEMPLATE}/versions", {"id": "{version}"}, 403, "Forbidden."),
    ("PATCH", TEMPLATE, {"default_ttl_ms": -1}, 400, META),
    ("PATCH", TEMPLATE, {}, 403, "Forbidden."),
]
SETTINGS: list[tuple[dict[str, Any], int, str, str]] = [
    ({"name": ""}, 200, "name", "full"),
    ({"cors_behavior": ""}, 200, "cors_behavior", "simple"),
    ({"max_port_share_level": ""}, 400, "max_port_share_level", "public"),
]
"""Changes of a template to an empty text: the status, and what the setting is afterwards."""
_UNSEEN = '{0} "{1}" either does not exist, or you are unauthorized to view {2}'
_GROUP = (
    'group "{}" either does not exist, does not belong to the organization "coder", or you are unauthorized to view it'
)
_PATTERN = "the filter must be in the pattern of <organization name>/<group name>"
TERMS = {
    "organization:default": _UNSEEN.format("organization", "default", "it"),
    "organization:none": _UNSEEN.format("organization", "none", "it"),
    f"organization:{UNKNOWN}": "",
    "shared_with_user:none": _UNSEEN.format("user", "none", "them"),
    f"shared_with_user:{UNKNOWN}": "",
    "shared_with_group:zz": _GROUP.format("zz"),
    "shared_with_group:coder/zz": _GROUP.format("zz"),
    "shared_with_group:none/zz": _UNSEEN.format("organization", "none", "it"),
    "shared_with_group:a/b/c": f"invalid organization or group name, {_PATTERN}",
    f"shared_with_group:{UNKNOWN}": "",
}
"""Terms of a search that name an object, and why they are refused; an unknown id finds nothing."""


async def test_readers_of_workspaces() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        shared = await world.post(f"{path}/port-share", {**PORT, "port": 8081})
        assert shared.status_code == 200, shared.text
        _, reader = await world.member("reader", roles=["template-admin"])
        for method, place, body, status, message in OF_WORKSPACES:
            answer = await _ask(world, method, f"{path}/{place}", body, reader)
            assert (answer.status_code, answer.json()["message"]) == (status, message), (method, place, body)
        assert len((await world.get(f"{path}/port-share")).json()["shares"]) == 1


async def test_readers_of_templates() -> None:
    async with workspace_world() as (world, _):
        template = world.extra["template"]
        free, second = await new_version(world), await new_version(world, name="second", template_id=template["id"])
        names = {
            "organization": world.organization_id,
            "template": template["id"],
            "version": template["active_version_id"],
            "free": free["id"],
            "file": second["job"]["file_id"],
        }
        _, reader = await world.member("reader")
        for method, place, body, status, message in OF_TEMPLATES:
            sent = {key: value.format(**names) if isinstance(value, str) else value for key, value in body.items()}
            answer = await _ask(world, method, f"/api/v2/{place.format(**names)}", sent, reader)
            expected = (status, message.format(**names))
            assert (answer.status_code, answer.json()["message"]) == expected, (method, place, body)
        for change, status, name, kept in SETTINGS:
            answer = await world.patch(f"/api/v2/templates/{template['id']}", change)
            assert answer.status_code == status, (change, answer.text)
            assert (await world.get(f"/api/v2/templates/{template['id']}")).json()[name] == kept
        for name, status in (("second", 200), ("SECOND", 404)):
            for place in (f"templates/{template['id']}", f"organizations/{world.organization_id}/templates/full"):
                answer = await world.get(f"/api/v2/{place}/versions/{name}")
                assert answer.status_code == status, (place, name)


async def test_terms_that_name_objects() -> None:
    async with workspace_world() as (world, _):
        await new_workspace(world, "w")
        for query, reason in TERMS.items():
            answer = await world.get("/api/v2/workspaces", params={"q": query})
            if not reason:
                assert (answer.status_code, answer.json()["count"]) == (200, 0), query
                continue
            field = query.partition(":")[0]
            assert answer.status_code == 400, query
            assert answer.json()["validations"] == [
                {"field": field, "detail": f'Query param "{field}" has invalid value: {reason}'}
            ]


async def _ask(world: World, method: str, path: str, body: dict[str, Any], token: str) -> httpx.Response:
    return await world.client.request(method, path, json=body, headers={"Coder-Session-Token": token})
