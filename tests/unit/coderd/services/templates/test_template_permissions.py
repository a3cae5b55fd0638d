"""Permissions on templates, versions and the queue: the recorded matrix, caller by caller."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from tests.kit.paths import DATA
from tests.kit.provisioners.scripted_provisioner import ended, new_template, new_version, upload, working_daemon
from tests.kit.server.server_in_process import World, running_coderd

MATRIX = DATA / "api" / "recorded" / "permissions.tsv"
ORGANIZATION_ROLES = "admin auditor template-admin user-admin workspace-creation-ban".split()
# Refused without a license, or served elsewhere, or not offered yet.
LEFT_OUT = (
    "provisionerkeys",
    "/acl",
    "prebuilds",
    "dynamic-parameters",
    "templatebuilder",
    "insights",
    "notifications",
)
REFUSED = {401, 403, 404}
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/api/v2/templates/{template}"): {"description": "x"},
    ("PATCH", "/api/v2/templateversions/{templateversion}"): {"message": "x"},
    ("POST", "/api/v2/templates/{template}/versions/archive"): {"all": False},
    ("POST", "/api/v2/templateversions/{templateversion}/dry-run"): {"workspace_name": "dry"},
}


def rows() -> list[dict[str, str]]:
    with MATRIX.open() as file:
        matrix = list(csv.DictReader(file, delimiter="\t"))
    return [
        row
        for row in matrix
        if ("/template" in row["path"] or "/provisioner" in row["path"])
        and not any(part in row["path"] for part in LEFT_OUT)
    ]


async def callers(world: World) -> dict[str, str]:
    """Return session tokens by column."""
    tokens = {"anonymous": "", "owner": world.token}
    _, tokens["member"] = await world.member("plain")
    for role in ("auditor", "template-admin", "user-admin"):
        _, tokens[role] = await world.member(f"site-{role}", [role])
    for role in ORGANIZATION_ROLES:
        user_id, tokens[f"organization-{role}"] = await world.member(f"org-{role}")
        answer = await world.put(
            f"/api/v2/organizations/default/members/{user_id}/roles", {"roles": [f"organization-{role}"]}
        )
        assert answer.status_code == 200, answer.text
    return tokens


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])
async def test_permissions_match_recording(step: int) -> None:
    """Every third row, all with `--soak`: tests/unit/conformance/test_every_role.py covers reads and refusals."""
    async with running_coderd(first_user=True) as world, working_daemon(world):
        tokens = await callers(world)
        desk = Desk(world)
        differences = []
        for row in rows()[::step]:
            for caller, token in tokens.items():
                expected = row[caller]
                got = await desk.ask(row["method"], row["path"], token)
                # That release answered some refused changes with 500.
                good = got in {403, 404} if expected == "500" else str(got) == expected
                if not good:
                    differences.append(f"{row['method']} {row['path']} as {caller}: {expected} became {got}")
        assert not differences, "\n".join(differences)


class Desk:
    """Creates the objects of calls: shared ones for reading, new ones after each change.

    The next caller uses the objects of a refused call, which must have left them unchanged.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = 0
        self.shared: dict[str, str] = {}
        self.spare: dict[bool, dict[str, str]] = {}

    async def ask(self, method: str, path: str, token: str) -> int:
        dry_run = "jobID" in path
        if method == "GET":
            self.shared = self.shared or await self.make(dry_run=True)
            objects = self.shared
        else:
            objects = self.spare.pop(dry_run, {}) or await self.make(dry_run=dry_run)
        unchanged = objects
        if path.endswith("archive") and "{templateversion}" in path:
            spare = await new_version(self.world, template_id=objects["template"])
            await ended(self.world, f"/api/v2/templateversions/{spare['id']}")
            objects = {**objects, "templateversion": spare["id"]}
            if path.endswith("/unarchive"):
                await self.world.post(f"/api/v2/templateversions/{spare['id']}/archive")
        if path.endswith("/previous"):
            objects = {**objects, "templateversionname": objects["second"]}
        body = await self.body(method, path, objects)
        status = (await self.world.request(method, path.format(**objects), token=token, json=body)).status_code
        if method != "GET" and status in REFUSED:
            self.spare[dry_run] = unchanged
        return status

    async def make(self, *, dry_run: bool) -> dict[str, str]:
        world = self.world
        self.count += 1
        template = await new_template(world, f"t{self.count}")
        version = template["active_version_id"]
        done = await ended(world, f"/api/v2/templateversions/{version}")
        second = await new_version(world, template_id=template["id"]) if dry_run else {"name": ""}
        return {
            "organization": world.organization_id,
            "template": template["id"],
            "templatename": template["name"],
            "templateversion": version,
            "templateversionname": "none",
            "jobID": await self.dry_run(version) if dry_run else "",
            "job": done["job"]["id"],
            "second": second["name"],
        }

    async def dry_run(self, version: str) -> str:
        path = f"/api/v2/templateversions/{version}/dry-run"
        started = (await self.world.post(path, {"workspace_name": "dry"})).json()
        await ended(self.world, f"{path}/{started['id']}")
        return str(started["id"])

    async def body(self, method: str, path: str, objects: dict[str, str]) -> Any:
        if path.endswith("/templateversions"):
            file_id = await upload(self.world, {"main.tf": ""})
            return {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file_id}
        if path.endswith("/templates") and method == "POST":
            version = await new_version(self.world)
            return {"name": f"n{version['id'][:8]}", "template_version_id": version["id"]}
        if path.endswith("{template}/versions") and method == "PATCH":
            return {"id": objects["templateversion"]}
        return BODIES.get((method, path))


