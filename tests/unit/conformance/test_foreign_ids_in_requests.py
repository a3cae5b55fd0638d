"""Every id of every body and query, generated from the routes' types: a foreign id is answered like an unknown one.

Foreign objects belong to another organization, with a caller who administers an own one; or to another user, with a
member of the same organization; or are deleted. The whole responses are compared, without the id itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import pytest

from tests.conformance.bodies import BODIES, QUERIES
from tests.conformance.scope import in_scope
from tests.kit.api.callable_operations import shape
from tests.kit.api.id_fields import BODY, ITEMS, KEYS, PATH, QUERY, Place, id_places, put
from tests.kit.server.two_organizations import ForeignWorld, foreign_world

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FRESH = re.compile(r"\bfresh\d+\b")
_PATH = {
    "file_id": "file",
    "fileID": "file",
    "templateversion": "version",
    "workspacebuild": "build",
    "workspaceagent": "agent",
    "proxy": "unknown",
    "hash": "file",
    "name": "attacker-group",
}
"""Path parameters whose name differs from their kind."""
_WORDS = {"templatename": "attackers", "workspacename": "attacker-box", "agent_name": "main"}
_CALLED = {
    "user": ("user", "owner", "initiator", "author", "member"),
    "free_version": ("version",),
    "second_version": ("version",),
    "app": ("app_",),
    "build_job": ("job",),
}
"""Kinds whose fields have other names."""
_USUAL = frozenset({"organization", "user", "template", "workspace", "build_job"})
_SHARED_AT_HOME = frozenset(
    {"organization", "user", "template", "version", "second_version", "preset", "group", "daemon"}
)
"Objects that a plain member may see in an own organization."
_TOLD = frozenset(
    {
        # Pages may start after a deleted user; the id itself reveals nothing.
        ("GET", "/api/v2/users", "after_id", "user"),
        # Recorded texts and lists, for users who saw the object while it existed.
        ("POST", "/api/v2/users/{user}/workspaces", "template_id", "template"),
        ("POST", "/api/v2/organizations/{organization}/members/{user}/workspaces", "template_id", "template"),
        ("GET", "/api/v2/notifications/inbox", "targets", "template"),
        ("GET", "/api/v2/organizations/{organization}/provisionerjobs", "ids", "build_job"),
        ("GET", "/api/v2/users/{user}/autofill-parameters", "template_id", "template"),
        ("POST", "/api/v2/workspaces/{workspace}/builds", "template_version_id", "free_version"),
    }
)
"""Responses that may differ."""
_NOT_ASKED = ("/scim/", "/external-auth/", "/gitauth/", "/api/v2/users/oidc/", "/api/v2/users/oauth2/")
"""Routes of other programs, whose parameters are defined by their protocol."""


@dataclass
class Asker:
    """Sends an id in one place after the other, in an otherwise valid request of the caller."""

    found: ForeignWorld
    token: str
    agent_token: str = ""
    own: dict[str, str] | None = None
    "Return objects of the caller; without any, those of the administrator of the other organization."
    counter: Any = field(default_factory=itertools.count)
    twins: dict[str, str] = field(default_factory=lambda: {shape(one.path): one.path for one in in_scope()})

    async def answer(self, place: Place, value: str) -> tuple[int, str]:
        """Return status and text, without the id and values that differ between calls."""
        twin = self.twins.get(shape(place.rule), place.rule)
        body = self._filled(BODIES.get(f"{place.method} {twin}"))
        params = dict(pair.split("=") for pair in QUERIES.get(twin, "").split("&") if pair)
        params = {name: self._filled(text) for name, text in params.items()}
        if place.where == BODY:
            body = put(body, place.path, value)
        elif place.where == PATH:
            pass
        elif place.where == QUERY:
            params[place.path[0]] = value
        else:
            params[place.path[0]] = f"{place.path[1]}:{value}"
        rule = place.rule
        if place.where == PATH:
            rule = rule.replace("{" + place.path[0] + "}", value)
        asked = await self._ask(place.method, self._path(rule), body, params)
        text = asked.text.replace(value, "<asked>")
        return asked.status_code, _FRESH.sub("<fresh>", _UUID.sub("<uuid>", _TIME.sub("<time>", text)))

    async def _ask(self, method: str, path: str, body: Any, params: dict[str, str]) -> httpx.Response:
        headers = {"Coder-Session-Token": self.token}
        if path.startswith("/api/v2/workspaceagents/me/"):
            headers = {"Coder-Session-Token": self.agent_token}
        client = self.found.world.client
        sent = {} if body is None else {"json": body}
        try:
            response = await client.request(method, path, headers=headers, params=params, timeout=60, **sent)
        except httpx.ReadTimeout:  # a stream
            return httpx.Response(599)
        client.cookies.clear()
        return response

    def _path(self, rule: str) -> str:
        return re.sub(r"\{([^}]*)\}", lambda match: self._value(match[1]), rule)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._filled(key): self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
            return self._value(value[1:-1])
        return value

    def _value(self, name: str) -> str:
        if name in {"fresh", "assignment", "email"}:
            return f"fresh{next(self.counter)}" + {"email": "@example.com", "assignment": "=1"}.get(name, "")
        if name in {"user", "username"}:
            return "me"
        mine = {**self.found.mine, **(self.own or {})}
        return _WORDS.get(name) or mine.get(_PATH.get(name, name)) or "00000000-0000-4000-8000-00000000dead"


def _meant(place: Place, kinds: Iterable[str]) -> list[str]:
    """Return the kinds of object that a place may refer to by its name; the usual kinds if the name does not say."""
    words = "_".join(part for part in place.path if part not in {ITEMS, KEYS, "x"})
    plain = {kind: kind.removeprefix("gone_") for kind in kinds}
    hits = [kind for kind, name in plain.items() if any(word in words for word in _CALLED.get(name, (name,)))]
    return hits or [kind for kind, name in plain.items() if name in _USUAL]


async def _differences(
    asker: Asker, objects: dict[str, str], places: Iterable[Place], *, every_kind: bool
) -> list[str]:
    wrong = []
    for place in places:
        if place.rule.startswith(_NOT_ASKED) or (place.where == PATH and not every_kind):
            continue
        unknown = await asker.answer(place, str(uuid4()))
        for kind in objects if every_kind else _meant(place, objects):
            value = objects[kind]
            if (place.method, place.rule, place.path[-1], kind.removeprefix("gone_")) in _TOLD:
                continue
            if objects is asker.found.gone and (place.where == PATH or "audit" in place.rule):
                continue  # a user may read about a deleted own object (recorded)
            response = await asker.answer(place, value)
            # Repeated, because the first response may differ by what an accepted request has left behind.
            if response != unknown and response != await asker.answer(place, str(uuid4())):
                difference = f"  {response[0]} {response[1][:300]}\n  unknown: {unknown[0]} {unknown[1][:300]}"
                wrong.append(f"{place} with {kind}:\n{difference}")
    return wrong


@pytest.mark.parametrize("every_kind", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_hidden_ids_look_unknown(every_kind: bool) -> None:
    """In the suite each caller asks every second place, the next caller the others."""
    async with foreign_world() as scene:
        wrong = []
        for number, (who, asker, objects) in enumerate(_askers(scene)):
            places = list(id_places()) if every_kind else list(id_places())[number % 2 :: 2]
            wrong += [f"{who}: {line}" for line in await _differences(asker, objects, places, every_kind=every_kind)]
    assert not wrong, "\n".join(wrong)


def _askers(scene: ForeignWorld) -> Iterator[tuple[str, Asker, dict[str, str]]]:
    foreign = {**scene.foreign, **{f"gone_{kind}": value for kind, value in scene.foreign_gone.items()}}
    # Organization admins may see every user, to add them (recorded, as in the reference release).
    people = {kind: value for kind, value in foreign.items() if kind in {"user", "gone_user"}}
    others = {kind: value for kind, value in foreign.items() if kind not in people}
    yield "administrator elsewhere", Asker(scene, scene.token, scene.agent_token), others
    yield "member elsewhere", Asker(scene, scene.stranger_token, scene.agent_token, scene.strangers), people
    at_home = {kind: value for kind, value in foreign.items() if kind not in _SHARED_AT_HOME}
    yield "member at home", Asker(scene, scene.neighbour_token, scene.agent_token, scene.neighbours), at_home
    scene.gone.pop("user")  # a readable user may be paged from
    yield "administrator at home", Asker(scene, scene.token, scene.agent_token), scene.gone


# ---- logs, statistics and lists about other organizations

_SEARCHES = (
    "username:victim",
    "user:victim",
    "email:victim@b.c",
    "owner:victim",
    "workspace_owner:victim",
    "target:victim",
    "organization:default",
    "organization:{organization}",
    "resource_id:{workspace}",
    "resource_id:{user}",
    "resource_id:{template}",
    "resource_target:victim-box",
    "resource_type:workspace",
    "resource_type:user",
    "user:admin organization:default",
    "organization:elsewhere username:victim",
    "ip:127.0.0.1",
    "action:create",
    "workspace_owner_email:victim@b.c",
    "workspace_id:{workspace}",
    "connection_id:{workspace}",
    "status:ongoing",
    "type:ssh",
    'username:"victim"',
    "organization:*",
    "victim",
    "build_reason:initiator",
    "request_id:{user}",
    "",
)
_DAY = "start_time=2026-01-01T00:00:00Z&end_time=2026-01-02T00:00:00Z"
_LISTS = (
    *[
        f"/api/v2/insights/{kind}?{_DAY}&template_ids={ids}"
        for kind in ("templates", "user-activity", "user-latency")
        for ids in ("{template}", "{mine},{template}", "{template},{mine}", "")
    ],
    "/api/v2/insights/daus?tz_offset=0",
    "/api/v2/insights/user-status-counts?tz_offset=0",
    "/api/v2/deployment/stats",
    "/api/v2/templates/{template}/daus",
    "/api/v2/templates/{template}/versions",
    "/api/v2/templates/{template}/acl",
    "/api/v2/organizations/{organization}/provisionerjobs",
    "/api/v2/organizations/default/provisionerjobs?ids={job}",
    "/api/v2/organizations/elsewhere/provisionerjobs?ids={job},{build_job}",
    "/api/v2/organizations/elsewhere/provisionerjobs/{job}",
    "/api/v2/organizations/default/provisionerdaemons",
    "/api/v2/organizations/elsewhere/provisionerkeys/victim-key/daemons",
    "/api/v2/templateversions/{version}/logs",
    "/api/v2/workspacebuilds/{build}/logs",
    "/api/v2/workspaceagents/{agent}/logs",
    "/api/v2/files/{file}",
    "/api/v2/files/{file}?format=zip",
    "/api/v2/users/{user}/secrets",
    "/api/v2/users/victim/secrets/x",
    "/api/experimental/users/{user}/skills",
    "/api/experimental/users/victim/skills/x",
    "/api/v2/users/{user}/notifications/preferences",
    "/api/v2/users/{user}/keys",
    "/api/v2/users/{user}/sessions",
    "/api/v2/users/{user}/gitsshkey",
    "/api/v2/users/victim/workspace/victim-box",
    "/api/v2/users/{user}/appearance",
    "/api/v2/tasks?q=owner:victim",
    "/api/v2/tasks/victim/{workspace}",
    "/api/experimental/tasks?q=owner:victim",
    "/api/v2/workspaces?q=owner:victim",
    "/api/v2/workspaces?q=name:victim-box",
    "/api/v2/workspaces?q=id:{workspace}",
    "/api/v2/workspaces?q=organization:default",
    "/api/v2/workspaces?q=template:victims",
    "/api/v2/templates?q=victims",
    "/api/v2/templates?q=organization:default",
    "/api/v2/templates?q=author:victim",
    "/api/v2/workspaces?q=shared:true",
    "/api/v2/notifications/inbox?targets={workspace}",
    "/api/v2/notifications/inbox?targets={user}",
)


async def test_lists_hide_other_organizations() -> None:
    async with foreign_world() as scene:
        wrong = await _leaks(scene)
    assert not wrong, "\n".join(wrong)


async def _leaks(scene: ForeignWorld) -> list[str]:
    """Return what an administrator and auditor of another organization, and a member of it, read about the default
    one.
    """
    wrong, world, organization = [], scene.world, scene.mine["organization"]
    user, auditor = await world.member("auditor", organizations=[organization])
    path = f"/api/v2/organizations/{organization}/members/{user}/roles"
    given = await world.put(path, {"roles": ["organization-admin", "organization-auditor"]})
    assert given.status_code == 200, given.text
    logs = [
        f"{log}?{urlencode({'q': text.format(**scene.foreign), 'limit': '25'})}"
        for log in ("/api/v2/audit", "/api/v2/connectionlog")
        for text in _SEARCHES
    ]
    lists = [path.format(**scene.foreign, mine=scene.mine["template"]) for path in _LISTS]
    # An organization admin knows every user, and a path with the own user repeats its name.
    names = [value for kind, value in scene.foreign.items() if kind not in {"user", "organization"}]
    names += ["victim-box", "victim-group", "victim-key", "# victim"]
    assert len(logs) + len(lists) > 90
    for who, token in (("administrator", auditor), ("member", scene.stranger_token)):
        for path in (*logs, *lists):
            response = await world.get(path, token=token)
            state = [name for name in names if name not in path and name in response.text]
            if response.status_code >= 500 or state:
                wrong.append(f"{who} {path}: {response.status_code} {state} {response.text[:300]}")
    return wrong
