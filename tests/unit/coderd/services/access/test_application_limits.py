"""Objects that an application creates with its user's consent end with the consent, are refused, or are audited, by
kind.
"""

from __future__ import annotations

import ast
import os
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from coder.api.base.refusals import Forbidden
from coder.coderd.services.access import application_limits
from coder.coderd.services.access.authentication import authenticate
from coder.coderd.services.login import external_auth
from coder.domain.access.application_limits import LASTING, Fate
from coder.domain.access.credentials import Credentials
from coder.domain.login.external_providers import read_providers
from coder.rpc.errors import RpcClosed, RpcError
from tests.kit.paths import ROOT
from tests.kit.provisioners.scripted_provisioner import Answers, agent, connected_daemon, resource, working_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import external_answer, new_workspace, settled, without_daemon, workspace_world
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
    "oauth2_provider_app": lambda ids: ("POST", f"oauth2-provider/apps/{ids['app']}/secrets", None),
    "full_build_tokens": lambda ids: ("PUT", f"templates/{ids['template']}/build-tokens", {"all_roles": True}),
    "user": lambda ids: ("POST", "users", _new_user(ids, login_type="github")),
    "password": lambda _: ("PUT", "users/bob/password", {"password": "Another1Secure!", "old_password": ""}),
    "organization_member": lambda ids: ("POST", f"organizations/{ids['other']}/members/{ids['bob']}", None),
    "role_grant": lambda ids: (
        "PUT",
        f"organizations/default/members/{ids['bob']}/roles",
        {"roles": ["organization-admin"]},
    ),
    "custom_role": lambda _: ("POST", "organizations/default/members/roles", _role("template:read")),
    "activation": lambda _: ("PUT", "users/sleeper/status/activate", None),
    "group": lambda ids: ("POST", "organizations/default/groups", {"name": "g"}),
    "idp_sync": lambda _: ("PATCH", "settings/idpsync/organization/config", {"field": "groups"}),
    "agent_token": lambda ids: ("POST", f"workspaces/{ids['workspace']}/external-agent/main/rotate-token", None),
    "external_auth_link": lambda _: ("POST", "external-auth/device/device", {"device_code": "c"}),
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
_APP = {"name": "third", "callback_url": "http://localhost:19190/cb"}
_REGISTRATION = {"dynamic_client_registration_enabled": True}
MORE: tuple[tuple[str, Callable[[dict[str, str]], Made]], ...] = (
    ("agent_token", lambda ids: ("GET", f"workspaces/{ids['workspace']}/external-agent/main/credentials", None)),
    ("agent_token", lambda ids: ("GET", f"workspacebuilds/{ids['build']}/state", None)),
    ("workspace_proxy", lambda _: ("PATCH", "workspaceproxies/own", {"name": "own", "regenerate_token": True})),
    ("oauth2_provider_app", lambda _: ("POST", "oauth2-provider/apps", _APP)),
    ("oauth2_provider_app", lambda ids: ("PUT", f"oauth2-provider/apps/{ids['app']}", _APP)),
    ("oauth2_provider_app", lambda ids: ("PUT", f"oauth2-provider/apps/{ids['app']}/legacy", {"legacy": True})),
    ("oauth2_provider_app", lambda _: ("PUT", "oauth2-provider/settings", _REGISTRATION)),
    ("custom_role", lambda _: ("PUT", "organizations/default/members/roles", _role("template:update"))),
    ("group", lambda ids: ("PATCH", f"groups/{ids['group']}", {"add_users": [ids["bob"]]})),
    ("role_grant", lambda _: ("DELETE", "organizations/default/members/banned", None)),
    ("role_grant", lambda ids: ("PUT", f"users/{ids['bob']}/roles", {"roles": ["auditor"]})),
    ("role_grant", lambda ids: ("POST", f"organizations/{ids['rich']}/members/{ids['bob']}", None)),
    ("role_grant", lambda ids: ("PATCH", f"organizations/{ids['other']}", {"default_org_member_roles": []})),
    ("idp_sync", lambda _: ("PATCH", "organizations/default/settings/idpsync/roles/config", {"field": "r"})),
    ("idp_sync", lambda _: ("PATCH", "organizations/default/settings/idpsync/groups/config", {"field": "g"})),
    ("password", lambda ids: ("POST", "users", _new_user(ids, password="SomeSecure123!"))),
)
"""Further requests that create an object of a kind."""


