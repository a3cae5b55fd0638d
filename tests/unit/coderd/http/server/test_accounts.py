"""Accounts of bodies: every authenticated caller has one apart from the unauthenticated callers'."""

from __future__ import annotations

from typing import Any

import pytest

from coder.api.proxies.proxy_token import TOKEN_HEADER
from coder.base.secret import Secret
from coder.coderd.http.server.body_bounds import STRANGERS, BodyBudget
from coder.coderd.services.audit import request_events
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.server.server_in_process import FIRST_USER, running_coderd

SCIM_KEY = "for the provider"


async def test_authenticated_callers_have_own_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    senders: list[str] = []
    was = BodyBudget.sender

    def sender(self: BodyBudget, who: str, address: str = "") -> Any:
        senders.append(who)
        return was(self, who, address)

    async with workspace_world(scim_auth_header=Secret(SCIM_KEY)) as view:
        world = view.world
        proxy = (await world.post("/api/v2/workspaceproxies", {"name": "p", "display_name": "", "icon": ""})).json()
        me = (await world.get("/api/v2/users/me")).json()["id"]
        monkeypatch.setattr(BodyBudget, "sender", sender)
        credentials: list[tuple[str, str, dict[str, str], str]] = [
            ("PATCH", "/api/v2/workspaceagents/me/logs", {"Coder-Session-Token": view.token}, f"agents of {me}"),
            ("POST", "/api/v2/workspaceproxies/me/app-stats", {TOKEN_HEADER: proxy["proxy_token"]}, "proxy "),
            ("POST", "/scim/v2/Users", {"Authorization": SCIM_KEY}, "scim"),
            ("POST", "/api/v2/authcheck", {"Coder-Session-Token": world.token}, me),
            ("POST", "/api/v2/users/login", {}, STRANGERS),
        ]
        world.client.cookies.clear()
        for method, path, headers, expected in credentials:
            senders.clear()
            answer = await world.client.request(method, path, json={}, headers=headers)
            assert answer.status_code not in {401, 403, 404}, (path, answer.text)
            assert senders, path
            assert all(bool(sender) == bool(expected) and sender.startswith(expected) for sender in senders), (
                path,
                senders,
            )


async def test_failed_audit_keeps_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any) -> None:
        raise OSError("no room")

    async with running_coderd(first_user=True) as world:
        monkeypatch.setattr(request_events, "record_event", full)
        body = {"email": FIRST_USER["email"], "password": FIRST_USER["password"]}
        assert (await world.client.post("/api/v2/users/login", json=body)).status_code == 201
