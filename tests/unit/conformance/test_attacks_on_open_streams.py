"""A stream about an object ends when its reader may no longer see the object: generated for every WebSocket route.

Changes of a user's session, roles, groups or organizations are in `test_session_revocation.py`. Here the reader does
not change: the object's owner stops sharing it, or deletes it, which ends sharing. Tunnels and terminals are at the end
of the list, with the tests that cover them.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from coder.base.secret import Secret
from coder.coderd.http.server.declarations import EVENTS
from coder.coderd.services.access import recheck_rights, session_revocation
from coder.coderd.services.agents import agent_containers
from coder.coderd.services.workspaces import agent_streams, workspace_streams
from coder.domain.access.route_scopes import AGENT
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import WebSocketStream, connect_websocket
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.api_description import application
from tests.kit.provisioners.scripted_provisioner import ended, new_template, new_version
from tests.kit.server.race_conditions import filled
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, without_daemon, workspace_world
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client
from tests.unit.conformance.test_foreign_ids_in_websockets import streams

PATIENCE = 60.0
_RPC = "tests/unit/coderd/rpc_endpoints"
ELSEWHERE = {
    "/api/v2/workspaceagents/{agent}/pty": "tests/unit/appproxy/apps/test_apps.py",
    "/api/v2/workspaceagents/{agent}/coordinate": f"{_RPC}/test_coordination.py",
    "/api/v2/organizations/{organization}/provisionerdaemons/serve": f"{_RPC}/test_provisioners.py",
}
"""Routes that recheck themselves, and their tests."""
INBOX = "/api/v2/notifications/inbox/watch"
SHARING = "/api/v2/organizations/default/settings/workspace-sharing"


async def _silent(ctx: Any, agent_id: Any, port: int) -> trio.abc.Stream:
    """An agent that accepts a WebSocket and sends one message."""
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    await theirs.send_all(b"\x81\x02{}")
    return ours


async def shared_objects(world: World, guest: str) -> dict[str, str]:
    """Return one object of each kind, shared with the guest, with pending jobs, so that no stream ends on its own."""
    workspace, building = await new_workspace(world), await new_workspace(world, "building")
    (agent,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
    template = world.extra["template"]
    await without_daemon(world)
    built = await world.post(f"/api/v2/workspaces/{building['id']}/builds", {"transition": "stop"})
    assert built.status_code == 201, built.text
    version = await new_version(world, template_id=template["id"])
    places = {
        "workspace": workspace["id"],
        "building": building["id"],
        "agent": agent["id"],
        "build": built.json()["id"],
        "version": version["id"],
        "done": template["active_version_id"],
        "template": template["id"],
    }
    body = {"group_perms": {world.organization_id: ""}}  # a new template is shared with all members
    assert (await world.patch(f"/api/v2/templates/{template['id']}/acl", body)).status_code == 200
    await share(world, places, guest)
    return places


async def share(world: World, places: dict[str, str], guest: str, *, away: bool = False, whom: str = "user") -> None:
    for kind, name, field, role in (
        ("workspaces", "workspace", f"{whom}_roles", "use"),
        ("workspaces", "building", f"{whom}_roles", "use"),
        ("templates", "template", f"{whom}_perms", "admin"),
    ):
        response = await world.patch(f"/api/v2/{kind}/{places[name]}/acl", {field: {guest: "" if away else role}})
        assert response.status_code in {200, 204}, response.text


async def dry_run(world: World, token: str, version: str) -> str:
    created = await world.post(f"/api/v2/templateversions/{version}/dry-run", {"workspace_name": "x"}, token=token)
    assert created.status_code == 201, created.text
    return str(created.json()["id"])


def _path(rule: str, places: dict[str, str]) -> str:
    needs_done = "dynamic" in rule or "dry-run" in rule
    values = {**places, "version": places["done"]} if needs_done else places
    return re.sub(r"\{([^}]*)\}", lambda match: values[match[1]], rule)


@asynccontextmanager
async def _open(world: World, token: str, path: str) -> AsyncIterator[WebSocketStream]:
    stream = await connect_websocket(DialPolicy(world.url, token=Secret(token)), path)
    try:
        yield stream
    finally:
        await trio.aclose_forcefully(stream)


async def _ends(stream: WebSocketStream, patience: float) -> bool:
    with trio.move_on_after(patience) as scope:
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    return not scope.cancelled_caught


def rules() -> list[str]:
    return sorted({item.rule for item in streams() if item.parameters and item.rule not in ELSEWHERE})


def about_a_workspace() -> list[str]:
    """Return routes whose object goes with a deleted workspace."""
    return [rule for rule in rules() if re.search(r"\{(workspace|build|agent)\}", rule)]


async def test_streams_end_with_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    monkeypatch.setattr(agent_containers, "dial", _silent)
    monkeypatch.setattr(agent_containers, "require_connected", lambda *_: None)
    routes = rules()
    assert len(routes) >= 9
    wrong = []
    async with workspace_world() as (world, _):
        guest, token = await world.member("guest")
        places = await shared_objects(world, guest)
        places["job"] = await dry_run(world, token, places["done"])
        for rule in routes:
            async with _open(world, token, _path(rule, places)) as hers, _open(world, world.token, INBOX) as mine:
                await share(world, places, guest, away=True)
                if not await _ends(hers, PATIENCE):
                    wrong.append(f"{rule}: still open")
                elif hers.close_code not in {1000, 1008}:
                    wrong.append(f"{rule}: {hers.close_code}")
                assert not await _ends(mine, 0.01), "another user's stream stays"
            await share(world, places, guest)
    assert not wrong, "\n".join(wrong)


async def test_streams_end_with_organization_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All access lists are emptied at once while the owner watches: the shared read of all watchers reports it, and a
    new watcher is checked against it.
    """
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    monkeypatch.setattr(agent_containers, "dial", _silent)
    monkeypatch.setattr(agent_containers, "require_connected", lambda *_: None)
    routes = about_a_workspace()
    assert len(routes) >= 6
    wrong = []
    async with workspace_world() as (world, _):
        guest, token = await world.member("guest")
        places = await shared_objects(world, guest)
        for rule in routes:
            path = _path(rule, places)
            async with _open(world, world.token, path), _open(world, token, path) as hers:
                off = await world.patch(SHARING, {"sharing_disabled": True})
                assert off.status_code == 200, off.text
                if not await _ends(hers, PATIENCE):
                    wrong.append(f"{rule}: still open")
                elif hers.close_code not in {1000, 1008}:
                    wrong.append(f"{rule}: {hers.close_code}")
                try:
                    async with _open(world, token, path):
                        wrong.append(f"{rule}: reopened")
                except HttpError as error:
                    assert error.status == 404, rule
            on = await world.patch(SHARING, {"sharing_disabled": False})
            assert on.status_code == 200, on.text
            await share(world, places, guest)
    assert not wrong, "\n".join(wrong)


