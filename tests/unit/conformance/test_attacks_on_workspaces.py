"""Attacks on workspaces by callers with some rights to them: prebuilt workspaces, sharing, ports, presets, concurrency.

Foreign ids are in `test_foreign_ids*.py`, requests that no caller may make in `test_attacks.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import trio

from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.coderd.store.people import users as user_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.server.two_organizations import ForeignWorld, foreign_world
from tests.kit.server.workspaces import make_ready, prebuilt, settled, world_with_preset


async def at_once(count: int, ask: Callable[[int], Awaitable[httpx.Response]]) -> Counter[int]:
    """Return the statuses of that many concurrent requests."""
    responses: list[httpx.Response] = []

    async def one(number: int) -> None:
        responses.append(await ask(number))

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return Counter(response.status_code for response in responses)


# ---- prebuilt workspaces


async def test_claim_resets_prebuilt_workspace() -> None:
    """An administrator could prepare a workspace before it is claimed: shares, ports, schedules."""
    async with world_with_preset() as (world, _, preset):
        _, claimer = await world.member("claimer")
        lurker, lurks = await world.member("lurker")
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await settled(world, str(ahead))
        await make_ready(world, ahead)
        path = f"/api/v2/workspaces/{ahead}"
        groups = {world.organization_id: "admin"}
        schedule = "CRON_TZ=UTC 30 9 * * 1-5"
        for expected, response in (
            (204, await world.patch(f"{path}/acl", {"user_roles": {lurker: "admin"}, "group_roles": groups})),
            (
                200,
                await world.post(
                    f"{path}/port-share",
                    {"agent_name": "main", "port": 8080, "protocol": "http", "share_level": "public"},
                ),
            ),
            (204, await world.put(f"{path}/autoupdates", {"automatic_updates": "always"})),
            (204, await world.put(f"{path}/autostart", {"schedule": schedule})),
            (204, await world.put(f"{path}/ttl", {"ttl_ms": 3_600_000})),
            (403, await world.put(f"{path}/favorite")),  # for the owner only, here the system user
        ):
            assert response.status_code == expected, f"{response.request.url}: {response.text}"
        view = (await world.get(path)).json()
        assert (view["automatic_updates"], view["autostart_schedule"], view["ttl_ms"]) == (
            "always",
            schedule,
            3_600_000,
        )
        acl = (await world.get(f"{path}/acl")).json()
        ports = (await world.get(f"{path}/port-share")).json()["shares"]
        assert ([user["id"] for user in acl["users"]], len(acl["group"]), len(ports)) == ([lurker], 1, 1)
        assert (await world.get(path, token=lurks)).status_code == 200
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        claimed = await world.post("/api/v2/users/me/workspaces", body, token=claimer)
        assert claimed.json()["id"] == str(ahead), claimed.text
        await settled(world, str(ahead))
        view = (await world.get(path, token=claimer)).json()
        assert view["automatic_updates"] == "never" and not view["favorite"]
        assert not view.get("autostart_schedule") and not view.get("ttl_ms")
        acl = (await world.get(f"{path}/acl", token=claimer)).json()
        ports = (await world.get(f"{path}/port-share", token=claimer)).json()
        assert (acl["users"], acl["group"], ports["shares"]) == ([], [], [])
        assert (await world.get(path, token=lurks)).status_code == 404


async def test_prebuilt_workspace_is_claimed_once() -> None:
    async with world_with_preset() as (world, _, preset):
        people = [await world.member(f"claimer{number}") for number in range(4)]
        elsewhere = (await world.post("/api/v2/organizations", {"name": "elsewhere"})).json()["id"]
        _, stranger = await world.member("stranger", organizations=[elsewhere])
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await settled(world, str(ahead))
        await make_ready(world, ahead)
        wrong = []
        template, version = world.extra["template"]["id"], world.extra["template"]["active_version_id"]
        base = {"name": "mine", "template_version_preset_id": preset}
        for who, token, path, body in (
            ("a stranger", stranger, "/api/v2/users/me/workspaces", {"template_id": template}),
            ("a stranger", stranger, "/api/v2/users/me/workspaces", {"template_version_id": version}),
            (
                "a stranger",
                stranger,
                f"/api/v2/organizations/{elsewhere}/members/me/workspaces",
                {"template_id": template},
            ),
            ("for another", people[0][1], f"/api/v2/users/{people[1][0]}/workspaces", {"template_id": template}),
            ("for the system", people[0][1], "/api/v2/users/prebuilds/workspaces", {"template_id": template}),
            ("for the system", world.token, "/api/v2/users/prebuilds/workspaces", {"template_id": template}),
            ("for the system", world.token, f"/api/v2/users/{PREBUILDS_USER_ID}/workspaces", {"template_id": template}),
            (
                "an unknown preset",
                people[0][1],
                "/api/v2/users/me/workspaces",
                {"template_id": template, "template_version_preset_id": str(uuid4())},
            ),
            *[
                ("itself", people[0][1], f"/api/v2/workspaces/{ahead}/{action}", more)
                for action, more in (
                    ("builds", {"transition": "start"}),
                    ("builds", {"transition": "stop"}),
                    ("builds", {"transition": "delete"}),
                )
            ],
        ):
            response = await world.post(path, {**base, **body}, token=token)
            if response.status_code not in {400, 403, 404}:
                wrong.append(f"{who} {path} {body}: {response.status_code} {response.text[:120]}")
        assert await prebuilt(world) == [ahead]
        got: list[str] = []

        async def claim(number: int) -> httpx.Response:
            body = {**base, "template_id": template}
            response = await world.post("/api/v2/users/me/workspaces", body, token=people[number][1])
            got.append(response.json()["id"])
            return response

        assert await at_once(len(people), claim) == {201: len(people)}
        assert got.count(str(ahead)) == 1 and len(set(got)) == len(people)
    assert not wrong, "\n".join(wrong)


_SYSTEM_USER: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "password", {"password": "Another1Secure!"}),
    ("POST", "keys", None),
    ("DELETE", "", None),
    ("POST", "keys/tokens", {"token_name": "x"}),
    ("PUT", "roles", {"roles": ["owner"]}),
    ("PUT", "gitsshkey", None),
    ("PUT", "status/suspend", None),
    ("PUT", "profile", {"username": "x", "name": ""}),
    ("GET", "gitsshkey", None),
    ("POST", "secrets", {"name": "s", "value": "v", "env_name": "S"}),
    ("POST", "convert-login", {"to_type": "oidc", "password": ""}),
    ("PUT", "notifications/preferences", {"template_disabled_map": {}}),
)


async def test_system_user_cannot_log_in() -> None:
    """Not even an owner gets a key, a password or a role for the system user, whose workspaces are given away."""
    wrong = []
    async with running_coderd(first_user=True) as world:
        for name in ("prebuilds", str(PREBUILDS_USER_ID)):
            for method, place, body in _SYSTEM_USER:
                response = await world.request(method, f"/api/v2/users/{name}/{place}".rstrip("/"), json=body)
                if response.status_code not in {400, 403, 404, 405}:
                    wrong.append(f"{method} {name} {place}: {response.status_code} {response.text[:120]}")
        for password in ("", "prebuilds", FIRST_USER["password"]):
            credentials = {"email": "prebuilds@system", "password": password}
            response = await world.post("/api/v2/users/login", credentials, token="")
            if response.status_code not in {400, 401}:
                wrong.append(f"signed in with {password!r}: {response.status_code}")
    assert not wrong, "\n".join(wrong)


# ---- sharing


_PORT = {"agent_name": "main", "port": 8080, "share_level": "organization", "protocol": "http"}
PORTS: tuple[dict[str, Any], ...] = (
    *[{"share_level": level} for level in ("public", "authenticated", "owner", "PUBLIC", "", "public\x00", "*")],
    *[{"agent_name": name} for name in ("MAIN", "main ", "", "other", "main\x00", "{foreign}", "../main", "m" * 5000)],
    *[{"port": port} for port in (0, 1, 4, 8, -1, 65536, 73616, 2**31, 2**63, 8080.5, "8080", None, [8080], True)],
    *[{"protocol": word} for word in ("javascript", "HTTPS", "", "ftp", "http\r\nX: y")],
)
"""Ports with one fault each; the template allows sharing with the organization at most."""
PEOPLE: tuple[tuple[str, str, str], ...] = (
    *[
        ("user_roles", name, role)
        for name in ("{foreign}", "{nil}", "{system}", "{group}", "{self}", "{SELF}", "x", "*")
        for role in ("use", "admin")
    ],
    *[("user_roles", "{neighbour}", role) for role in ("owner", "*", "USE", "template-admin", " admin", "admin\x00")],
    *[
        ("group_roles", name, "use")
        for name in ("{foreign_group}", "{foreign_organization}", "{neighbour}", "{nil}", "everyone", "*")
    ],
    *[("group_roles", "{group}", role) for role in ("owner", "*", "Admin")],
)
"""Users who cannot be in an access list, and roles that do not exist."""


async def test_sharing_stays_within_rights() -> None:
    wrong = []
    async with foreign_world() as scene:
        world, token = scene.world, scene.stranger_token
        path = f"/api/v2/workspaces/{scene.strangers['workspace']}"
        limit = {"max_port_share_level": "organization"}
        assert (await world.patch(f"/api/v2/templates/{scene.mine['template']}", limit, token=scene.token)).is_success
        for change in PORTS:
            body = {**_PORT, **change}
            if body["agent_name"] == "{foreign}":
                body["agent_name"] = scene.foreign["agent"]
            response = await world.post(f"{path}/port-share", body, token=token)
            if response.status_code != 400:
                wrong.append(f"{change}: {response.status_code} {response.text[:120]}")
        me = (await world.get("/api/v2/users/me", token=token)).json()["id"]
        values = {
            "foreign": scene.foreign["user"],
            "nil": str(uuid4()),
            "system": str(PREBUILDS_USER_ID),
            "self": me,
            "SELF": me.upper(),
            "group": scene.mine["group"],
            "foreign_group": scene.foreign["group"],
            "foreign_organization": scene.foreign["organization"],
            "neighbour": scene.mine["user"],
        }
        for field, name, role in PEOPLE:
            response = await world.patch(f"{path}/acl", {field: {name.format(**values): role}}, token=token)
            if response.status_code != 400:
                wrong.append(f"{field} {name} {role}: {response.status_code} {response.text[:120]}")
        acl = (await world.get(f"{path}/acl", token=token)).json()
        assert (acl["users"], acl["group"]) == ([], [])
        assert (await world.get(f"{path}/port-share", token=token)).json()["shares"] == []
        wrong += await _as_a_guest(scene, path)
    assert len(PORTS) + len(PEOPLE) > 60
    assert not wrong, "\n".join(wrong)


async def _as_a_guest(scene: ForeignWorld, path: str) -> list[str]:
    """Requests of a user with whom a workspace is shared for use."""
    world, wrong = scene.world, []
    guest, token = await world.member("guest", organizations=[scene.mine["organization"]])
    shared = await world.patch(f"{path}/acl", {"user_roles": {guest: "use"}}, token=scene.stranger_token)
    assert shared.status_code == 204, shared.text
    assert (await world.get(path, token=token)).status_code == 200
    for method, place, body in (
        ("PATCH", "/acl", {"user_roles": {guest: "admin"}}),
        ("PATCH", "/acl", {"user_roles": {guest.upper(): "admin"}}),
        ("PATCH", "/acl", {"user_roles": {scene.mine["user"]: "use"}}),
        ("DELETE", "/acl", None),
        ("PATCH", "/acl", {"group_roles": {scene.mine["group"]: "admin"}}),
        ("POST", "/port-share", _PORT),
        ("DELETE", "/port-share", {"agent_name": "main", "port": 8080}),
        ("PUT", "/ttl", {"ttl_ms": 60_000}),
        ("PUT", "/autostart", {"schedule": None}),
        ("PUT", "/dormant", {"dormant": True}),
        ("PUT", "/favorite", None),
        ("PUT", "/extend", {"deadline": "2035-01-02T03:04:05Z"}),
        ("PATCH", "", {"name": "stolen"}),
        ("PUT", "/autoupdates", {"automatic_updates": "always"}),
        ("POST", "/abandon", {}),
        ("GET", "/external-agent/main/credentials", None),
        ("POST", "/external-agent/main/rotate-token", None),
        ("POST", "/builds", {"transition": "delete"}),
        ("GET", "/inventory", None),
        ("POST", "/builds", {"transition": "start", "state": "e30="}),
        ("POST", "/builds", {"transition": "stop", "orphan": True}),
        ("POST", "/builds", {"transition": "start", "log_level": "debug"}),
    ):
        response = await world.request(method, path + place, json=body, token=token)
        if response.status_code not in {400, 403, 404, 409}:
            wrong.append(f"a guest: {method} {place} {body}: {response.status_code} {response.text[:120]}")
    return wrong


# ---- concurrency


async def test_unique_objects_are_created_once() -> None:
    """Six concurrent requests: one succeeds, the others get the reason."""
    wrong = []
    async with running_coderd() as world:

        async def first(number: int) -> httpx.Response:
            body = {**FIRST_USER, "email": f"first{number}@b.c", "username": f"first{number}"}
            return await world.post("/api/v2/users/first", body, token="")

        assert await at_once(6, first) == {201: 1, 409: 5}
    async with foreign_world() as scene:
        world, organization = scene.world, f"/api/v2/organizations/{scene.mine['organization']}"
        role = {
            "display_name": "",
            "site_permissions": [],
            "user_permissions": [],
            "organization_permissions": [],
            "organization_member_permissions": [],
        }
        for path, body, token in (
            ("/api/v2/organizations", {"name": "race"}, world.token),
            (f"{organization}/groups", {"name": "race"}, scene.token),
            (
                f"{organization}/templates",
                {"name": "race", "template_version_id": scene.mine["free_version"]},
                scene.token,
            ),
            (f"{organization}/provisionerkeys", {"name": "race"}, scene.token),
            (f"{organization}/members/roles", {"name": "race", **role}, scene.token),
            (
                f"{organization}/members/me/workspaces",
                {"name": "race", "template_id": scene.mine["template"]},
                scene.token,
            ),
            ("/api/v2/users/me/keys/tokens", {"token_name": "race"}, scene.token),
            ("/api/v2/users/me/secrets", {"name": "race", "value": "v", "env_name": "RACE"}, scene.token),
            ("/api/v2/workspaceproxies", {"name": "race", "display_name": "", "icon": ""}, world.token),
            (
                "/api/v2/users",
                {
                    "email": "race@b.c",
                    "username": "race",
                    "password": FIRST_USER["password"],
                    "organization_ids": [scene.mine["organization"]],
                },
                world.token,
            ),
            (f"/api/v2/workspaces/{scene.mine['workspace']}/builds", {"transition": "stop"}, scene.token),
        ):

            def ask(_: int, path: str = path, body: Any = body, token: str = token) -> Awaitable[httpx.Response]:
                return world.post(path, body, token=token)

            heard = await at_once(6, ask)
            created = sum(count for status, count in heard.items() if status < 300)
            if created != 1 or set(heard) - {200, 201, 400, 409}:
                wrong.append(f"{path}: {dict(heard)}")
    assert not wrong, "\n".join(wrong)


async def test_the_last_owner_stays() -> None:
    """Two owners who remove each other's role, or delete each other, were both allowed to at the start."""
    for undo in ("roles", "delete"):
        async with running_coderd(first_user=True) as world:
            other, token = await world.member("other", ["owner"])

            async def act(who: str, by: str, world: World = world, undo: str = undo) -> httpx.Response:
                if undo == "roles":
                    return await world.put(f"/api/v2/users/{who}/roles", {"roles": []}, token=by)
                return await world.delete(f"/api/v2/users/{who}", token=by)

            pairs = [(other, world.token), (world.user_id, token)]
            await at_once(2, lambda number, act=act, pairs=pairs: act(*pairs[number]))  # type: ignore[misc]
            left = [
                response.json()["roles"]
                for by in (world.token, token)
                if (response := await world.get("/api/v2/users/me", token=by)).status_code == 200
            ]
            assert sum(any(role["name"] == "owner" for role in roles) for roles in left) >= 1, undo


