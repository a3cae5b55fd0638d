"""Who may do what with workspaces, builds and agents: the recorded matrix, caller by caller."""

from __future__ import annotations

import csv
from typing import Any
from uuid import uuid4

from tests.kit.paths import DATA
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import create, settled, workspace_world

MATRIX = DATA / "api" / "recorded" / "permissions.tsv"
ORGANIZATION_ROLES = "admin auditor template-admin user-admin workspace-creation-ban".split()
# Served by others, not offered yet, or (credentials) refused there for want of a licence.
LEFT_OUT = ("workspaceproxies", "available-users", "workspace-sharing", "credentials", "agent-connection-watch")
PARTS = ("/workspaces", "/workspacebuilds", "/workspaceagents", "/workspace/", "/workspace-quota")
AGAIN = "ttl autoupdates autostart acl usage favorite port-share state".split()
"""What leaves a workspace as good for the same call by somebody else: it is answered so whoever asked before."""
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
        found = list(csv.DictReader(file, delimiter="\t"))
    return [
        row
        for row in found
        if any(part in row["path"] for part in PARTS) and not any(part in row["path"] for part in LEFT_OUT)
    ]


async def test_the_recorded_matrix() -> None:
    async with workspace_world() as (world, _):
        desk = Desk(world)
        await desk.hire()
        differences = []
        for row in rows():
            for caller in desk.tokens:
                expected = row[caller]
                got = await desk.ask(row["method"], row["path"], row["object_owner"], caller)
                # 500 is how that release refused some changes.
                good = got in {403, 404} if expected == "500" else str(got) == expected
                if not good:
                    differences.append(
                        f"{row['method']} {row['path']} ({row['object_owner']}) as {caller}: {expected} became {got}"
                    )
        assert not differences, "\n".join(differences)


class Desk:
    """Makes the objects the calls are about: shared ones for reading, new ones after everything that used one up.

    What was refused, and what may be said again and again, is asked about the same object by the next caller: a
    refusal has to have left it as it was, and a settled choice has to be one for whoever makes it next.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.tokens: dict[str, str] = {"anonymous": "", "owner": world.token}
        self.names: dict[str, str] = {"owner": "admin"}
        self._kept: dict[str, Any] = {}
        self._spare: dict[str, Any] = {}

    async def hire(self) -> None:
        """One caller for each column."""
        world = self.world
        await self._member("alice", "alice")
        await self._member("member", "plain")
        for role in ("auditor", "template-admin", "user-admin"):
            await self._member(role, f"site-{role}", [role])
        for role in ORGANIZATION_ROLES:
            user_id = await self._member(f"organization-{role}", f"org-{role}"[:32])
            await self._keep(f"organization-{role}")  # made before the role forbids it
            path = f"/api/v2/organizations/default/members/{user_id}/roles"
            answer = await world.put(path, {"roles": [f"organization-{role}"]})
            assert answer.status_code == 200, answer.text
        del self.tokens["alice"]

    async def _member(self, caller: str, name: str, roles: list[str] | None = None) -> str:
        user_id, self.tokens[caller] = await self.world.member(name, roles)
        self.names[caller] = name
        return user_id

    async def _keep(self, caller: str) -> Any:
        if caller not in self._kept:
            self._kept[caller] = await self._make(self.names[caller])
        return self._kept[caller]

    async def _changeable(self, caller: str) -> Any:
        """A workspace of `caller` nobody has changed."""
        spare = self._spare.pop(caller, None)
        return spare or await self._make(self.names[caller])

    async def _make(self, name: str) -> Any:
        # By the site's owner: nobody's own rights stand in the way of making the object.
        answer = await create(self.world, f"w{uuid4().hex[:12]}", user=name)
        assert answer.status_code == 201, answer.text
        return await settled(self.world, answer.json()["id"])

    async def ask(self, method: str, path: str, owner: str, caller: str) -> int:
        whose = caller if owner == "self" and caller != "anonymous" else "alice"
        place = path.split(" (", maxsplit=1)[0]
        if "{workspace" not in place or "{workspacename}" in place:
            workspace = await self._keep("alice") if owner == "other" else None
        else:
            workspace = await self._keep(whose) if method == "GET" else await self._changeable(whose)
        if method == "DELETE" and place.endswith("port-share") and workspace is not None:
            await self.world.post(f"/api/v2/workspaces/{workspace['id']}/port-share", SHARE)
        filled = self._fill(place, workspace, whose)
        body = self._body(method, path)
        token = self.tokens[caller]
        status = (await self.world.request(method, filled, token=token, json=body)).status_code
        used_up = status < 400 and path.rsplit("/", maxsplit=1)[-1] not in AGAIN
        if method != "GET" and not used_up and workspace is not None:
            self._spare[whose] = workspace
        return status

    def _fill(self, path: str, workspace: Any, whose: str) -> str:
        values = {
            "user": self.names[whose],
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
