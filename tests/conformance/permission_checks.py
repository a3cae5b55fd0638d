"""Permission checks of requests: which operation and which functions ask the policy for which action on which kind.

    async with equipped() as world:
        checks = await record_checks(world)
    checks.by_operation["POST /api/v2/files"]       # {Check("create", "file", "class")}
    checks.by_function["services.templates.files:upload"]

A check belongs to the request that asked it, and to every function of the server that waited for its result.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import pytest
from quart import has_request_context, has_websocket_context, request, websocket

from coder.coderd.http.server.fast_path import FastPath
from coder.domain.access import policy
from coder.domain.access.policy import Object, Subject, Target
from tests.conformance.bodies import QUERIES
from tests.conformance.scope import Operation, in_scope
from tests.conformance.stories import consent, terminal
from tests.conformance.world import Populated
from tests.kit.api.security_probes import handshake

_PREFIX = "coder.coderd."
_LAYERS = ("http.", "services.", "rpc_endpoints.")
_WHO = "victim"
_LEFT_OUT = "POST /api/v2/users/logout"
"""It would end the session of the other calls."""
_PERSONAL = re.compile(r"/\{user\}/(secrets|skills)|/favorite$")
"""Objects that only their owner reaches."""
_OWN: list[tuple[str, str, Any]] = [
    ("GET", "/api/v2/templates", None),
    ("GET", "/api/v2/templates/{template}/build-tokens", None),
    ("PUT", "/api/v2/templates/{template}/build-tokens", {"all_roles": False}),
    ("GET", "/api/v2/templates/{template}/rollouts", None),
    (
        "POST",
        "/api/v2/templates/{template}/rollouts",
        {"template_version_id": "{templateversion}", "group_id": "{group}"},
    ),
    ("PATCH", "/api/v2/templates/{template}/rollouts", {"rollout_id": "{templateversion}", "action": "stop"}),
    ("GET", "/api/v2/workspaces/offered-versions?ids={workspace}", None),
    ("GET", "/api/v2/templates/{template}/build-report", None),
    ("GET", "/api/v2/users/{user}/sessions", None),
    ("POST", "/api/v2/users/me/wireguard-clients", {"name": "laptop", "public_key": "eHh4" * 10 + "eHg="}),
    ("GET", "/api/v2/users/me/wireguard-clients", None),
    ("GET", "/api/v2/users/me/wireguard-clients/laptop", None),
    ("DELETE", "/api/v2/users/me/wireguard-clients/laptop", None),
    ("GET", "/api/v2/wireguard", None),
    ("GET", "/api/v2/oauth2-provider/apps/{app}/legacy", None),
    ("PUT", "/api/v2/oauth2-provider/apps/{app}/legacy", {"legacy": False}),
    ("GET", "/api/v2/oauth2-provider/apps?user_id={user_id}", None),
    ("GET", "/api/v2/organizations/{organization}/provisionerdaemons/health", None),
    ("PUT", "/api/v2/organizations/{organization}/provisionerjobs/{job}/parked", {"parked": False}),
    ("GET", "/api/v2/organizations/{organization}/provisionerjobs/{job}/why", None),
    ("GET", "/api/v2/users/{user}/keys/tokens?include_all=true", None),
    ("PUT", "/api/v2/users/{user}/status/suspend", None),
    ("GET", "/api/v2/workspaceagents/{workspaceagent}/disconnects", None),
    ("GET", "/api/v2/workspaceagents/{workspaceagent}/lights", None),
    ("GET", "/api/v2/workspaceagents/{workspaceagent}/upgrade", None),
    ("POST", "/api/v2/workspaceagents/{workspaceagent}/upgrade", None),
    ("POST", "/api/v2/workspaceagents/{workspaceagent}/speedtest", {"direction": "down"}),
    ("GET", "/api/v2/workspaceagents/{workspaceagent}/speedtest/payload?bytes=1", None),
    ("POST", "/api/v2/workspaceagents/{workspaceagent}/speedtest/payload", None),
    ("GET", "/api/v2/workspaces/{workspace}/inventory", None),
    ("POST", "/api/v2/workspaces/{workspace}/update-preview", {}),
    ("GET", "/api/v2/workspaces/{workspace}/update-preview/{preview}", None),
    ("DELETE", "/api/v2/workspaces/{workspace}/update-preview/{preview}", None),
    ("POST", "/api/v2/templates/{template}/update-preview", {"template_version_id": "{second_version}"}),
    ("GET", "/api/v2/templates/{template}/update-preview/{preview}", None),
    ("DELETE", "/api/v2/templates/{template}/update-preview/{preview}", None),
    ("POST", "/api/v2/workspaces/{workspace}/external-agent/dev/rotate-token", None),
    ("POST", "/api/v2/workspaces/{workspace}/abandon", None),
    ("GET", "/api/v2/ai/providers", None),
    ("GET", "/api/v2/debug/pprof/", None),
    ("POST", "/api/v2/licenses", {"license": "x"}),
    ("POST", "/api/v2/licenses/refresh-entitlements", None),
    ("DELETE", "/api/v2/licenses/1", None),
    ("DELETE", "/api/v2/licenses/trial", None),
]
"""Operations of this product alone, and calls with parameters that lead to another check."""


class Check(NamedTuple):
    """One question to the policy."""

    kind: str
    action: str
    form: str
    "`object` for one existing object; `class` for new objects, lists and settings."

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.action}"


@dataclass
class Checks:
    """Questions to the policy by operation and by function."""

    by_operation: dict[str, set[Check]] = field(default_factory=dict)
    by_function: dict[str, set[Check]] = field(default_factory=dict)

    def note(self, action: str, target: Target, frame: FrameType | None) -> None:
        check = Check(target.kind, action, "object" if isinstance(target, Object) else "class")
        operation = _current_operation(frame)
        if operation:
            self.by_operation.setdefault(operation, set()).add(check)
        for function in _waiting_functions(frame):
            self.by_function.setdefault(function, set()).add(check)


@contextlib.contextmanager
def recording() -> Iterator[Checks]:
    """Record every question to the policy, except those about the server itself, which may do everything."""
    checks = Checks()
    original = policy._scope_allows

    def noting(subject: Subject, action: str, target: Target) -> bool:
        checks.note(action, target, sys._getframe(1))
        return original(subject, action, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "_scope_allows", noting)
        yield checks


async def record_checks(world: Populated) -> Checks:
    """Call every operation as the site's owner with objects of another user, and record the questions."""
    with recording() as checks:
        for operation in sorted(in_scope(), key=lambda item: (item.method == "DELETE", "/status/" in item.path)):
            if operation.name != _LEFT_OUT:
                await _call(world, operation)
        for method, path, body in _OWN:
            await world.ask(method, await _fill(world, path), world.world.token, await world.filled(body, _WHO))
            world.drop(_WHO, person="suspend" in path)
        for story in (consent, terminal):
            async for _ in story(world):
                pass
    return checks