async def test_template_editors_read_archives() -> None:
    async with running_coderd(first_user=True) as world, working_daemon(world):
        tokens = await callers(world)
        template = await new_template(world)
        version = (await world.get(f"/api/v2/templateversions/{template['active_version_id']}")).json()
        path = f"/api/v2/files/{version['job']['file_id']}"
        with MATRIX.open() as file:
            row = next(row for row in csv.DictReader(file, delimiter="\t") if row["path"] == "/api/v2/files/{fileID}")
        got = {caller: str((await world.get(path, token=token)).status_code) for caller, token in tokens.items()}
        assert got == {caller: row[caller] for caller in tokens}
        unused = await upload(world, {"main.tf": "# unused"})
        assert (await world.get(f"/api/v2/files/{unused}", token=tokens["organization-admin"])).status_code == 404


# ---- calls that require `create` on the template

_EXAMPLE = {"storage_method": "file", "provisioner": "echo", "tags": {}, "example_id": "scratch"}
DOORS = ("acl", "version", "read-acl", "rename", "promote", "edit-version")
CREATE_RIGHTS: dict[str, tuple[int, ...]] = {
    # caller: the status of each of DOORS
    "updater": (403, 404, 200, 200, 200, 200),
    "update-key": (403, 403, 200, 200, 200, 200),
    "creator": (200, 201, 403, 403, 403, 403),
    "reader": (403, 404, 403, 403, 403, 403),
    "listed-admin": (200, 201, 200, 200, 200, 200),
    "listed-user": (403, 404, 403, 403, 403, 403),
    "template-admin": (200, 201, 200, 200, 200, 200),
    "organization-admin": (200, 201, 200, 200, 200, 200),
    "organization-template-admin": (200, 201, 200, 200, 200, 200),
    "owner": (200, 201, 200, 200, 200, 200),
    "author-key": (200, 201, 200, 200, 200, 200),
}


async def _custom(world: World, name: str, *actions: str) -> str:
    """Return the session token of a member whose only permissions on templates are `actions`."""
    permissions = [{"negate": False, "resource_type": "template", "action": action} for action in ("read", *actions)]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    role = {"name": name, "display_name": "", "organization_permissions": permissions, **none}
    assert (await world.post("/api/v2/organizations/default/members/roles", role)).status_code == 200
    user_id, token = await world.member(name)
    path = f"/api/v2/organizations/default/members/{user_id}/roles"
    assert (await world.put(path, {"roles": [name]})).status_code == 200
    return token


async def test_acl_and_versions_require_create() -> None:
    """An entry may grant every permission, and a version runs on the provisioner: `update` does not suffice."""
    wrong = []
    async with running_coderd(first_user=True) as world, working_daemon(world):
        tokens = await callers(world)
        for name, actions in (("updater", ["update"]), ("creator", ["create"]), ("reader", [])):
            tokens[name] = await _custom(world, name, *actions)
        for name, scopes in (
            ("update-key", ["template:read", "template:update", "organization:read"]),
            ("author-key", ["coder:templates.author", "organization:read", "user:read"]),
        ):
            made = await world.post("/api/v2/users/me/keys/tokens", {"scopes": scopes})
            assert made.status_code == 201, made.text
            tokens[name] = made.json()["key"]
        puppet, _ = await world.member("puppet")
        listed = {}
        for name, role in (("listed-admin", "admin"), ("listed-user", "use")):
            listed[(await world.member(name))[0]] = role
        for name in ("listed-admin", "listed-user"):
            tokens[name] = await world.login(f"{name}@b.c", "SomeSecure123!")
        template = await new_template(world)
        path, version = f"/api/v2/templates/{template['id']}", template["active_version_id"]
        await ended(world, f"/api/v2/templateversions/{version}")
        assert (await world.patch(f"{path}/acl", {"user_perms": listed})).status_code == 200
        for caller, expected in CREATE_RIGHTS.items():
            new = {**_EXAMPLE, "template_id": template["id"]}
            requests: tuple[tuple[str, str, Any], ...] = (
                ("PATCH", f"{path}/acl", {"user_perms": {puppet: "admin"}}),
                ("POST", "/api/v2/organizations/default/templateversions", new),
                ("GET", f"{path}/acl", None),
                ("PATCH", path, {"description": caller}),
                ("PATCH", f"{path}/versions", {"id": version}),
                ("PATCH", f"/api/v2/templateversions/{version}", {"message": caller}),
            )
            for door, status, (method, where, body) in zip(DOORS, expected, requests, strict=True):
                answer = await world.request(method, where, json=body, token=tokens[caller])
                if answer.status_code != status:
                    wrong.append(f"{caller} {door}: {answer.status_code} {answer.text[:120]}")
    assert not wrong, "\n".join(wrong)


async def test_template_from_unreadable_version() -> None:
    """A version without a template belongs to its author: a template from it requires to read and update it."""
    async with running_coderd(first_user=True) as world, working_daemon(world):
        version = await new_version(world)
        await ended(world, f"/api/v2/templateversions/{version['id']}")
        scopes = ["template:create", "organization:read"]
        statuses = []
        for extra in ([], ["template:read"], ["template:read", "template:update"]):
            made = await world.post("/api/v2/users/me/keys/tokens", {"scopes": [*scopes, *extra]})
            assert made.status_code == 201, made.text
            body = {"name": "adopted", "template_version_id": version["id"]}
            path = "/api/v2/organizations/default/templates"
            answer = await world.request("POST", path, json=body, token=made.json()["key"])
            statuses.append(answer.status_code)
    assert statuses == [404, 403, 201]
