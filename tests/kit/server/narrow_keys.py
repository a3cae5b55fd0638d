"""Keys that have every right but the one on an object, and requests about that object.

    async with narrow_world() as found:
        answer = await found.ask(item, "template")

`boss` owns the deployment and the keys. A narrow key lists every kind of object whole, except one kind, of which it
lists a single object that does not exist. So a request is refused only if the server asks about that kind.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest

from coder.coderd.http.server.declarations import EVENTS, Route
from coder.coderd.services.access import authorization
from coder.domain.access import policy
from coder.domain.access.policy import KeyScope, Subject, Target
from coder.domain.access.resources import ACTIONS
from coder.domain.access.route_scopes import ANY_KEY, Scope, Unscoped, named
from tests.conformance.bodies import QUERIES
from tests.conformance.scope import in_scope
from tests.conformance.world import Populated, populated
from tests.kit.api.callable_operations import SETTINGS, shape
from tests.kit.api.id_fields import declared

_ALSO = {"workspace": ("workspace_dormant", "prebuilt_workspace")}
"""Kinds that an entry of this kind also lists."""
_OWN_NAMES = {
    "agent": "agent",
    "build": "workspacebuild",
    "version": "templateversion",
    "proxy": "workspaceproxy",
    "client": "wireguard_client",
}
"""Parameters of routes that the reference does not have -> parameters of `Populated`."""
_ABOUT_AGENTS = re.compile(r"/workspaceagents/\{agent\}")
_PARAMETERS = {
    "organization": "organization",
    "user": "user",
    "template": "template",
    "version": "template",
    "workspace": "workspace",
    "build": "workspace",
    "agent": "workspace",
    "group": "group",
    "app": "oauth2_app",
    "proxy": "workspace_proxy",
    "task": "task",
}
"""Parameters of paths -> the kind of object that they name, besides those of the route's scope."""
_LISTS = {"users": "user", "organizations": "organization", "workspaces": "workspace"}
"""Lists for keys of every scope."""
NAMED_ONLY = re.compile(
    r"/organizations/\{organization\}/members/\{user\}|/users/\{user\}/workspaces?\b|/tasks/\{user\}"
)
"""Paths in which the user's name is a part of another object's name, as in the reference release: of a membership, of a
workspace, of a task. The right to that object is enough."""
_ENDS_KEY = "POST /api/v2/users/logout"
"""Needs no right, and ends the key that asks."""
_NO_OBJECT = {("PUT /api/v2/notifications/templates/{template}/method", "template")}
"""A parameter of another kind with the same name."""
_BODIES: dict[str, Any] = {
    "PUT /api/v2/oauth2-provider/apps/{app}/legacy": {"legacy": True},
    "PUT /api/v2/organizations/{organization}/provisionerjobs/{job}/parked": {"parked": True},
}
"""Bodies of routes that the reference does not have."""
PERSONAL = ("/keys", "/secrets", "/skills", "/webpush", "/wireguard-clients", "/api/v2/external-auth", "/sessions")
"""Parts of paths about objects that belong to the caller."""


@dataclass(frozen=True)
class Operation:
    """One route with a method."""

    method: str
    rule: str
    "With `{name}` for each parameter."
    route: Route

    @property
    def name(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{([^}]*)\}", self.rule)

    @property
    def kinds(self) -> list[str]:
        """Kinds of the route's declared scopes."""
        return list(dict.fromkeys(text.partition(":")[0] for text in named(self.route.scope)))

    @property
    def wanted(self) -> list[tuple[str, ...]]:
        """What a key needs: each item names kinds of which one is enough."""
        of_scope = tuple(self.kinds) or tuple(_LISTS[name] for name in [self.rule.rpartition("/")[2]] if name in _LISTS)
        of_path = [
            (_PARAMETERS[name],)
            for name in self.parameters
            if name in _PARAMETERS
            and not (name == "user" and NAMED_ONLY.search(self.rule))
            and (self.name, name) not in _NO_OBJECT
        ]
        # A name in the path of a route with alternatives is one of them: a file is read with its template, too.
        rest = [kinds for kinds in dict.fromkeys(of_path) if not set(kinds) & set(of_scope)]
        return [*([of_scope] if of_scope else []), *rest]

    @property
    def twin(self) -> str:
        """The path with the parameters' names in the reference's document."""
        known = _known().get(shape(self.rule))
        if known is not None:
            return known
        agents = _ABOUT_AGENTS.sub("/workspaceagents/{workspaceagent}", self.rule)
        return re.sub(r"\{([^}]*)\}", lambda match: "{" + _OWN_NAMES.get(match[1], match[1]) + "}", agents)

    @property
    def owner(self) -> str:
        """Whose objects the request is about."""
        return "boss" if any(part in self.rule for part in PERSONAL) else "victim"


_twins: dict[str, str] = {}


