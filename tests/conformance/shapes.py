"""Shapes of successful responses: the documented type, corrected where the recordings differ, or the recorded shape.

    problems_of(operation, value)  # None: no shape of this body is known, so it does not count as checked

The recorded shape is the intersection of all recorded bodies of an operation: kinds, and keys of objects.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tests.conformance.scope import Operation, in_scope
from tests.kit.api.api_description import problems as type_problems
from tests.kit.recordings.exchange_replay import load_area
from tests.kit.recordings.recorded_areas import AREAS

_ORGANIZATION = "/api/v2/organizations/{organization}"
CORRECTED: dict[str, str] = {
    "DELETE /api/v2/groups/{group}": "Response",
    f"POST {_ORGANIZATION}/members/roles": "Role",
    f"PUT {_ORGANIZATION}/members/roles": "Role",
    f"GET {_ORGANIZATION}/paginated-members": "PaginatedMembersResponse",
    "GET /api/v2/templates/{template}/acl/available": "ACLAvailable",
    "GET /api/v2/templates/{template}/versions/{templateversionname}": "TemplateVersion",
    "GET /api/v2/users/{user}/quiet-hours": "UserQuietHoursScheduleResponse",
    "PUT /api/v2/users/{user}/quiet-hours": "UserQuietHoursScheduleResponse",
    "POST /api/v2/workspaceproxies": "UpdateWorkspaceProxyResponse",
    "PATCH /api/v2/workspaceproxies/{workspaceproxy}": "UpdateWorkspaceProxyResponse",
    "GET /api/v2/workspaceproxies": "RegionsResponse<WorkspaceProxy>",
    "GET /api/experimental/tasks": "TasksListResponse",
    "POST /api/experimental/tasks/{user}": "Task",
    "GET /api/experimental/tasks/{user}/{task}": "Task",
    "GET /api/experimental/tasks/{user}/{task}/logs": "TaskLogsResponse",
    "POST /api/experimental/tasks/{user}/{task}/pause": "PauseTaskResponse",
    "POST /api/experimental/tasks/{user}/{task}/resume": "ResumeTaskResponse",
    "GET /api/v2/notifications/dispatch-methods": "NotificationMethodsResponse",
}
"""Types that differ from the document (a list of it, the request's type, none at all): the actual types."""
RECORDED_WINS = frozenset(
    {
        "GET /api/v2/deployment/config",
        "GET /api/v2/experiments/available",
        "GET /api/v2/external-auth",
        "GET /api/v2/insights/user-status-counts",
        "GET /api/v2/notifications/inbox",
        "GET /api/v2/templatebuilder/bases",
        "GET /api/v2/templatebuilder/modules",
        "PATCH /api/v2/workspaceagents/me/app-status",
        "PATCH /api/v2/workspaceagents/me/logs",
        "PUT /api/v2/notifications/inbox/{id}/read-status",
        "GET /api/v2/users/{user}/roles",
        "GET /api/v2/workspacebuilds/{workspacebuild}/state",
        "POST /api/v2/oauth2-provider/apps/{app}/secrets",
        "POST /api/v2/templates/{template}/versions/archive",
        "POST /api/v2/templateversions/{templateversion}/archive",
        "POST /api/v2/templateversions/{templateversion}/unarchive",
    }
)
"""Operations whose recorded body does not have the documented type."""
_CLOUDS = ("aws", "azure", "google")
OWN_KEYS: dict[str, frozenset[str]] = {
    **{f"POST /api/v2/workspaceagents/{cloud}-instance-identity": frozenset({"session_token"}) for cloud in _CLOUDS},
    "GET /api/v2/workspaceagents/me/gitauth": frozenset({"url", "username", "password", "access_token", "type"}),
    "GET /api/v2/workspaceproxies/me/crypto-keys": frozenset({"crypto_keys"}),
    "POST /api/v2/workspaceproxies/me/issue-signed-app-token": frozenset({"signed_token_str"}),
    "POST /api/v2/workspaceproxies/me/register": frozenset(
        {"derp_force_websockets", "derp_map", "derp_mesh_key", "derp_region_id", "sibling_replicas"}
    ),
    "GET /scim/v2/ServiceProviderConfig": frozenset({"schemas", "patch", "filter", "authenticationSchemes"}),
    "GET /scim/v2/Users": frozenset({"schemas", "totalResults"}),
    "POST /scim/v2/Users": frozenset({"id", "userName", "active"}),
    "GET /scim/v2/Users/{id}": frozenset({"id", "userName", "active"}),
    "PATCH /scim/v2/Users/{id}": frozenset({"id", "userName", "active"}),
    "PUT /scim/v2/Users/{id}": frozenset({"id", "userName", "active"}),
    "GET /api/v2/debug/{user}/debug-link": frozenset({"claims"}),
    "GET /api/v2/debug/derp/traffic": frozenset(),
    "GET /api/v2/debug/expvar": frozenset({"memstats", "cmdline"}),
    f"GET {_ORGANIZATION}/settings/idpsync/available-fields": frozenset(),
    f"GET {_ORGANIZATION}/settings/idpsync/field-values": frozenset(),
    "GET /api/v2/settings/idpsync/field-values": frozenset(),
}
"""Bodies without document and recordings: the keys that clients need, or a list for an empty one."""
_KINDS = {str: "text", bool: "truth", int: "number", float: "number", type(None): "null", dict: "object", list: "list"}
_LEFT_OUT = frozenset({"ai"})
"""Options of features that this product leaves out."""
_PLACEHOLDER = re.compile(r"[<{].*[>}]")


def problems_of(operation: Operation, value: Any) -> list[str] | None:
    """Return the faults of a successful response's body; None when there is no shape to compare with."""
    name = CORRECTED.get(operation.name) or ("" if operation.name in RECORDED_WINS else operation.response)
    if name:
        return _typed(name, value)
    shape = recorded_shapes().get(operation.name)
    if shape is None and operation.name in OWN_KEYS:
        keys = OWN_KEYS[operation.name]
        if not keys:
            return [] if value is None or isinstance(value, list) else [f"a list became {type(value).__name__}"]
        return [f"/{key}: missing" for key in sorted(keys - set(value))]
    return None if shape is None else list(_misshapen(shape, value, ""))[:5]


def _typed(name: str, value: Any) -> list[str]:
    if not name.startswith("[]"):
        return type_problems(name, value)
    if value is None:
        return []
    if not isinstance(value, list):
        return [f"a list became {type(value).__name__}"]
    return [text for item in value[:5] for text in type_problems(name[2:], item)]


# recorded shapes: {"kinds": {...}, "keys": {name: shape}, "needed": {...}, "items": shape}


@cache
def recorded_shapes() -> dict[str, dict[str, Any]]:
    """Return the shape of every operation with a recorded successful JSON body."""
    shapes: dict[str, dict[str, Any]] = {}
    for area in AREAS:
        for line in load_area(area):
            response, request = line["response"], line["request"]
            body = response.get("body")
            operation = operation_of(request["method"], request["path"])
            special = isinstance(body, dict) and len(body) == 1 and next(iter(body)).startswith("$")
            if operation is None or (response["status"] or 500) >= 300 or body == "<omitted>" or special:
                continue
            if body is None and "content-type" not in response.get("headers", {}):
                continue  # no body
            _learn(shapes.setdefault(operation.name, {}), body)
    return shapes


@cache
def _patterns() -> list[tuple[re.Pattern[str], Operation]]:
    """Return the patterns, most literal first, as a router matches them."""
    by_names = sorted(in_scope(), key=lambda item: item.path.count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", item.path)), item) for item in by_names]


def operation_of(method: str, path: str) -> Operation | None:
    """Return the operation of a request; None when it is not in scope."""
    for pattern, operation in _patterns():
        if operation.method == method and pattern.fullmatch(path.rstrip("/")):
            return operation
    return None


def _learn(shape: dict[str, Any], value: Any) -> None:
    kinds = {_KINDS[type(value)]}
    if isinstance(value, str) and _PLACEHOLDER.fullmatch(value):
        kinds = {"number"} if value == "<number>" else {"number", "text"}
    shape.setdefault("kinds", set()).update(kinds)
    if isinstance(value, dict):
        known = shape.get("needed")
        shape["needed"] = set(value) if known is None else known & set(value)
        for key, item in value.items():
            shape["map"] = shape.get("map", False) or _PLACEHOLDER.fullmatch(key) is not None
            _learn(shape.setdefault("keys", {}).setdefault(key, {}), item)
    elif isinstance(value, list):
        for item in value:
            _learn(shape.setdefault("items", {}), item)


def _misshapen(shape: dict[str, Any], value: Any, where: str) -> Any:
    kind = _KINDS[type(value)]
    if kind not in shape["kinds"]:
        # a value that is empty in every recording may be set here, and vice versa
        if shape["kinds"] != {"null"} and kind != "null":
            yield f"{where}: {'/'.join(sorted(shape['kinds']))} became {kind}"
        return
    if isinstance(value, dict) and shape.get("keys") and not shape.get("map"):
        needed = shape["needed"] - set(value) - _LEFT_OUT
        yield from (f"{where}/{key}: missing" for key in sorted(needed))
        for key, item in value.items():
            if key in shape["keys"]:
                yield from _misshapen(shape["keys"][key], item, f"{where}/{key}")
    elif isinstance(value, list) and "items" in shape:
        for number, item in enumerate(value[:5]):
            yield from _misshapen(shape["items"], item, f"{where}/{number}")