def _new_user(ids: dict[str, str], **more: str) -> dict[str, Any]:
    name = f"carol{len(more.get('password', ''))}"
    return {"email": f"{name}@b.c", "username": name, "organization_ids": [ids["organization"]], **more}


def _role(grant: str) -> dict[str, Any]:
    kind, _, action = grant.partition(":")
    permissions = [{"negate": False, "resource_type": kind, "action": action}]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    return {"name": "made", "display_name": "", "organization_permissions": permissions, **none}


OTHERWISE = {"provisioner_daemon", "consent", "webpush_subscription", "build_token"}
"""Kinds that no request with a fixed body creates."""


def test_every_kind_has_case() -> None:
    assert {*MAKES} | OTHERWISE == {*LASTING}


async def _ask(world: World, created: Made, token: str) -> httpx.Response:
    method, path, body = created
    return await world.request(method, f"/api/v2/{path}", json=body, token=token)


def _import(job: Any) -> dict[str, Any]:
    return {
        "start_resources": [resource("main", "coder_external_agent", agents=[agent()])],
        "has_external_agents": True,
    }


async def _ids(world: World, app: str, bob: str) -> dict[str, str]:
    """Return the objects that the requests name."""
    workspace = await new_workspace(world)
    names = ("other", "rich")
    made = {name: (await world.post("/api/v2/organizations", {"name": name})).json()["id"] for name in names}
    defaults = {"default_org_member_roles": ["organization-admin"]}
    assert (await world.patch(f"/api/v2/organizations/{made['rich']}", defaults)).status_code == 200
    group = await world.post("/api/v2/organizations/default/groups", {"name": "own"})
    assert (await world.post("/api/v2/workspaceproxies", {"name": "own"})).status_code == 201
    await world.member("sleeper")
    assert (await world.put("/api/v2/users/sleeper/status/suspend")).status_code == 200
    await world.member("banned")
    ban = {"roles": ["organization-workspace-creation-ban"]}
    assert (await world.put("/api/v2/organizations/default/members/banned/roles", ban)).status_code == 200
    return {
        "app": app,
        "bob": bob,
        "workspace": workspace["id"],
        "build": workspace["latest_build"]["id"],
        "template": world.extra["template"]["id"],
        "organization": world.organization_id,
        "group": group.json()["id"],
        **made,
    }


DEVICE = {
    "id": "device",
    "type": "github",
    "client_id": "c",
    "auth_url": "http://127.0.0.1:1/a",
    "token_url": "http://127.0.0.1:1/t",
    "device_flow": "true",
}
SETTINGS: dict[str, Any] = {
    "experiments": ("oauth2", "web-push"),
    "wireguard_address": "127.0.0.1:0",
    "external_auth_providers": read_providers({}, [DEVICE]),
}


_CHECKS = {"refuse_applications", "require_lasting"}


def _places_of_checks() -> set[tuple[str, int]]:
    """Return the file and the line of each call of a check in the services."""
    places = set()
    for path in (ROOT / "coder/coderd/services").rglob("*.py"):
        if path.name != "application_limits.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CHECKS:
                    places.add((str(path), node.lineno))
    return places


class _NotedRefusal(Forbidden):
    """A refusal of an application that notes which check raised it."""

    places: set[tuple[str, int]]

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message, detail)
        frame = sys._getframe(1)
        while frame.f_code.co_name in _CHECKS and frame.f_back is not None:
            frame = frame.f_back
        self.places.add((frame.f_code.co_filename, frame.f_lineno))


async def _callback_refused(world: World, access: str) -> None:
    """Link an account by the provider's callback, which only a browser calls."""
    caller = await authenticate(world.ctx, Credentials.of({"coder-session-token": access}, {}, "127.0.0.1"))
    with pytest.raises(Forbidden):
        await external_auth.link(
            world.ctx, caller.subject, external_auth.find_provider(world.ctx, "device"), "code", "verifier"
        )