def _known() -> dict[str, str]:
    if not _twins:
        _twins.update((shape(item.path), item.path) for item in in_scope())
    return _twins


def operations() -> list[Operation]:
    """Return the operations for users' keys, reads first and deletions last. Streams have tests of their own."""
    chosen = [
        Operation(method, rule, route)
        for route, method, rule in declared()
        if _for_users(route.scope) and route.answers is not EVENTS and "_rest" not in rule
    ]
    return sorted(
        (item for item in chosen if item.name != _ENDS_KEY),
        key=lambda item: (item.method == "DELETE", item.method != "GET", item.rule),
    )


def _for_users(scope: Scope) -> bool:
    return scope is ANY_KEY or not isinstance(scope, Unscoped)


@dataclass
class NarrowWorld:
    """A populated deployment, and which kinds the last request was refused by."""

    things: Populated
    refused: set[str] = field(default_factory=set)
    "Kinds of which the key's limits refused an action during the last request."
    _keys: dict[str, str] = field(default_factory=dict)

    async def key(self, kinds: Sequence[str], listed: str = "") -> str:
        """Return a key of `boss` that lists only one object of `kinds`; without an id, one that does not exist."""
        name = f"{'-'.join(kinds)} {listed}"
        if name not in self._keys:
            left_out = {also for kind in kinds for also in (kind, *_ALSO.get(kind, ()))}
            whole = [f"{kind}:*" for kind in ACTIONS if kind not in left_out]
            body = {
                "token_name": f"narrow{len(self._keys)}",
                "allow_list": [*whole, *(f"{kind}:{listed or uuid4()}" for kind in kinds)],
            }
            boss = await self.things.token("boss")
            made = await self.things.world.post("/api/v2/users/me/keys/tokens", body, token=boss)
            assert made.status_code == 201, made.text
            self._keys[name] = made.json()["key"]
        return self._keys[name]

    async def url(self, item: Operation) -> str:
        """Return the address of a valid request about the owner's objects."""
        twin, query = item.twin, QUERIES.get(item.twin, "")
        path = await self.things.fill(twin, item.owner)
        return f"{path}?{await self.things.fill_text(query, item.owner)}" if query else path

    async def body(self, item: Operation) -> Any:
        """Return the body of a valid request."""
        if item.name in _BODIES:
            return _BODIES[item.name]
        return await self.things.body(f"{item.method} {item.twin}", item.owner)

    async def ask(self, item: Operation, key: str, url: str = "", body: Any = None) -> httpx.Response:
        """Send an otherwise valid request with a key."""
        where = url or await self.url(item)
        sent = body if body is not None else await self.body(item)
        self.refused.clear()
        return await self.things.ask(item.method, where, key, sent)

    def refused_by(self, kinds: Sequence[str], response: httpx.Response) -> bool:
        """Return whether the last request was refused because of the key's limits for one of these kinds."""
        return response.status_code >= 400 and not self.refused.isdisjoint(kinds)


def is_empty(response: httpx.Response) -> bool:
    """Return whether a successful response contains no object."""
    if "json" not in response.headers.get("content-type", "") or not response.content:
        return False
    return _has_no_value(response.json())


def _has_no_value(value: Any) -> bool:
    if not isinstance(value, dict):
        return not value
    return all(_has_no_value(item) for name, item in value.items() if name != "count_cap")


async def _fill_rest(things: Populated) -> None:
    """Add objects for routes that the reference does not have."""
    boss = await things.token("boss")
    client = {"name": "phone", "public_key": base64.b64encode(bytes(range(32))).decode()}
    made = await things.world.post("/api/v2/users/me/wireguard-clients", client, token=boss)
    assert made.status_code == 201, made.text
    things.things["boss", "wireguard_client"] = made.json()["client"]["id"]
    for who in ("boss", "victim"):
        things.things |= {(who, "action"): "suspend", (who, "license_id"): "1", (who, "devcontainer"): str(uuid4())}


@contextlib.asynccontextmanager
async def narrow_world(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> AsyncIterator[NarrowWorld]:
    """Yield the deployment; requests one after the other, because refusals are recorded for all."""
    async with populated(**SETTINGS, wireguard_address="127.0.0.1:0", **settings) as things:
        await _fill_rest(things)
        world, decided, reached = NarrowWorld(things), policy._scope_allows, policy.key_reaches

        def noted(subject: Subject, action: str, target: Target) -> bool:
            is_allowed = decided(subject, action, target)
            if not is_allowed:
                world.refused.add(target.kind)
            return is_allowed

        def noted_at_route(scope: KeyScope, name: str) -> bool:
            does_reach = reached(scope, name)
            if not does_reach:
                world.refused.add(name.partition(":")[0])
            return does_reach

        monkeypatch.setattr(policy, "_scope_allows", noted)
        monkeypatch.setattr(authorization, "key_reaches", noted_at_route)
        yield world
