"""Keys with an allow list at every route: they reach only what they list, and lists show only that.

Every route that a user's key may call is called with a key that has all rights except those to the objects in
question. The refusal must come from the key's limits: a request that is refused for another reason proves nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from tests.kit.server.narrow_keys import NarrowWorld, is_empty, narrow_world, operations

_OTHER_PROGRAMS = ("/external-auth/", "/gitauth/", "/oauth2/")
"""Beginnings of pages whose parameters are defined by the protocol; without them, they are pages of the dashboard."""
_ELSEWHERE = {
    "GET /api/experimental/watch-all-workspacebuilds": "a WebSocket, tested in test_scopes_of_streams.py",
    "POST /api/v2/applications/reconnecting-pty-signed-token": "the body names the agent: test_named_objects.py",
    "GET /api/v2/templatebuilder/bases": "a list that the program contains, of no template",
    "GET /api/v2/templatebuilder/modules": "a list that the program contains, of no template",
    "POST /api/v2/templatebuilder/sessions": "counts a visit of the builder's page, of no template",
}
"""Routes that refuse the request before they ask for the object, or name none."""
_ADDRESSES = {
    "GET /api/v2/applications/auth-redirect": "/api/v2/applications/auth-redirect?redirect_uri=http://w--u.apps.test/"
}
"""Routes that check a query first -> a valid address."""


async def _differences(world: NarrowWorld) -> list[str]:
    wrong, asked = [], 0
    for item in operations():
        if item.rule.startswith(_OTHER_PROGRAMS) or item.name in _ELSEWHERE:
            continue
        for kinds in item.wanted:
            response = await world.ask(item, await world.key(kinds), _ADDRESSES.get(item.name, ""))
            asked += 1
            if not world.refused_by(kinds, response) and not is_empty(response):
                wrong.append(f"{item.name} without {kinds}: {response.status_code} {response.text[:200]}")
    assert asked > 300
    return wrong


async def test_unlisted_objects_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with narrow_world(monkeypatch, wildcard_access_url="*.apps.test") as world:
        wrong = await _differences(world)
    assert not wrong, "\n".join(wrong)


async def test_versions_without_template_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that no template has yet is no listed template: a key that lists single templates does not reach it."""
    wrong, asked = [], 0
    async with narrow_world(monkeypatch) as world:
        listed = await world.things.thing("victim", "template")
        key = await world.key(("template",), listed)
        for item in operations():
            if "/templateversions/{" not in item.rule:
                continue
            free = await world.things.thing("site", "free_version")
            url = re.sub(r"(?<=/templateversions/)[^/?]+", free, await world.url(item))
            response = await world.ask(item, key, url)
            asked += 1
            if not world.refused_by(("template",), response):
                wrong.append(f"{item.name}: {response.status_code} {response.text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert asked > 15


async def _pairs(world: NarrowWorld) -> dict[str, tuple[str, str]]:
    """Return two objects of each kind that a list shows, which `boss` may read."""
    things, boss = world.things, await world.things.token("boss")

    async def created(path: str, **body: Any) -> Any:
        response = await things.world.post(path, body, token=boss)
        assert response.status_code in {200, 201}, (path, response.text)
        return response.json()

    organization = f"/api/v2/organizations/{things.world.organization_id}"
    pairs = defaultdict[str, list[str]](list)
    for turn in ("one", "two"):
        skill = {"content": f"---\nname: {turn}\ndescription: d\n---\nbody\n"}
        app = await created("/api/v2/oauth2-provider/apps", name=turn, callback_url="http://localhost:3000", icon="")
        proxy = await created("/api/v2/workspaceproxies", name=turn, display_name=turn, icon="/e.png")
        await created(f"{organization}/provisionerkeys", name=turn, tags={})
        found = {
            "group": await created(f"{organization}/groups", name=turn),
            "oauth2_app": app,
            "oauth2_app_secret": await created(f"/api/v2/oauth2-provider/apps/{await _app(world)}/secrets"),
            "organization": await created("/api/v2/organizations", name=turn),
            "task": {"id": await _task(world)},
            "user_secret": await created("/api/v2/users/me/secrets", name=turn, value="v", env_name=turn),
            "user_skill": await created("/api/experimental/users/me/skills", **skill),
            "workspace_proxy": proxy["proxy"],
        }
        for kind, item in found.items():
            pairs[kind].append(str(item["id"]))
    users = [await things.thing(who, "user_id") for who in ("boss", "victim")]
    keys = (await things.world.get(f"{organization}/provisionerkeys")).json()
    return {kind: (one, two) for kind, (one, two) in pairs.items()} | {
        "user": (users[0], users[1]),
        "organization_member": (users[0], users[1]),
        "provisioner_daemon": (keys[0]["id"], keys[1]["id"]),
        "template": (things.world.extra["template"]["id"], await things.thing("site", "template")),
        "workspace": (await things.thing("boss", "workspace"), await things.thing("victim", "workspace")),
    }


async def _app(world: NarrowWorld) -> str:
    return await world.things.thing("site", "app")


async def _task(world: NarrowWorld) -> str:
    world.things.things.pop(("boss", "task"), None)
    return await world.things.thing("boss", "task")


async def test_lists_hold_listed_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, shown = [], set()
    async with narrow_world(monkeypatch) as world:
        pairs, whole = await _pairs(world), await world.things.token("boss")
        for item in operations():
            kinds = {kind for alternatives in item.wanted[:1] for kind in alternatives if kind in pairs}
            if item.method != "GET" or not kinds:
                continue
            everything = (await world.ask(item, whole)).text
            for kind in kinds:
                listed, other = pairs[kind]
                if listed not in everything or other not in everything:
                    continue
                response = await world.ask(item, await world.key([kind], listed))
                if response.status_code != 200 or listed not in response.text or other in response.text:
                    wrong.append(f"{item.name} with {kind}: {response.status_code} {response.text[:300]}")
                shown.add(kind)
    assert not wrong, "\n".join(wrong)
    assert shown == pairs.keys(), pairs.keys() - shown
