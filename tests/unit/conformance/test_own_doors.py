"""Operations that upstream does not have: a caller whom upstream's rule refuses is refused at the door.

The doors are in `coder/domain/access/own_doors.py`. For each, every kind of caller first calls upstream's operation
with the same rule; a refused caller then calls the door.
"""

from __future__ import annotations

import csv
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from coder.domain.access.own_doors import DOORS, NO_DOORS, PARTS_LEFT_OUT, Door
from tests.kit.api.api_description import operations
from tests.kit.paths import DATA, ROOT
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import external_answer, new_workspace, settled, workspace_world
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client

REFUSED = {401, 403, 404}
SITE_ROLES = ("auditor", "template-admin", "user-admin")
ORGANIZATION_ROLES = ("admin", "auditor", "template-admin", "user-admin", "workspace-creation-ban")
KEYS = (
    ["workspace:read"],
    ["workspace:read", "workspace:update", "template:read"],
    ["coder:workspaces.operate"],
    ["coder:workspaces.delete"],
    ["coder:workspaces.access"],
    ["coder:apikeys.manage_self"],
    ["api_key:read", "user:read"],
    ["user:read"],
)
"""Scopes of keys of the workspace's owner."""
SETTINGS: dict[str, Any] = {"experiments": ("oauth2",), "wireguard_address": "127.0.0.1:0"}


def _public_key() -> str:
    return b64encode(os.urandom(32)).decode()


BODIES: dict[str, Callable[[], Any]] = {
    "POST /api/v2/workspaces/{workspace}/builds": lambda: {"transition": "delete", "orphan": True},
    "PATCH /api/v2/workspaces/{workspace}": lambda: {"name": f"renamed-{os.urandom(4).hex()}"},
    "POST /api/v2/workspaces/{workspace}/update-preview": dict,
    "POST /api/v2/templates/{template}/update-preview": lambda: {"template_version_id": str(uuid4())},
    "POST /api/v2/users/{user}/wireguard-clients": lambda: {"name": "other", "public_key": _public_key()},
    "POST /api/v2/users/{user}/keys/tokens": dict,
    "POST /api/v2/workspaceagents/me/vitals": dict,
    "PUT /api/v2/organizations/{organization}/provisionerjobs/{job}/parked": lambda: {"parked": True},
    "PUT /api/v2/oauth2-provider/apps/{app}/legacy": lambda: {"legacy": False},
    "PUT /api/v2/oauth2-provider/apps/{app}": lambda: {"name": "changed", "callback_url": CALLBACK},
    "PUT /api/v2/templates/{template}/build-tokens": lambda: {"all_roles": False},
    "POST /api/v2/applications/reconnecting-pty-signed-token": dict,
    "POST /api/v2/workspaceagents/{agent}/speedtest": lambda: {"direction": "down"},
    "POST /api/v2/templates/{template}/rollouts": lambda: {"template_version_id": str(uuid4())},
    "PATCH /api/v2/templates/{template}/rollouts": lambda: {"rollout_id": str(uuid4()), "action": "stop"},
    "PATCH /api/v2/templates/{template}": lambda: {"description": "changed"},
    "POST /api/v2/licenses": lambda: {"license": "x"},
    "POST /api/v2/workspaceproxies/me/may-stay": lambda: {"app_requests": []},
    "POST /api/v2/workspaceproxies/me/issue-signed-app-token": dict,
}


QUERIES = {"GET /api/v2/workspaces/offered-versions": "?ids={workspace}"}


def _compared() -> list[Door]:
    return [door for door in DOORS if door.counterpart]


@dataclass
class Stage:
    """Callers, and the objects of a member that they name."""

    world: World
    tokens: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    guests: dict[str, str] = field(default_factory=dict)
    count: int = 0

    async def prepare(self) -> None:
        world = self.world
        alice, own = await world.member("alice")
        self.objects = {"user": alice, "organization": world.organization_id, "name": "linux"}
        self.tokens = {"anonymous": "", "owner": world.token, "alice": own}
        for role in SITE_ROLES:
            _, self.tokens[f"site {role}"] = await world.member(f"site-{role}", [role])
        for role in ORGANIZATION_ROLES:
            user, self.tokens[f"organization {role}"] = await world.member(f"org-{role}")
            path = f"/api/v2/organizations/default/members/{user}/roles"
            assert (await world.put(path, {"roles": [f"organization-{role}"]})).status_code == 200
        for name in ("member", "use", "admin"):
            user, self.tokens[f"guest {name}"] = await world.member(f"guest-{name}")
            if name != "member":
                self.guests[user] = name
        for scopes in KEYS:
            made = await world.post("/api/v2/users/me/keys/tokens", {"scopes": scopes}, token=own)
            assert made.status_code == 201, made.text
            self.tokens[f"key {' '.join(scopes)}"] = made.json()["key"]
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK})).json()["id"]
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
        client = Client(world, app, secret, own)
        self.tokens["application"] = (await client.exchange(await client.code())).json()["access_token"]
        self.objects["app"] = app
        await self.renew()

    async def renew(self) -> None:
        """Create what a permitted call may have changed or deleted."""
        world, own = self.world, self.tokens["alice"]
        self.count += 1
        made = await new_workspace(world, f"ws{self.count}", token=own)
        workspace = await settled(world, made["id"])
        shared = await world.patch(f"/api/v2/workspaces/{made['id']}/acl", {"user_roles": self.guests}, token=own)
        assert shared.status_code == 204, shared.text
        device = {"name": f"phone{self.count}", "public_key": _public_key()}
        created = await world.post("/api/v2/users/me/wireguard-clients", device, token=own)
        assert created.status_code == 201, created.text
        key = await world.post("/api/v2/users/me/keys/tokens", {}, token=own)
        self.objects |= {
            "workspace": workspace["id"],
            "template": workspace["template_id"],
            "workspacebuild": workspace["latest_build"]["id"],
            "job": workspace["latest_build"]["job"]["id"],
            "agent": workspace["latest_build"]["resources"][0]["agents"][0]["id"],
            "client": device["name"],
            "keyid": key.json()["key"].partition("-")[0],
            "preview": str(uuid4()),
        }

    async def ask(self, operation: str, token: str) -> int:
        """Return the status; 404 for a list without items, which is how some routes hide objects."""
        method, _, path = operation.partition(" ")
        objects = self.objects
        if path.startswith("/api/v2/workspaces/"):
            objects = {**objects, "agent": "main"}
        body = BODIES[operation]() if operation in BODIES else None
        path = (path + QUERIES.get(operation, "")).format(**objects)
        answer = await self.world.request(method, path, json=body, token=token)
        assert answer.status_code < 500, f"{operation}: {answer.text}"
        is_list = method == "GET" and answer.is_success and "json" in answer.headers.get("content-type", "")
        return 404 if is_list and _is_empty_list(answer.json()) else answer.status_code


