"""The recorded permission matrix of workspaces, builds and agents, caller by caller."""

from __future__ import annotations

import csv
from typing import Any
from uuid import uuid4

import pytest

from tests.kit.paths import DATA
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import create, settled, workspace_world

MATRIX = DATA / "api" / "recorded" / "permissions.tsv"
ORGANIZATION_ROLES = "admin auditor template-admin user-admin workspace-creation-ban".split()
# Tested elsewhere, not offered yet, or (credentials) refused by the original without a license.
LEFT_OUT = ("workspaceproxies", "available-users", "workspace-sharing", "credentials", "agent-connection-watch")
PARTS = ("/workspaces", "/workspacebuilds", "/workspaceagents", "/workspace/", "/workspace-quota")
REPEATABLE = "ttl autoupdates autostart acl usage favorite port-share state".split()
"""Calls that leave a workspace usable for the same call by another caller, with the same response."""
SHARE = {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"}
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "ttl"): {"ttl_ms": 3_600_000},
    ("PUT", "autoupdates"): {"automatic_updates": "never"},
    ("PUT", "autostart"): {"schedule": None},
    ("PUT", "extend"): {"deadline": "2100-01-01T00:00:00Z"},
    ("PUT", "dormant"): {"dormant": True},
    ("PATCH", "{workspace}"): {"name": "other-name"},
    ("POST", "port-share"): SHARE,
    ("DELETE", "port-share"): {"agent_name": "main", "port": 8080},
    ("PATCH", "acl"): {"user_roles": {}},
    ("PUT", "state"): {"state": "e30="},
    ("POST", "(stop)"): {"transition": "stop"},
    ("POST", "(start)"): {"transition": "start"},
    ("POST", "(delete)"): {"transition": "delete"},
    ("POST", "(delete orphan)"): {"transition": "delete", "orphan": True},
    ("POST", "(start debug)"): {"transition": "start", "log_level": "debug"},
}


def rows() -> list[dict[str, str]]:
    with MATRIX.open() as file:
        recorded = list(csv.DictReader(file, delimiter="\t"))
    return [
        row
        for row in recorded
        if any(part in row["path"] for part in PARTS) and not any(part in row["path"] for part in LEFT_OUT)
    ]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
async def test_recorded_permission_matrix(step: int) -> None:
    """Every fourth row, all with `--soak`: tests/unit/conformance/test_every_role.py covers reads and refusals."""
    async with workspace_world() as (world, _):
        callers = Callers(world)
        await callers.create_all()
        differences = []
        for row in rows()[::step]:
            for caller in callers.tokens:
                expected = row[caller]
                status = await callers.status_of(row["method"], row["path"], row["object_owner"], caller)
                # The recorded release refused some changes with 500.
                matches = status in {403, 404} if expected == "500" else str(status) == expected
                if not matches:
                    differences.append(
                        f"{row['method']} {row['path']} ({row['object_owner']}) as {caller}: {expected} became {status}"
                    )
        assert not differences, "\n".join(differences)


class Callers:
    """Creates the objects of the calls: shared ones for reading, a new one after every call that used one up.

    The next caller gets the same object after a refused call, which must not have changed it, and after a repeatable
    one.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.tokens: dict[str, str] = {"anonymous": "", "owner": world.token}
        self.names: dict[str, str] = {"owner": "admin"}
        self._shared_workspaces: dict[str, Any] = {}
        self._spare: dict[str, Any] = {}

    async def create_all(self) -> None:
        """Create one caller for each column."""
        world = self.world
        await self._member("alice", "alice")
        await self._member("member", "plain")
        for role in ("auditor", "template-admin", "user-admin"):
            await self._member(role, f"site-{role}", [role])
        for role in ORGANIZATION_ROLES:
            user_id = await self._member(f"organization-{role}", f"org-{role}"[:32])
            await self._shared(f"organization-{role}")  # created before the role forbids it
            path = f"/api/v2/organizations/default/members/{user_id}/roles"
            answer = await world.put(path, {"roles": [f"organization-{role}"]})
            assert answer.status_code == 200, answer.text
        del self.tokens["alice"]

    async def _member(self, caller: str, name: str, roles: list[str] | None = None) -> str:
        user_id, self.tokens[caller] = await self.world.member(name, roles)
        self.names[caller] = name
        return user_id

    async def _shared(self, caller: str) -> Any:
        if caller not in self._shared_workspaces:
            self._shared_workspaces[caller] = await self._create_workspace(self.names[caller])
        return self._shared_workspaces[caller]

    async def _unchanged(self, caller: str) -> Any:
        """Return an unchanged workspace of `caller`."""
        spare = self._spare.pop(caller, None)
        return spare or await self._create_workspace(self.names[caller])

    async def _create_workspace(self, name: str) -> Any:
        # Created by the site's owner, so that the user's own permissions do not matter.
        answer = await create(self.world, f"w{uuid4().hex[:12]}", user=name)
        assert answer.status_code == 201, answer.text
        return await settled(self.world, answer.json()["id"])

    async def status_of(self, method: str, path: str, owner: str, caller: str) -> int:
        user = caller if owner == "self" and caller != "anonymous" else "alice"
        route = path.split(" (", maxsplit=1)[0]
        if "{workspace" not in route or "{workspacename}" in route:
            workspace = await self._shared("alice") if owner == "other" else None
        else:
            workspace = await self._shared(user) if method == "GET" else await self._unchanged(user)
        if method == "DELETE" and route.endswith("port-share") and workspace is not None:
            await self.world.post(f"/api/v2/workspaces/{workspace['id']}/port-share", SHARE)
        filled = self._fill_path(route, workspace, user)
        body = self._body(method, path)
        token = self.tokens[caller]
        status = (await self.world.request(method, filled, token=token, json=body)).status_code
        used_up = status < 400 and path.rsplit("/", maxsplit=1)[-1] not in REPEATABLE
        if method != "GET" and not used_up and workspace is not None:
            self._spare[user] = workspace
        return status

    def _fill_path(self, path: str, workspace: Any, user: str) -> str:
        values = {
            "user": self.names[user],
            "organization": self.world.organization_id,
            "workspacename": workspace["name"] if workspace else "none",
            "buildnumber": "1",
            "os": "linux",
            "arch": "amd64",
        }
        if workspace:
            latest = workspace["latest_build"]
            agents = [agent for item in latest["resources"] for agent in item.get("agents", ())]
            values |= {
                "workspace": workspace["id"],
                "workspacebuild": latest["id"],
                "workspaceagent": agents[0]["id"] if agents else str(uuid4()),
            }
        return path.format(**values)

    def _body(self, method: str, path: str) -> Any:
        if path.endswith("/workspaces") and method == "POST":
            return {"name": f"n{uuid4().hex[:12]}", "template_id": self.world.extra["template"]["id"]}
        for (verb, end), body in BODIES.items():
            if verb == method and path.endswith(end):
                return body
        return None