async def test_streams_end_with_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sharing ends, and with it the guests' streams; the owner still sees the end."""
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    monkeypatch.setattr(agent_containers, "dial", _silent)
    monkeypatch.setattr(agent_containers, "require_connected", lambda *_: None)
    routes = about_a_workspace()
    assert len(routes) >= 6
    wrong = []
    async with workspace_world() as (world, _):
        guest, token = await world.member("guest")
        created = [await new_workspace(world, f"w{place}") for place in range(len(routes))]
        await without_daemon(world)
        for rule, workspace in zip(routes, created, strict=True):
            (agent,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
            path = f"/api/v2/workspaces/{workspace['id']}"
            build = await world.post(f"{path}/builds", {"transition": "stop"}) if "{build}" in rule else None
            places = {"workspace": workspace["id"], "agent": agent["id"], "build": build.json()["id"] if build else ""}
            shared = await world.patch(f"{path}/acl", {"user_roles": {guest: "use"}})
            assert shared.status_code == 204, shared.text
            async with _open(world, token, _path(rule, places)) as hers:
                deleted = await world.post(f"{path}/abandon")
                assert deleted.status_code == 200, deleted.text
                if not await _ends(hers, PATIENCE):
                    wrong.append(f"{rule}: still open")
                elif hers.close_code not in {1000, 1008}:
                    wrong.append(f"{rule}: {hers.close_code}")
    assert not wrong, "\n".join(wrong)


async def test_newer_build_keeps_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams about an agent continue while a stop is queued; log streams end on their own."""
    responses: list[bool | None] = []
    is_ordered, put = False, recheck_rights._is_allowed

    async def noted(ask: Any) -> bool | None:
        counts = is_ordered
        response = await put(ask)
        if counts:
            responses.append(response)
        return response

    async def asked() -> bool:
        return bool(responses)

    monkeypatch.setattr(recheck_rights, "_is_allowed", noted)
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    monkeypatch.setattr(agent_containers, "dial", _silent)
    monkeypatch.setattr(agent_containers, "require_connected", lambda *_: None)
    routes = [item for item in rules() if "{agent}" in item and "logs" not in item]
    assert len(routes) >= 2
    async with workspace_world() as (world, _):
        created = [await new_workspace(world, f"w{place}") for place in range(len(routes))]
        await without_daemon(world)
        for rule, workspace in zip(routes, created, strict=True):
            (agent,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
            responses.clear()
            is_ordered = False
            async with _open(world, world.token, _path(rule, {"agent": agent["id"]})) as stream:
                ordered = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "stop"})
                assert ordered.status_code == 201, ordered.text
                is_ordered = True
                await world.member(f"m{workspace['name']}")  # a new member triggers a check of every stream
                await eventually(asked)
                assert all(responses), rule
                assert not await _ends(stream, 0.01), f"{rule}: {stream.close_code}"


# ---- every stream, also server-sent events, and every loss of its reader


def event_streams() -> list[str]:
    """Server-sent events about a workspace or an agent, for users."""
    app, routes = application(), set()
    for rule in app.url_map.iter_rules():
        declared = getattr(app.view_functions[rule.endpoint], "route", None)
        if declared is not None and declared.answers is EVENTS and declared.scope is not AGENT:
            routes.add(re.sub(r"<(?:[^:<>]*:)?([^<>]*)>", r"{\1}", rule.rule))
    return sorted(routes)


PERSONAL = [INBOX, "/api/v2/tailnet?version=2.0"]
"""Streams about no shared object: they stay open, or reopen, for every user who may log in."""
LOSSES: dict[str, tuple[dict[str, Any], tuple[str, str, Any]]] = {
    # way of access of the guest, and (method, path, body) of the request that removes it
    "leaves the organization": ({"user": True}, ("DELETE", "/api/v2/organizations/default/members/{guest}", None)),
    "leaves the group": ({"group": True}, ("PATCH", "/api/v2/groups/{group}", {"remove_users": ["{guest}"]})),
    "the group is deleted": ({"group": True}, ("DELETE", "/api/v2/groups/{group}", None)),
    "a role for the site": ({"roles": ["owner"]}, ("PUT", "/api/v2/users/{guest}/roles", {"roles": []})),
    "a role in the organization": (
        {"organization_roles": ["organization-admin"]},
        ("PUT", "/api/v2/organizations/default/members/{guest}/roles", {"roles": []}),
    ),
    "is suspended": ({"user": True}, ("PUT", "/api/v2/users/{guest}/status/suspend", None)),
    "is deleted": ({"user": True}, ("DELETE", "/api/v2/users/{guest}", None)),
    "the session ends": ({"user": True}, ("DELETE", "/api/v2/users/{guest}/keys/{key}", None)),
    "the password is changed": (
        {"user": True},
        ("PUT", "/api/v2/users/{guest}/password", {"password": "AnotherGoodOne1!"}),
    ),
    # the guest's application asks, and its consent ends
    "the application is deleted": ({"user": True, "app": True}, ("DELETE", "/api/v2/oauth2-provider/apps/{app}", None)),
}
SHUT_OUT = {
    "is suspended",
    "is deleted",
    "the session ends",
    "the password is changed",
    "the application is deleted",
}
"""Losses that end personal streams, too."""
WITH_APPLICATIONS: dict[str, Any] = {"experiments": ("oauth2",)}
"""Settings for the losses above."""


async def let_in(world: World, places: dict[str, str], name: str, how: dict[str, Any]) -> tuple[dict[str, str], str]:
    guest, token = await world.member(name, how.get("roles", ()))
    names = {"guest": guest, "key": token.partition("-")[0], "group": "", "app": ""}
    if roles := how.get("organization_roles"):
        path = f"/api/v2/organizations/default/members/{guest}/roles"
        assert (await world.put(path, {"roles": roles})).status_code == 200
    if "user" in how:
        await share(world, places, guest)
    if "group" in how:
        created = await world.post("/api/v2/organizations/default/groups", {"name": name})
        names["group"] = created.json()["id"]
        added = await world.patch(f"/api/v2/groups/{names['group']}", {"add_users": [guest]})
        assert added.status_code == 200, added.text
        await share(world, places, names["group"], whom="group")
    if "app" in how:
        body = {"name": name, "callback_url": CALLBACK}
        names["app"] = str((await world.post("/api/v2/oauth2-provider/apps", body)).json()["id"])
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{names['app']}/secrets")).json()["client_secret_full"]
        client = Client(world, names["app"], secret, token)
        token = (await client.exchange(await client.code())).json()["access_token"]
    return names, token


@asynccontextmanager
async def _events(world: World, token: str, path: str) -> AsyncIterator[AsyncIterator[str]]:
    async with world.client.stream("GET", path, headers={"Coder-Session-Token": token}) as response:
        assert response.status_code == 200, path
        lines = response.aiter_lines()
        assert await anext(lines), path
        yield lines


async def _lines_end(lines: AsyncIterator[str]) -> bool:
    with trio.move_on_after(PATIENCE) as scope:
        async for _ in lines:
            pass
    return not scope.cancelled_caught


async def test_streams_end_with_lost_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """All streams of a guest at once, while the owner's stay. Reopening is refused as for a stranger."""
    for module in (recheck_rights, session_revocation):
        monkeypatch.setattr(module, "PAUSE", 0.0)
    for module in (agent_streams, workspace_streams):
        monkeypatch.setattr(module, "PING_EVERY", 0.5)  # silent event streams check with each ping
    monkeypatch.setattr(agent_containers, "dial", _silent)
    monkeypatch.setattr(agent_containers, "require_connected", lambda *_: None)
    about, events = rules(), event_streams()
    assert len(about) >= 9 and len(events) >= 2
    wrong = []
    async with workspace_world(**WITH_APPLICATIONS) as (world, _):
        helper, _ = await world.member("helper")
        places = await shared_objects(world, helper)
        for number, (loss, (how, (method, path, body))) in enumerate(LOSSES.items()):
            names, token = await let_in(world, places, f"guest{number}", how)
            places["job"] = await dry_run(world, token, places["done"])
            async with AsyncExitStack() as stack:
                opened = {
                    rule: await stack.enter_async_context(_open(world, token, _path(rule, places)))
                    for rule in (*about, *PERSONAL)
                }
                heard = {
                    rule: await stack.enter_async_context(_events(world, token, _path(rule, places))) for rule in events
                }
                mine = await stack.enter_async_context(_open(world, world.token, INBOX))
                taken = await world.request(method, path.format(**names), json=filled(body, names))
                assert taken.status_code in {200, 204}, f"{loss}: {taken.text}"
                for rule, stream in opened.items():
                    if (rule not in PERSONAL or loss in SHUT_OUT) and not await _ends(stream, PATIENCE):
                        wrong.append(f"{loss}: {rule} is open still")
                for rule, lines in heard.items():
                    if not await _lines_end(lines):
                        wrong.append(f"{loss}: {rule} is open still")
                assert not await _ends(mine, 0.01), "another user's stream stays"
            for rule in (*about, *(PERSONAL if loss in SHUT_OUT else ())):
                try:
                    async with _open(world, token, _path(rule, places)):
                        wrong.append(f"{loss}: {rule} was reopened")
                except HttpError as error:
                    assert error.status in {401, 404}, f"{loss}: {rule}: {error.status}"
            for rule in events:
                again = await world.get(_path(rule, places), token=token)
                assert again.status_code in {401, 404}, f"{loss}: {rule}: {again.status_code}"
    assert not wrong, "\n".join(wrong)


FORM = "/api/v2/templateversions/{version}/dynamic-parameters"
FORM_ENDS: dict[str, tuple[str, str, Any]] = {
    # (method, path, body) of requests that end one reader's form and no other's
    "the organization is left": ("DELETE", "/api/v2/organizations/default/members/{guest}", None),
    "the account is suspended": ("PUT", "/api/v2/users/{guest}/status/suspend", None),
    "the account is deleted": ("DELETE", "/api/v2/users/{guest}", None),
    "shared no longer": ("PATCH", "/api/v2/templates/{template}/acl", {"user_perms": {"{guest}": ""}}),
}


async def _rendered(stream: WebSocketStream, number: int, **body: Any) -> Any:
    await stream.send_message(json.dumps({"id": number, "inputs": {}, **body}))
    with trio.fail_after(PATIENCE):
        while (declared := json.loads(await stream.receive_some()))["id"] != number:
            pass
    return declared


async def test_two_users_of_one_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with their own rights: a loss of one user does not end the other's form, and a notice reaches only its
    own.
    """
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    async with workspace_world() as (world, _):
        template = world.extra["template"]
        path = FORM.replace("{version}", template["active_version_id"])
        everybody = {"group_perms": {world.organization_id: ""}}
        assert (await world.patch(f"/api/v2/templates/{template['id']}/acl", everybody)).status_code == 200
        for number, (how, (method, where, body)) in enumerate(FORM_ENDS.items()):
            people = []
            for name in ("guest", "other"):
                user, token = await world.member(f"{name}{number}")
                shared = {"user_perms": {user: "use"}}
                assert (await world.patch(f"/api/v2/templates/{template['id']}/acl", shared)).status_code == 200
                people.append((user, token))
            (guest, token), (_, others) = people
            names = {"guest": guest, "template": template["id"]}
            async with _open(world, token, path) as hers, _open(world, others, path) as theirs:
                first = await _rendered(hers, 1), await _rendered(theirs, 1)
                assert first[0]["parameters"] == first[1]["parameters"] and first[0]["parameters"]
                taken = await world.request(method, where.format(**names), json=filled(body, names))
                assert taken.status_code in {200, 204}, taken.text
                assert await _ends(hers, PATIENCE), f"{how}: still open"
                assert (await _rendered(theirs, 2))["parameters"] == first[1]["parameters"], how
            with pytest.raises(HttpError) as refused:
                async with _open(world, token, path):
                    pass
            assert refused.value.status in {401, 404}, how


FORM_MOVES: dict[str, tuple[str, str, Any, bool]] = {
    # (method, path, body) of changes to a form's version, and whether a guest may see it afterwards
    "archived": ("POST", "/api/v2/templateversions/{version}/archive", None, True),
    "renamed": ("PATCH", "/api/v2/templateversions/{version}", {"name": "another"}, True),
    "another one is active": ("PATCH", "/api/v2/templates/{template}/versions", {"id": "{second}"}, True),
    "the template is deprecated": (
        "PATCH",
        "/api/v2/templates/{template}",
        {"deprecation_message": "take another"},
        True,
    ),
    "the template is deleted": ("DELETE", "/api/v2/templates/{template}", None, False),
}


async def test_form_follows_template_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open form has the rights of a reopened one: sharing ends with the template, whose versions stay."""
    monkeypatch.setattr(recheck_rights, "PAUSE", 0.0)
    async with workspace_world() as (world, _):
        _, token = await world.member("guest")
        for number, (how, (method, where, body, stays)) in enumerate(FORM_MOVES.items()):
            template = await new_template(world, f"t{number}")
            first, second = (
                template["active_version_id"],
                (await new_version(world, template_id=template["id"]))["id"],
            )
            for version in (first, second):
                await ended(world, f"/api/v2/templateversions/{version}")
            names = {"version": first, "template": template["id"], "second": second}
            if how == "archived":
                promoted = await world.patch(f"/api/v2/templates/{template['id']}/versions", {"id": second})
                assert promoted.status_code == 200, promoted.text
            path = FORM.replace("{version}", first)
            async with _open(world, token, path) as hers, _open(world, world.token, path) as mine:
                await _rendered(hers, 1)
                await _rendered(mine, 1)
                changed = await world.request(method, where.format(**names), json=filled(body, names))
                assert changed.status_code == 200, f"{how}: {changed.text}"
                await world.member(f"new{number}")  # triggers a check of every stream
                if stays:
                    await _rendered(hers, 2)
                else:
                    assert await _ends(hers, PATIENCE), how
                await _rendered(mine, 2)  # by a role, which has not been removed
            again = await world.get(f"/api/v2/templateversions/{first}", token=token)
            assert again.status_code == (200 if stays else 404), f"{how}: {again.text}"
            dry = await _dry_run_status(world, token, first)
            assert (dry == 201) == stays, f"{how}: {dry}"


async def _dry_run_status(world: World, token: str, version: str) -> int:
    response = await world.post(f"/api/v2/templateversions/{version}/dry-run", {"workspace_name": "x"}, token=token)
    return response.status_code