def _is_empty_list(value: Any) -> bool:
    """Return whether an answer is a list without items, or an object around such lists."""
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        return bool(lists) and not any(lists)
    return value is None or value == []


def _import(job: Any) -> dict[str, Any]:
    return {
        "start_resources": [resource("main", "coder_external_agent", agents=[agent()])],
        "has_external_agents": True,
    }


def _callers(tokens: dict[str, str], number: int, step: int) -> Iterator[tuple[str, str]]:
    """Return the site's owner, an unknown caller, and one in `step` of the others: others for the next door."""
    for place, (caller, token) in enumerate(tokens.items(), number):
        if caller in {"owner", "anonymous"} or place % step == 0:
            yield caller, token


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])
async def test_callers_refused_by_rule_are_refused(step: int) -> None:
    wrong, refused, allowed = [], 0, set()
    async with workspace_world(Answers(import_=_import, build=external_answer), **SETTINGS) as (world, _):
        stage = Stage(world)
        await stage.prepare()
        for number, door in enumerate(_compared()):
            for caller, token in _callers(stage.tokens, number, step):
                if await stage.ask(door.counterpart, token) not in REFUSED:
                    allowed.add(door.what)
                    if not door.counterpart.startswith("GET "):
                        await stage.renew()
                    continue
                for operation in door.operations:
                    if operation == "GET /api/v2/wireguard" and caller != "anonymous":
                        continue  # the server's own address and public key: it names no user
                    refused += 1
                    status = await stage.ask(operation, token)
                    if status not in REFUSED:
                        wrong.append(f"{door.what}: {caller}: {operation}: {status}")
                        await stage.renew()
    assert not wrong, "\n".join(wrong)
    assert refused > 200 // step
    # The comparison means something: some caller is allowed what the rule allows.
    never = {door.what for door in _compared()} - allowed
    assert never == {"flight recorder: reports of an agent", "connections of users at a workspace proxy"}


def _shape(method: str, path: str) -> tuple[str, str]:
    return method, re.sub(r"\{[^}]*\}|\*", "{}", path).rstrip("/")


def _upstream() -> set[tuple[str, str]]:
    found = set()
    for name in ("operations.tsv", "routes.tsv"):
        with (DATA / "api" / name).open() as file:
            found |= {_shape(row["method"], row["path"]) for row in csv.DictReader(file, delimiter="\t")}
    return found


def test_every_own_operation_is_listed() -> None:
    upstream = _upstream()
    own = {
        f"{method} {path}"
        for method, path, _ in operations()
        if _shape(method, path) not in upstream and not path.startswith(PARTS_LEFT_OUT)
    }
    listed = {operation for door in DOORS for operation in door.operations}
    assert own == listed | NO_DOORS.keys()
    assert not listed & NO_DOORS.keys()


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.what)
def test_door_has_rule_and_test(door: Door) -> None:
    assert door.counterpart or door.tests, "no rule is compared or tested"
    assert not door.tests or (ROOT / door.tests).exists()
    method, _, path = door.counterpart.partition(" ")
    assert not path or _shape(method, path) in _upstream()


def _printed_table() -> list[str]:
    """Return the rows of the table in docs/security.md."""
    rows = [
        "| addition | rule of the original that applies | compared with | further tests |",
        "| --- | --- | --- | --- |",
    ]
    for door in DOORS:
        tests = f"`{door.tests}`" if door.tests else ""
        counterpart = f"`{door.counterpart}`" if door.counterpart else ""
        rows.append(f"| {door.what} | {door.rule} | {counterpart} | {tests} |")
    return rows


def test_document_has_table() -> None:
    assert "\n".join(_printed_table()) in (ROOT / "docs" / "security.md").read_text()
