"""One rule for routes of a kind: behaviour recorded for one route is required of every similar one.

Generated from the API's own description: pages of lists, ids in paths, bodies, methods. No request changes anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.kit.api.api_description import operations
from tests.kit.server.workspaces import new_workspace, workspace_world

UNKNOWN = "11111111-1111-4111-8111-111111111111"
NOT_FOUND = "Resource not found or you do not have access to this resource"
BAD_BODY = "Request body must be valid JSON."

_POSITIVE = 'Query param "{name}" must be a valid 32-bit positive integer: {why}'
_OVER = 'strconv.ParseInt: parsing "2147483648": value out of range'
_TWICE = 'Query param "limit" provided more than once, found 2 times. Only provide 1 instance of this query param.'
PAGES = [
    ("limit", "x", _POSITIVE.format(name="limit", why='strconv.ParseInt: parsing "x": invalid syntax')),
    ("limit", "-1", _POSITIVE.format(name="limit", why="value is negative")),
    ("limit", "1.5", _POSITIVE.format(name="limit", why='strconv.ParseInt: parsing "1.5": invalid syntax')),
    ("limit", "2147483648", _POSITIVE.format(name="limit", why=_OVER)),
    ("limit", "1&limit=2", _TWICE),
    ("offset", "x", _POSITIVE.format(name="offset", why='strconv.ParseInt: parsing "x": invalid syntax')),
    ("offset", "-2", _POSITIVE.format(name="offset", why="value is negative")),
    ("after_id", "zz", 'Query param "after_id" must be a valid uuid'),
]
"""Recorded for users, workspaces and templates."""
JOBS = ("/provisionerjobs", "/provisionerdaemons")
"""Lists with a message of their own and without an offset."""
HIDDEN = {
    "/api/v2/workspaceagents/": "Agent doesn't exist with that id, or you do not have access to it.",
    "/api/v2/oauth2-provider/apps/": "OAuth2 application not found.",
}
"""Beginning of a path -> the recorded message for an unknown id, if it differs."""
ASKED_OTHERWISE = (
    "/api/v2/workspaceagents/me/",
    "/api/v2/workspaceproxies/me/",
    "/oauth2/",
    "/scim/",
    "/derp/",
    "/pty",
    "/archive",
    "/unarchive",
    "/read-status",
    "/coordinate",
)
"""Routes for programs with another kind of key; pages for people; recorded refusals of their own; streams."""
NO_BODY_NEEDED = frozenset({"/api/v2/debug/profile"})
"""An empty body means a default."""
WHOLE_OBJECTS = (
    "/workspaces/{workspace}",
    "/templates/{template}",
    "/templateversions/{version}",
    "/workspacebuilds/{build}",
)


def _described() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for method, path, operation in operations():
        if path.startswith("/api/") and not any(part in path for part in ASKED_OTHERWISE):
            yield method, path, operation


def _ids(path: str, operation: dict[str, Any]) -> list[str]:
    """Return the path parameters that are ids and nothing else."""
    named = {item["name"]: item for item in operation.get("parameters", []) if item["in"] == "path"}
    return [name for name in re.findall(r"\{([^}]*)\}", path) if named[name]["schema"].get("format") == "uuid"]


def _fill(path: str, values: dict[str, str]) -> str:
    return re.sub(r"\{([^}]*)\}", lambda result: values.get(result[1], UNKNOWN), path)


def test_description_marks_ids() -> None:
    """The tests below are generated from it."""
    with_ids = [path for _, path, operation in _described() if _ids(path, operation)]
    with_pages = [path for method, path, operation in _described() if method == "GET" and _takes(operation, "limit")]
    assert len(with_ids) > 80 and len(with_pages) > 12


def _takes(operation: dict[str, Any], name: str) -> bool:
    return any(item["in"] == "query" and item["name"] == name for item in operation.get("parameters", []))


async def test_lists_parse_pages_alike() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        group = workspace["organization_id"]  # the Everyone group has its organization's id
        values = {"workspace": workspace["id"], "template": workspace["template_id"], "group": group}
        values |= {"organization": "default", "user": "me", "name": "Everyone"}
        for method, path, operation in _described():
            if method != "GET" or not _takes(operation, "limit"):
                continue
            own = path.endswith(JOBS)
            for name, value, detail in PAGES:
                if own and name != "limit":
                    continue
                response = await world.get(f"{_fill(path, values)}?{name}={value}")
                message = "Invalid query parameters." if own else "Query parameters have invalid values."
                expected = {"message": message, "validations": [{"field": name, "detail": detail}]}
                assert (response.status_code, response.json()) == (400, expected), (path, name, value)


async def test_ids_are_checked_before_body() -> None:
    wrong = []
    async with workspace_world(experiments=("oauth2",)) as (world, _):

        async def expect(status: int, message: str, method: str, path: str, **sent: Any) -> None:
            response = await world.request(method, path, **sent)
            if (response.status_code, response.json()["message"]) != (status, message):
                wrong.append((method, path, sent, response.status_code, response.text))

        for method, path, operation in _described():
            ids = _ids(path, operation)
            whole = path.startswith(tuple(f"/api/v2{item}" for item in WHOLE_OBJECTS))
            has_body = "requestBody" in operation
            if not ids or (has_body and not whole):
                continue
            known = {"organization": "default", "user": "me"}
            sent = {"content": b"{"} if has_body else {}
            await expect(400, 'Invalid UUID "abc".', method, _fill(path, known | {ids[0]: "abc"}), **sent)
            hidden = next((message for beginning, message in HIDDEN.items() if path.startswith(beginning)), NOT_FOUND)
            await expect(404, hidden, method, _fill(path, known), **sent)
    assert not wrong, "\n".join(map(str, wrong))


async def test_bodies_are_parsed_alike() -> None:
    wrong = []
    async with workspace_world(experiments=("oauth2",)) as (world, _):
        for method, path, operation in _described():
            if "application/json" not in operation.get("requestBody", {}).get("content", {}) or "{" in path:
                continue
            if path in NO_BODY_NEEDED:
                continue
            for body, detail in ((b"", "EOF"), (b'{"a":', "unexpected EOF"), (b"[]", ""), (b'"x"', ""), (b"hello", "")):
                headers = {"Content-Type": "application/json"}
                response = await world.request(method, path, content=body, headers=headers)
                reply = response.json()
                if (
                    response.status_code != 400
                    or reply["message"] != BAD_BODY
                    or (detail and reply["detail"] != detail)
                ):
                    wrong.append((method, path, body, response.status_code, response.text))
    assert not wrong, "\n".join(map(str, wrong))


async def test_wrong_methods_are_refused() -> None:
    """Status 405 without a body, unless the path matches another route with a parameter."""
    does: dict[str, set[str]] = {}
    for method, path, _ in operations():
        does.setdefault(path, set()).add(method)
    patterns = {re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path)): methods for path, methods in does.items()}
    wrong = []
    async with workspace_world() as (world, _):
        for path in does:
            if not path.startswith("/api/v2/") or "{" in path or any(part in path for part in ASKED_OTHERWISE):
                continue
            done = set().union(*(methods for pattern, methods in patterns.items() if pattern.fullmatch(path)))
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - done:
                response = await world.request(method, path)
                if (response.status_code, response.content) != (405, b""):
                    wrong.append((method, path, response.status_code, response.text[:100]))
    assert not wrong, "\n".join(map(str, wrong))
