"""Every operation of the API's description with an authorized caller and real objects to name in it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from coder.base.secret import Secret
from tests.conformance.bodies import BODIES
from tests.conformance.scope import in_scope
from tests.conformance.world import Populated
from tests.kit.api.api_description import document, operations
from tests.kit.api.api_fuzzer import example

SETTINGS = {
    "experiments": ("oauth2", "workspace-build-updates"),
    "scim_auth_header": Secret("scim-secret"),
}
"""Of the server, so that nothing hides behind a setting."""
LEFT_OUT = frozenset(
    {
        "POST /api/v2/users/logout",  # ends the session that asks
        "POST /api/v2/debug/profile",  # takes its seconds
    }
)
SAID_SO = frozenset(
    {
        ("PUT /api/v2/notifications/inbox/{notification}/read-status", 500),
        ("PUT /api/v2/debug/health/settings", 500),
    }
)
"""Recorded refusals that upstream answers with a 500; clients know them."""


@dataclass(frozen=True)
class Described:
    """One operation and how to ask it."""

    name: str
    method: str
    path: str
    operation: dict[str, Any]
    values: dict[str, str]
    "Path parameters."
    headers: dict[str, str]
    body: Any
    "An example of the body; None when the operation takes no JSON."

    @property
    def statuses(self) -> set[int]:
        return {int(status) for status in self.operation["responses"]} | {405}


def shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


async def described(
    world: Populated, wanted: Callable[[str], bool] = bool, *, refused: bool = False
) -> AsyncIterator[Described]:
    """What destroys comes last; objects that a change may have broken are made anew, unless all of them are refused."""
    known = {shape(item.path): item.path for item in in_scope()}
    for method, path, operation in sorted(operations(), key=lambda item: (item[0] == "DELETE", item[1], item[0])):
        name = f"{method} {path}"
        if name in LEFT_OUT or not wanted(name) or _streams(operation):
            continue
        twin = known.get(shape(path), "")
        values = await _values(world, path, twin)
        body = await _body(world, f"{method} {twin}", operation)
        yield Described(name, method, path, operation, values, await _headers(world, path), body)
        if method != "GET" and not refused:
            world.drop("victim", person=path.endswith("{user}") or "status" in path or "password" in path)


def _streams(operation: dict[str, Any]) -> bool:
    return any("text/event-stream" in answer.get("content", {}) for answer in operation["responses"].values())


async def _values(world: Populated, path: str, twin: str) -> dict[str, str]:
    names = re.findall(r"\{([^}]*)\}", path)
    if not names or not twin:
        return dict.fromkeys(names, "x")
    filled = await world.fill(twin, "victim")
    pattern = re.sub(r"\\\{[^}]*\\\}", "([^/]+)", re.escape(twin))
    match = re.fullmatch(pattern, filled)
    return dict(zip(names, match.groups(), strict=True)) if match else dict.fromkeys(names, "x")


async def _body(world: Populated, key: str, operation: dict[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    made = example(content.get("schema", {}), document()["components"]["schemas"])
    good = await world.body(key, "victim") if key in BODIES else None
    return {**made, **good} if isinstance(made, dict) and isinstance(good, dict) else made


async def _headers(world: Populated, path: str) -> dict[str, str]:
    if path.startswith("/scim/"):
        return {"Authorization": SETTINGS["scim_auth_header"].reveal()}  # type: ignore[attr-defined]
    if path.startswith("/api/v2/workspaceagents/me/"):
        return {"Coder-Session-Token": await world.agent_token("victim")}
    if path.startswith("/api/v2/workspaceproxies/me/"):
        return {"Coder-External-Proxy-Token": await world.thing("site", "proxy_token")}
    return {"Coder-Session-Token": world.world.token}