async def test_concurrent_owner_is_protected() -> None:
    """A user who becomes an owner after the check: not suspended, no password set, no role removed by other
    administrators.
    """
    async with running_coderd(first_user=True) as world:
        _, admin = await world.member("admin2", ["user-admin"])
        wrong = []
        changes: tuple[tuple[str, Any], ...] = (
            ("status/suspend", None),
            ("roles", {"roles": []}),
            ("password", {"password": "Another1Secure!", "old_password": ""}),
        )
        for number, (place, body) in enumerate(changes):
            rising, token = await world.member(f"rising{number}")

            async def rise(tx: Any, rising: str = rising) -> None:
                await user_store.update_user(tx, UUID(rising), rbac_roles=["owner"])

            async def ask(path: str = f"/api/v2/users/{rising}/{place}", body: Any = body) -> httpx.Response:
                return await world.put(path, body, token=admin)

            response = await overtaken(world, rise, ask)
            user = (await world.get(f"/api/v2/users/{rising}")).json()
            roles = [role["name"] for role in user["roles"]]
            if response.status_code != 400 or user["status"] != "active" or roles != ["owner"]:
                wrong.append(f"{place}: {response.status_code} {response.text[:120]}: {user['status']} {roles}")
            if (await world.get("/api/v2/users/me", token=token)).status_code != 200:
                wrong.append(f"{place}: the session ended")
        assert not wrong, "\n".join(wrong)


async def test_suspended_user_is_not_activated() -> None:
    """By a login, or by a key used at that moment."""
    async with running_coderd(first_user=True) as world:
        sleeper, token = await world.member("sleeper")

        async def sleep(tx: Any) -> None:
            await user_store.update_user(tx, UUID(sleeper), status="dormant")

        async def suspend(tx: Any) -> None:
            await user_store.update_user(tx, UUID(sleeper), status="suspended")

        async def sign_in() -> httpx.Response:
            body = {"email": "sleeper@b.c", "password": FIRST_USER["password"]}
            return await world.post("/api/v2/users/login", body, token="")

        async def use_the_key() -> httpx.Response:
            return await world.get("/api/v2/users/me", token=token)

        for ask in (sign_in, use_the_key):
            await world.ctx.db.run(sleep)
            await overtaken(world, suspend, ask)
            world.client.cookies.clear()
            assert (await world.get(f"/api/v2/users/{sleeper}")).json()["status"] == "suspended", ask.__name__