async def _call(world: Populated, operation: Operation) -> None:
    if "{task}" in operation.path:
        await world.thing(_WHO, "task")  # its agent makes the calls
    token = await _credential(world, operation)
    query = QUERIES.get(operation.path, "")
    path = await _fill(world, operation.path + f"?{query}" * bool(query))
    body = await world.body(operation.name, _WHO)
    await world.prepare(operation.name, _WHO)
    response = await world.ask(operation.method, path, token, body)
    if response.status_code in {400, 426} and operation.upgrades:
        await handshake(world.world.url, path, token, "Coder-Session-Token")
    if operation.method != "GET":
        world.drop(_WHO, person="{user}" in operation.path)


async def _credential(world: Populated, operation: Operation) -> str:
    if operation.path.startswith("/api/v2/workspaceagents/me/"):
        return await world.agent_token(_WHO)
    if operation.path.startswith("/api/v2/workspaceproxies/me/"):
        return await world.thing("site", "proxy_token")
    if operation.path.startswith("/api/v2/provisionerkeys/"):
        return await world.thing("site", "provisionerkey_secret")
    return await world.token(_WHO) if _PERSONAL.search(operation.path) else world.world.token


async def _fill(world: Populated, path: str) -> str:
    path, _, query = path.partition("?")
    return await world.fill(path, _WHO) + (f"?{await world.fill_text(query, _WHO)}" if query else "")


def _current_operation(frame: FrameType | None) -> str:
    """Return method and rule of the current request; empty outside a request."""
    if has_request_context() and request.url_rule is not None:
        return f"{request.method} {request.url_rule.rule}"
    if has_websocket_context() and websocket.url_rule is not None:
        return f"GET {websocket.url_rule.rule}"
    while frame is not None and frame.f_code is not FastPath._answer.__code__:
        frame = frame.f_back
    return f"GET {frame.f_locals['scope']['coder_route']}" if frame is not None else ""


def _waiting_functions(frame: FrameType | None) -> Iterator[str]:
    """Yield the functions of the server on the stack, as `module:name`, innermost first."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "")).removeprefix(_PREFIX)
        if module.startswith(_LAYERS):
            yield f"{module}:{frame.f_code.co_qualname.partition('.<locals>')[0]}"
        frame = frame.f_back
