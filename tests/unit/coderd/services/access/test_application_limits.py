"""Objects that an application creates with its user's consent end with the consent, are refused, or are audited, by
kind.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from coder.domain.access.application_limits import LASTING, Fate
from coder.rpc.errors import RpcClosed, RpcError
from tests.kit.provisioners.scripted_provisioner import connected_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world
from tests.kit.stand_ins.notification_receivers import push_service
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, Client

Made = tuple[str, str, Any]

MAKES: dict[str, Callable[[dict[str, str]], Made]] = {
    # Requests that create an object: method, path, body.
    "api_key": lambda _: ("POST", "users/me/keys/tokens", {}),
    "wireguard_client": lambda _: (
        "POST",
        "users/me/wireguard-clients",
        {"name": "d", "public_key": b64encode(os.urandom(32)).decode()},
    ),
    "provisioner_key": lambda _: ("POST", "organizations/default/provisionerkeys", {"name": "k"}),
    "workspace_proxy": lambda _: ("POST", "workspaceproxies", {"name": "p"}),
    "oauth2_provider_app_secret": lambda ids: ("POST", f"oauth2-provider/apps/{ids['app']}/secrets", None),
    "user": lambda ids: (
        "POST",
        "users",
        {
            "email": "c@b.c",
            "username": "carol",
            "password": "SomeSecure123!",
            "organization_ids": [ids["organization"]],
        },
    ),
    "password": lambda _: ("PUT", "users/bob/password", {"password": "Another1Secure!", "old_password": ""}),
    "organization_member": lambda ids: (
        "PUT",
        f"organizations/default/members/{ids['bob']}/roles",
        {"roles": ["organization-admin"]},
    ),
    "workspace_acl": lambda ids: ("PATCH", f"workspaces/{ids['workspace']}/acl", {"user_roles": {ids["bob"]: "use"}}),
    "template_acl": lambda ids: ("PATCH", f"templates/{ids['template']}/acl", {"user_perms": {ids["bob"]: "admin"}}),
    "port_share": lambda ids: (
        "POST",
        f"workspaces/{ids['workspace']}/port-share",
        {"agent_name": "main", "port": 8080, "share_level": "authenticated", "protocol": "http"},
    ),
    "workspace": lambda ids: ("POST", "users/me/workspaces", {"name": "w2", "template_id": ids["template"]}),
    "git_ssh_key": lambda _: ("PUT", "users/me/gitsshkey", None),
    "user_secret": lambda _: ("POST", "users/me/secrets", {"name": "s", "value": "v", "env_name": "S"}),
}
OTHERWISE = {"provisioner_daemon", "consent", "webpush_subscription"}
"""Kinds that no request with a fixed body creates."""


def test_every_kind_has_case() -> None:
    assert {*MAKES} | OTHERWISE == {*LASTING}


async def _ask(world: World, created: Made, token: str) -> httpx.Response:
    method, path, body = created
    return await world.request(method, f"/api/v2/{path}", json=body, token=token)


async def test_application_cannot_create_lasting_objects(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"experiments": ("oauth2", "web-push"), "wireguard_address": "127.0.0.1:0"}
    async with workspace_world(**settings) as (world, _), push_service(world, tmp_path) as push:
        workspace = await new_workspace(world)
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK})).json()["id"]
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
        bob, _ = await world.member("bob")
        it = Client(world, app, secret, world.token)
        access = (await it.exchange(await it.code())).json()["access_token"]
        passed_on = (await world.post("/api/v2/users/me/keys/tokens", {}, token=access)).json()["key"]
        ids = {
            "app": app,
            "bob": bob,
            "workspace": workspace["id"],
            "template": world.extra["template"]["id"],
            "organization": world.organization_id,
        }
        subscription = ("POST", "users/me/webpush/subscription", push.browser().subscription())
        makes: dict[str, Callable[[dict[str, str]], Made]] = {**MAKES, "webpush_subscription": lambda _: subscription}
        wrong: list[str] = []
        ending = {"passed on": passed_on}
        stays: dict[str, str] = {}
        for kind, make in makes.items():
            fate, created = LASTING[kind].fate, make(ids)
            answer = await _ask(world, created, access)
            if fate is Fate.REFUSED:
                again = await _ask(world, created, passed_on)
                own = await _ask(world, created, world.token)
                if (answer.status_code, again.status_code, own.is_success) != (403, 403, True):
                    wrong.append(f"{kind}: {answer.text}, {again.text}, {own.text}")
                elif LASTING[kind].what not in answer.text:
                    wrong.append(f"{kind}: {answer.text}")
            elif not answer.is_success:
                wrong.append(f"{kind}: {answer.text}")
            elif fate is Fate.ENDS:
                ending[kind] = answer.json()["key"]
            else:
                stays[kind] = answer.headers["x-coder-request-id"]
        refused = await world.post(it.query(), token=access)
        assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")
        told = (await world.get("/api/v2/audit", params={"limit": "100"})).json()["audit_logs"]
        wrong += [
            f"{kind}: not in the audit log" for kind in stays if stays[kind] not in {e["request_id"] for e in told}
        ]
        assert not wrong, "\n".join(wrong)

        async with connected_daemon(world, name="by a key", token=access) as daemon:
            assert (await world.delete(f"/oauth2/tokens?client_id={app}")).status_code == 204
            with trio.fail_after(60), pytest.raises((RpcClosed, RpcError)):  # the connection is refused or closed
                await daemon.acquire()
        for kind, key in ending.items():
            assert (await world.get("/api/v2/users/me", token=key)).status_code == 401, kind
