"""Every object that a body or a query names, with a key that has every right but the one to that object.

The places are generated from the routes' types (`id_fields.py`). Objects that paths name are in `test_narrow_keys.py`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.kit.api.id_fields import BODY, ITEMS, KEYS, PATH, QUERY, SEARCH, Place, id_places, put
from tests.kit.server.narrow_keys import NarrowWorld, Operation, is_empty, narrow_world, operations

_USER = ("user", "organization_member")
"""Either is enough to name a user, as in the reference release."""
_KINDS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"^(user|owner|author|initiator)(_ids?)?$|^username$|_users?$|^user_(perms|roles)$"), _USER),
    (re.compile(r"^group|_group$"), ("group",)),
    (re.compile(r"^organization"), ("organization",)),
    (re.compile(r"^template"), ("template",)),
    (re.compile(r"^file_id$"), ("file",)),
    (re.compile(r"^(workspace|agent)"), ("workspace",)),
    (re.compile(r"^client_id$"), ("oauth2_app",)),
)
"""Names of fields -> kinds of the object, of which one is enough."""
_THINGS = {
    "user": "user_id",
    "template": "template",
    "oauth2_app": "app",
}
"""Kinds -> parameters of `Populated` with another name."""
_BODIES: dict[tuple[str, str], Any] = {
    ("/workspaces", "template_version_id"): {"name": "named"},
    ("/workspaces", "template_version_preset_id"): {"name": "named", "template_id": "{template}"},
    ("/wireguard-clients", "workspace_ids"): {
        "name": "named",
        "public_key": base64.b64encode(bytes(range(1, 33))).decode(),
    },
    ("/reconnecting-pty-signed-token", "agentID"): {
        "url": "{server}/api/v2/workspaceagents/{workspaceagent}/pty",
    },
}
"""(end of a path, field) -> the rest of a valid body."""
_ELSEWHERE = {
    "POST /api/v2/users/{user}/keys/tokens": "limits of a new key, tested in test_attacks_by_roles.py",
    "POST /api/v2/authcheck": "describes an object, and reads none",
    "POST /api/v2/audit/testgenerate": "describes an object, and reads none",
    "PATCH /api/v2/workspaceproxies/{proxy}": "repeats the id of the path",
    "GET /api/v2/users/{user}/autofill-parameters": "selects among the user's own values",
    "DELETE /oauth2/tokens": "ends the caller's own consent",
    "POST /oauth2/authorize": "gives the caller's own consent",
    "GET /api/v2/oauth2-provider/apps": "lists applications, by consent",
    "PUT /api/v2/users/{user}/notifications/preferences": "templates of notifications",
    "GET /api/v2/notifications/inbox": "selects among the caller's own notifications",
    "GET /api/v2/notifications/inbox/watch": "selects among the caller's own notifications",
    "POST /api/v2/workspaces/{workspace}/builds": "versions of its own template, see test_template_access.py",
    "POST /api/v2/templateversions/{version}/dynamic-parameters/evaluate": "tested in test_dynamic_parameters.py",
}
"""Operations that do nothing with the object that they name."""
_TAKES_AWAY = {"remove_users", "remove"}
"""Fields whose objects lose a place in the object of the path, which needs the right to that one alone."""
_SHOWN_IN_ROWS = frozenset(
    {
        "author",
        "author_id",
        "organization",
        "owner",
        "template",
        "template_ids",
        "user_id",
        "username",
        "workspace_id",
        "workspace_owner",
        "workspace_owner_email",
    }
)
"""Terms of searches that select by a value that each row of the list contains: they show no more than the list."""
_NO_KIND = {
    "after_id": "where a page of a list begins: test_foreign_ids_in_requests.py",
    "ids": "selects among the rows that the list shows: test_second_objects.py, test_foreign_ids_in_requests.py",
    "targets": "selects among the caller's own notifications",
    "name": "a word in the rows of the list",
    "search": "a word in the rows of the list",
    "resource_target": "a word in the rows of the audit log",
    "resource_id": "an id in the rows of the audit log; of a test entry or a described object",
    "request_id": "an id in the rows of the audit log; of a test entry",
    "connection_id": "an id in the rows of the connection log",
    "user_email": "a word in the rows of the connection log",
    "id": "repeats the id of the path; selects among the rows that the list shows",
    "allow_list": "limits of a new key, tested in test_attacks_by_roles.py",
    "rollout_id": "compared with the open rollout of the template in the path",
    "base": "a base of the template builder: a part of the program",
    "base_template_id": "a base of the template builder: a part of the program",
    "base_variable_values": "values of the template builder: texts of a new template",
    "variables": "values of the template builder: texts of a new template",
    "module_ids": "modules of the template builder: parts of the program",
    "session_id": "a visit of the template builder's page, which nothing keeps",
    "provisioner_tags": "tags of a new template's import, as of every version",
    "Gets": "loses a place in the settings, as the fields of _TAKES_AWAY",
}
"""Names of fields without a kind, with the reason why no right to another object is asked."""


def _kinds(place: Place) -> tuple[str, ...]:
    """Return the kinds of which a place names an object; empty for words, and for pages of a list."""
    words = [part for part in place.path if part not in {ITEMS, KEYS, "x", "q"}]
    if place.rule.endswith("/versions") and words == ["id"]:
        return ("template",)
    return next((kinds for word in reversed(words) for pattern, kinds in _KINDS if pattern.search(word)), ())


def _places() -> Iterator[tuple[Operation, Place, tuple[str, ...]]]:
    """Yield the places whose object the operation uses."""
    known = {item.name: item for item in operations()}
    for place in id_places():
        item = known.get(f"{place.method} {place.rule}")
        kinds = _kinds(place)
        if item is None or place.where == PATH or not kinds or item.name in _ELSEWHERE:
            continue
        is_shown = place.where == SEARCH and place.path[1] in _SHOWN_IN_ROWS
        if place.path[0] not in _TAKES_AWAY and not is_shown:
            yield item, place, kinds
            if place.path[0] == "organization_ids":
                yield item, place, ("organization_member",)  # a new user becomes a member


def test_every_field_has_kind_or_reason() -> None:
    known = {item.name for item in operations()}
    places = [place for place in id_places() if f"{place.method} {place.rule}" in known and place.where != PATH]
    parts = [[part for part in place.path if part not in {ITEMS, KEYS, "x", "q"}] for place in places]
    names = {words[-1] for place, words in zip(places, parts, strict=True) if not _kinds(place)}
    assert names == _NO_KIND.keys()
    searched = {words[-1] for place, words in zip(places, parts, strict=True) if place.where == SEARCH}
    assert searched >= _SHOWN_IN_ROWS


async def _value(world: NarrowWorld, place: Place, kind: str) -> str:
    words = "_".join(place.path)
    if "preset" in words:
        return str(uuid4())
    if kind == "file":
        return await world.things._new_fileID("site") or ""  # of no template yet
    if "version" in words or place.rule.endswith("/versions"):
        name = "second_version" if place.rule.endswith("/versions") else "templateversion"
    else:
        name = "workspaceagent" if "agent" in words else _THINGS.get(kind, kind)
    return await world.things.thing("victim", name)


async def _filled(world: NarrowWorld, value: str) -> str:
    server = world.things.world.url.replace("http", "ws")
    return await world.things.fill_text(value.replace("{server}", server), "victim")


async def _request(world: NarrowWorld, item: Operation, place: Place, value: str) -> tuple[str, Any]:
    """Return the address and the body of an otherwise valid request."""
    url, body = await world.url(item), await world.body(item)
    if place.where == BODY:
        for (end, field), other in _BODIES.items():
            if item.rule.endswith(end) and place.path[0] == field:
                body = {key: await _filled(world, text) for key, text in other.items()}
        return url, put(body, place.path, value)
    path, _, query = url.partition("?")
    params = dict(pair.split("=") for pair in query.split("&") if pair)
    params[place.path[0]] = value if place.where == QUERY else f"{place.path[1]}:{value}"
    return f"{path}?{'&'.join('='.join(pair) for pair in params.items())}", body


async def test_named_objects_need_their_right(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, asked = [], 0
    async with narrow_world(monkeypatch) as world:
        for item, place, kinds in _places():
            url, body = await _request(world, item, place, await _value(world, place, _kinds(place)[0]))
            response = await world.ask(item, await world.key(kinds), url, body)
            asked += 1
            if not world.refused_by(kinds, response) and not is_empty(response):
                what = "open" if response.status_code < 400 else "refused for another reason"
                wrong.append(f"{what}: {place} without {kinds}: {response.status_code} {response.text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert asked >= 33
