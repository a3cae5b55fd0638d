"""Calls that only succeed after others: logins at a provider, OAuth2 consents, pending jobs, passcodes by mail.

Each story yields (operation, response) of calls that must succeed. They run after the walk; the last one deletes the
provisioner daemon.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import trio

from tests.conformance.world import Populated
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import FIRST_USER, running_coderd
from tests.kit.server.workspaces import without_daemon
from tests.kit.stand_ins.notification_receivers import Mailbox

Answers = AsyncIterator[tuple[str, httpx.Response]]
_CALLBACK = "http://localhost:19190/cb"
_CHALLENGE, _VERIFIER = "CrlVwe1WSHWuTQYh3iczmx3aS-faRx6C92k9_hNxl4A", "v" * 50


async def first_stories(world: Populated) -> Answers:
    """Yield stories that must run before the walk sends hundreds of messages to the mail server."""
    async for call in _passcode(world):
        yield call


async def stories(world: Populated) -> Answers:
    for story in (
        _first_user,
        _people,
        _organization,
        _notifications,
        _settings_of_workspaces,
        consent,
        _client,
        terminal,
        _waiting_jobs,
    ):
        async for call in story(world):
            yield call


async def _first_user(_world: Populated) -> Answers:
    async with running_coderd() as empty:
        yield "POST /api/v2/users/first", await empty.post("/api/v2/users/first", FIRST_USER)


async def _people(world: Populated) -> Answers:
    server = world.world
    async with http_client(server.url) as browser:
        there = await browser.get("/api/v2/users/oidc/callback")
        state = parse_qs(urlsplit(there.headers["location"]).query)["state"][0]
        back = await browser.get("/api/v2/users/oidc/callback", params={"code": "good", "state": state})
        yield "GET /api/v2/users/oidc/callback", back
        token = str(back.cookies["coder_session_token"])
    yield "GET /api/v2/users/oidc-claims", await server.get("/api/v2/users/oidc-claims", token=token)
    me = (await server.get("/api/v2/users/me", token=token)).json()
    link = await server.get(f"/api/v2/debug/{me['username']}/debug-link")
    yield "GET /api/v2/debug/{user}/debug-link", link
    suspended = await server.put(f"/api/v2/users/{me['id']}/status/suspend")
    yield "PUT /api/v2/users/{user}/status/suspend", suspended


async def _passcode(world: Populated) -> Answers:
    """Reset a forgotten password by a passcode from the mail."""
    server = world.world
    await server.put("/api/v2/notifications/settings", {"notifier_paused": False})  # the walk has paused them
    box: Mailbox = server.extra["mail"]
    user_id, _ = await server.member(world.fresh_name("forgetful"))
    address = (await server.get(f"/api/v2/users/{user_id}")).json()["email"]
    asked = await server.post("/api/v2/users/otp/request", {"email": address}, token="")
    yield "POST /api/v2/users/otp/request", asked
    code = ""
    with trio.fail_after(60):
        while not code:
            await trio.sleep(0.05)
            for _, receivers, mail in box.mails:
                part = mail.get_body(("plain",))
                result = re.search(r"otp=([\w-]+)", part.get_content() if part else "")
                if address in receivers and result:
                    code = result[1]
    body = {"email": address, "password": "AnotherGood1!", "one_time_passcode": code}
    changed = await server.post("/api/v2/users/otp/change-password", body, token="")
    yield "POST /api/v2/users/otp/change-password", changed


async def _organization(world: Populated) -> Answers:
    server = world.world
    other = await world.thing("site", "other_organization")
    user_id, _ = await server.member(world.fresh_name("joiner"))
    joined = await server.post(f"/api/v2/organizations/{other}/members/{user_id}")
    yield "POST /api/v2/organizations/{organization}/members/{user}", joined
    deleted = await server.delete(f"/api/v2/organizations/{other}")
    yield "DELETE /api/v2/organizations/{organization}", deleted
    world.things.pop(("site", "other_organization"), None)


async def _notifications(world: Populated) -> Answers:
    server = world.world
    templates = (await server.get("/api/v2/notifications/templates/system")).json()
    path = f"/api/v2/notifications/templates/{templates[0]['id']}/method"
    method = await server.put(path, {"method": "smtp"})
    yield "PUT /api/v2/notifications/templates/{notification_template}/method", method
    await server.put(path, {"method": ""})
    await server.post("/api/v2/notifications/test")
    result: list[Any] = []
    with trio.fail_after(60):
        while not result:
            await trio.sleep(0.05)
            result = (await server.get("/api/v2/notifications/inbox")).json()["notifications"]
    read = await server.put(f"/api/v2/notifications/inbox/{result[0]['id']}/read-status", {"is_read": True})
    yield "PUT /api/v2/notifications/inbox/{id}/read-status", read


async def _settings_of_workspaces(world: Populated) -> Answers:
    server = world.world
    world.drop("site")
    workspace = await world.thing("site", "workspace")
    await server.put(f"/api/v2/workspaces/{workspace}/ttl", {"ttl_ms": 3_600_000})
    await server.post(f"/api/v2/workspaces/{workspace}/builds", {"transition": "stop"})
    with trio.fail_after(60):
        while (await server.get(f"/api/v2/workspaces/{workspace}")).json()["latest_build"]["status"] != "stopped":
            await trio.sleep(0.05)
    await server.post(f"/api/v2/workspaces/{workspace}/builds", {"transition": "start"})
    with trio.fail_after(60):
        while (await server.get(f"/api/v2/workspaces/{workspace}")).json()["latest_build"]["status"] != "running":
            await trio.sleep(0.05)
    later = await server.put(f"/api/v2/workspaces/{workspace}/extend", {"deadline": "2035-01-02T03:04:05Z"})
    yield "PUT /api/v2/workspaces/{workspace}/extend", later
    world.drop("site")


async def consent(world: Populated) -> Answers:
    """Run the authorization code grant, with a session in place of a browser, and revoke everything."""
    server = world.world
    name = world.fresh_name("oauth")
    app = (
        await server.post("/api/v2/oauth2-provider/apps", {"name": name, "callback_url": _CALLBACK, "icon": ""})
    ).json()["id"]
    secret = (await server.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
    query = {
        "client_id": app,
        "response_type": "code",
        "redirect_uri": _CALLBACK,
        "state": "s",
        "code_challenge": _CHALLENGE,
        "code_challenge_method": "S256",
    }
    yield "GET /oauth2/authorize", await server.get("/oauth2/authorize", params=query)
    for ending in ("POST /oauth2/revoke", "DELETE /oauth2/tokens"):
        given = await server.post("/oauth2/authorize", params=query)
        yield "POST /oauth2/authorize", given
        code = parse_qs(urlsplit(given.headers["location"]).query)["code"][0]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": app,
            "client_secret": secret,
            "redirect_uri": _CALLBACK,
            "code_verifier": _VERIFIER,
        }
        tokens = await server.request("POST", "/oauth2/tokens", data=form, token="")
        yield "POST /oauth2/tokens", tokens
        if ending.startswith("POST"):
            back = {"token": tokens.json()["refresh_token"], "client_id": app, "client_secret": secret}
            yield ending, await server.request("POST", "/oauth2/revoke", data=back, token="")
        else:
            yield ending, await server.delete("/oauth2/tokens", params={"client_id": app})


async def _client(world: Populated) -> Answers:
    """Register a client, read, change and delete it."""
    server = world.world
    await server.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
    body = {"client_name": world.fresh_name("dyn"), "redirect_uris": [_CALLBACK]}
    created = (await server.post("/oauth2/register", body, token="")).json()
    path = f"/oauth2/clients/{created['client_id']}"
    headers = {"Authorization": f"Bearer {created['registration_access_token']}"}
    for method, sent in (("GET", None), ("PUT", body), ("DELETE", None)):
        response = await server.request(method, path, token="", headers=headers, json=sent)
        yield f"{method} /oauth2/clients/{{client_id}}", response


async def terminal(world: Populated) -> Answers:
    agent = await world.thing("site", "workspaceagent")
    host = urlsplit(world.world.url).netloc
    body = {"url": f"ws://{host}/api/v2/workspaceagents/{agent}/pty", "agentID": agent}
    path = "/api/v2/applications/reconnecting-pty-signed-token"
    yield f"POST {path}", await world.world.post(path, body)


async def _waiting_jobs(world: Populated) -> Answers:
    server = world.world
    template, version = await world.thing("site", "template"), await world.thing("site", "templateversion")
    workspace, file_id = await world.thing("site", "workspace"), await world.thing("site", "fileID")
    await without_daemon(server)
    dry = (await server.post(f"/api/v2/templateversions/{version}/dry-run", {"workspace_name": "dry"})).json()["id"]
    response = await server.patch(f"/api/v2/templateversions/{version}/dry-run/{dry}/cancel")
    yield "PATCH /api/v2/templateversions/{templateversion}/dry-run/{jobID}/cancel", response
    body = {"storage_method": "file", "provisioner": "echo", "file_id": file_id, "tags": {}, "template_id": template}
    path = f"/api/v2/organizations/{server.organization_id}/templateversions"
    waiting = (await server.post(path, body)).json()["id"]
    response = await server.patch(f"/api/v2/templateversions/{waiting}/cancel")
    yield "PATCH /api/v2/templateversions/{templateversion}/cancel", response
    build = (await server.post(f"/api/v2/workspaces/{workspace}/builds", {"transition": "stop"})).json()["id"]
    response = await server.patch(f"/api/v2/workspacebuilds/{build}/cancel")
    yield "PATCH /api/v2/workspacebuilds/{workspacebuild}/cancel", response