async def test_application_cannot_create_lasting_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _NotedRefusal.places = set()
    monkeypatch.setattr(application_limits, "Forbidden", _NotedRefusal)
    answers = Answers(import_=_import, build=external_answer)
    async with workspace_world(answers, **SETTINGS) as (world, _), push_service(world, tmp_path) as push:
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK})).json()["id"]
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
        bob, _ = await world.member("bob")
        it = Client(world, app, secret, world.token)
        access = (await it.exchange(await it.code())).json()["access_token"]
        passed_on = (await world.post("/api/v2/users/me/keys/tokens", {}, token=access)).json()["key"]
        ids = await _ids(world, app, bob)
        subscription = ("POST", "users/me/webpush/subscription", push.browser().subscription())
        makes: dict[str, Callable[[dict[str, str]], Made]] = {**MAKES, "webpush_subscription": lambda _: subscription}
        wrong: list[str] = []
        ending = {"passed on": passed_on}
        stays: dict[str, str] = {}
        made_id = ""
        for kind, make in (*makes.items(), *MORE):
            fate, created = LASTING[kind].fate, make(ids)
            answer = await _ask(world, created, access)
            if fate is Fate.REFUSED:
                again = await _ask(world, created, passed_on)
                own = await _ask(world, created, world.token)
                # The stand-in of a provider refuses every device code: 502.
                if (answer.status_code, again.status_code) != (403, 403) or not (
                    own.is_success or own.status_code == 502
                ):
                    wrong.append(f"{kind}: {answer.text}, {again.text}, {own.text}")
                elif LASTING[kind].what not in answer.text:
                    wrong.append(f"{kind}: {answer.text}")
            elif not answer.is_success:
                wrong.append(f"{kind}: {answer.text}")
            elif fate is Fate.ENDS:
                ending[kind] = answer.json()["key"]
            else:
                made_id = answer.json()["id"] if kind == "workspace" else made_id
                stays[kind] = answer.headers["x-coder-request-id"]
        refused = await world.post(it.query(), token=access)
        assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")
        await _callback_refused(world, access)
        assert _NotedRefusal.places == _places_of_checks(), "a check has no request above"
        told = (await world.get("/api/v2/audit", params={"limit": "100"})).json()["audit_logs"]
        wrong += [
            f"{kind}: not in the audit log" for kind in stays if stays[kind] not in {e["request_id"] for e in told}
        ]
        assert not wrong, "\n".join(wrong)

        await settled(world, made_id)
        ending["build_token"] = answers.seen[-1].workspace_build.metadata.workspace_owner_session_token
        assert await it.me(ending["build_token"]) == 200
        async with connected_daemon(world, name="by a key", token=access) as daemon:
            assert (await world.delete(f"/oauth2/tokens?client_id={app}")).status_code == 204
            with trio.fail_after(60), pytest.raises((RpcClosed, RpcError)):  # the connection is refused or closed
                await daemon.acquire()
        for kind, key in ending.items():
            assert (await world.get("/api/v2/users/me", token=key)).status_code == 401, kind


async def test_build_after_revocation_has_no_token() -> None:
    """The daemon acquires the job after the user has revoked the consent."""
    answers = Answers(import_=_import, build=external_answer)
    async with workspace_world(answers, **SETTINGS) as (world, _):
        workspace = await new_workspace(world)
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK})).json()["id"]
        secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets")).json()["client_secret_full"]
        it = Client(world, app, secret, world.token)
        access = (await it.exchange(await it.code())).json()["access_token"]
        await without_daemon(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        queued = await world.post(path, {"transition": "start"}, token=access)
        assert queued.status_code == 201, queued.text
        assert (await world.delete(f"/oauth2/tokens?client_id={app}")).status_code == 204
        async with working_daemon(world, answers):
            await settled(world, workspace["id"])
            assert answers.seen[-1].workspace_build.metadata.workspace_owner_session_token == ""
            assert (await world.post(path, {"transition": "start"})).status_code == 201
            await settled(world, workspace["id"])
        token = answers.seen[-1].workspace_build.metadata.workspace_owner_session_token
        assert await it.me(token) == 200, "the user's own start"
