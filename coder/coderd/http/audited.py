"""Audit entries around views: what was there before, what is there afterwards, how it was answered.

`AUDITED` says for each changing route what it changes. Sitting between door and service, it needs no help of the
services: the object is read before and after, and the difference is the entry. A change that was refused leaves an
entry without a difference; what the caller cannot even see (401, 404) leaves none.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from quart import Response, current_app, g, request

from coder.base.ids import new_uuid
from coder.coderd.http.auth import authenticated, context, remote_ip
from coder.coderd.http.errors import envelope_of
from coder.coderd.http.hypercorn_fixes import Application
from coder.coderd.services import notable_events
from coder.coderd.services.audit import Event, Origin
from coder.coderd.services.errors import Refusal
from coder.coderd.store import audit as store
from coder.coderd.store import organizations as organization_store
from coder.coderd.store import tasks as task_store
from coder.coderd.store.audit import Snapshot

View = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Audited:
    """What a route changes.

    `key` finds the object: `path:N` is the Nth path argument, `body:NAME` a field of the answer, `sent:NAME` one of the
    request, `me` the caller. Settings have no key: their state is what GET of the same path says.
    """

    kind: str
    action: str
    key: str = "path:0"
    target: str = ""
    "Of settings, whose name is fixed."


def _settings(kind: str, target: str = "") -> Audited:
    return Audited(kind, "write", "", target)


_USER = Audited("user", "write")
_WORKSPACE = Audited("workspace", "write")
_TEMPLATE = Audited("template", "write")
_MEMBER = "organization_member"
_CUSTOM_ROLE = "custom_role"

_LOGIN = "sessions.post_login"
"The one view without authentication in front of it that leaves an entry."

AUDITED: dict[tuple[str, str], Audited] = {
    ("POST", "/users"): Audited("user", "create", "body:id"),
    ("DELETE", "/users/{}"): Audited("user", "delete"),
    ("PUT", "/users/{}/profile"): _USER,
    ("PUT", "/users/{}/status/{}"): _USER,
    ("PUT", "/users/{}/status/suspend"): _USER,
    ("PUT", "/users/{}/status/activate"): _USER,
    ("PUT", "/users/{}/password"): _USER,
    ("PUT", "/users/{}/roles"): _USER,
    ("PUT", "/users/{}/quiet-hours"): _USER,
    ("PUT", "/users/{}/gitsshkey"): Audited("git_ssh_key", "write"),
    ("POST", "/users/logout"): Audited("api_key", "logout", "me"),
    ("POST", "/users/{}/keys/tokens"): Audited("api_key", "create", "body:key"),
    ("DELETE", "/users/{}/keys/{}"): Audited("api_key", "delete", "path:1"),
    ("PUT", "/users/{}/keys/{}/expire"): Audited("api_key", "write", "path:1"),
    ("POST", "/users/{}/convert-login"): Audited("convert_login", "create"),
    ("POST", "/organizations"): Audited("organization", "create", "body:id"),
    ("PATCH", "/organizations/{}"): Audited("organization", "write"),
    ("DELETE", "/organizations/{}"): Audited("organization", "delete"),
    ("PATCH", "/organizations/{}/settings/workspace-sharing"): Audited("organization", "write"),
    ("POST", "/organizations/{}/members/{}"): Audited(_MEMBER, "create", "path:1"),
    ("DELETE", "/organizations/{}/members/{}"): Audited(_MEMBER, "delete", "path:1"),
    ("PUT", "/organizations/{}/members/{}/roles"): Audited(_MEMBER, "write", "path:1"),
    ("POST", "/organizations/{}/members/roles"): Audited(_CUSTOM_ROLE, "create", "body:name"),
    ("PUT", "/organizations/{}/members/roles"): Audited(_CUSTOM_ROLE, "write", "sent:name"),
    ("DELETE", "/organizations/{}/members/roles/{}"): Audited(_CUSTOM_ROLE, "delete", "path:1"),
    ("POST", "/organizations/{}/groups"): Audited("group", "create", "body:id"),
    ("PATCH", "/groups/{}"): Audited("group", "write"),
    ("DELETE", "/groups/{}"): Audited("group", "delete"),
    ("POST", "/organizations/{}/templates"): Audited("template", "create", "body:id"),
    ("PATCH", "/templates/{}"): _TEMPLATE,
    ("DELETE", "/templates/{}"): Audited("template", "delete"),
    ("PATCH", "/templates/{}/versions"): _TEMPLATE,
    ("PATCH", "/templates/{}/acl"): _TEMPLATE,
    ("POST", "/organizations/{}/templateversions"): Audited("template_version", "create", "body:id"),
    ("PATCH", "/templateversions/{}"): Audited("template_version", "write"),
    ("POST", "/templateversions/{}/archive"): Audited("template_version", "write"),
    ("POST", "/templateversions/{}/unarchive"): Audited("template_version", "write"),
    ("POST", "/users/{}/workspaces"): Audited("workspace", "create", "body:id"),
    ("POST", "/organizations/{}/members/{}/workspaces"): Audited("workspace", "create", "body:id"),
    ("PATCH", "/workspaces/{}"): _WORKSPACE,
    ("POST", "/workspaces/{}/abandon"): Audited("workspace", "delete"),
    ("PUT", "/workspaces/{}/autostart"): _WORKSPACE,
    ("PUT", "/workspaces/{}/ttl"): _WORKSPACE,
    ("PUT", "/workspaces/{}/dormant"): _WORKSPACE,
    ("PUT", "/workspaces/{}/favorite"): _WORKSPACE,
    ("DELETE", "/workspaces/{}/favorite"): _WORKSPACE,
    ("PUT", "/workspaces/{}/autoupdates"): _WORKSPACE,
    ("PATCH", "/workspaces/{}/acl"): _WORKSPACE,
    ("DELETE", "/workspaces/{}/acl"): _WORKSPACE,
    ("PUT", "/debug/health/settings"): _settings("health_settings"),
    ("PUT", "/notifications/settings"): _settings("notifications_settings"),
    ("PUT", "/prebuilds/settings"): _settings("prebuilds_settings"),
    ("PUT", "/notifications/templates/{}/method"): Audited("notification_template", "write"),
    ("POST", "/oauth2-provider/apps"): Audited("oauth2_provider_app", "create", "body:id"),
    ("PUT", "/oauth2-provider/apps/{}"): Audited("oauth2_provider_app", "write"),
    ("DELETE", "/oauth2-provider/apps/{}"): Audited("oauth2_provider_app", "delete"),
    ("POST", "/oauth2-provider/apps/{}/secrets"): Audited("oauth2_provider_app_secret", "create", "body:id"),
    ("DELETE", "/oauth2-provider/apps/{}/secrets/{}"): Audited("oauth2_provider_app_secret", "delete", "path:1"),
    ("POST", "/workspaceproxies"): Audited("workspace_proxy", "create", "body:proxy"),
    ("PATCH", "/workspaceproxies/{}"): Audited("workspace_proxy", "write"),
    ("DELETE", "/workspaceproxies/{}"): Audited("workspace_proxy", "delete"),
}
for _root in ("", "/api/experimental"):
    AUDITED["POST", f"{_root}/tasks/{{}}"] = Audited("task", "create", "body:id")
    AUDITED["DELETE", f"{_root}/tasks/{{}}/{{}}"] = Audited("task", "delete", "path:1")
    AUDITED["PATCH", f"{_root}/tasks/{{}}/{{}}/input"] = Audited("task", "write", "path:1")
for _path, _kind, _target in (
    ("/settings/idpsync/organization", "idp_sync_settings_organization", "Organization Sync"),
    ("/organizations/{}/settings/idpsync/groups", "idp_sync_settings_group", "Organization Group Sync"),
    ("/organizations/{}/settings/idpsync/roles", "idp_sync_settings_role", "Organization Role Sync"),
):
    for _tail in ("", "/config", "/mapping"):
        AUDITED["PATCH", _path + _tail] = _settings(_kind, _target)


def install(app: Application) -> None:
    """Puts the entry between each changing view and its authentication."""
    wanted: set[str] = set()
    for rule in app.url_map.iter_rules():
        wanted |= {rule.endpoint for method in rule.methods or () if (method, shape_of(rule.rule)) in AUDITED}
    for endpoint in wanted:
        view = app.view_functions[endpoint]
        if getattr(view, "counts_itself", False):
            app.view_functions[endpoint] = authenticated(_around(_inner(view)))
    app.view_functions[_LOGIN] = _around_login(cast("View", app.view_functions[_LOGIN]))


def _inner(view: Any) -> View:
    """The view behind `@authenticated`."""
    return cast("View", getattr(view, "__wrapped__", view))


def shape_of(rule: str) -> str:
    """`/api/v2/users/<user>/roles` becomes `/users/{}/roles`."""
    return re.sub(r"<[^>]*>", "{}", rule).removeprefix("/api/v2")


def origin() -> Origin:
    """Of the current request. Who asks is known behind authentication only."""
    caller = g.get("caller")
    return Origin(
        user_id=caller.subject.user_id if caller is not None else None,
        ip=remote_ip() or _client_ip(),
        user_agent=request.headers.get("User-Agent", ""),
        request_id=UUID(cast("dict[str, str]", request.scope)["coder_request_id"]),
    )


def _client_ip() -> str:
    client = request.scope.get("client")
    return client[0] if client else ""


def _around(view: View) -> View:
    @functools.wraps(view)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        how = AUDITED.get((request.method, shape_of(request.url_rule.rule if request.url_rule else "")))
        if how is None:
            return await view(*args, **kwargs)
        before = await _look(how, None)
        answer, failure = await _answer(view, args, kwargs)
        status = envelope_of(failure)[0] if failure is not None else answer.status_code
        # Settings without a name of their own are written or not: refusals leave no trace (recorded).
        unnamed = not how.key and not how.target
        if status == 200 if unnamed else status not in {401, 404, 304}:
            await _record(how, before, answer, status)
        if failure is not None:
            raise failure
        return answer

    return recorded


async def _answer(view: View, args: Any, kwargs: Any) -> tuple[Any, Refusal | None]:
    try:
        return await view(*args, **kwargs), None
    except Refusal as refusal:
        return None, refusal


async def _record(how: Audited, before: Snapshot | None, answer: Response | None, status: int) -> None:
    after = None
    if status < 400:
        after = await _look(how, await _json(answer))
        if how.action == "delete":
            after = None
    elif before is None and how.key:
        return  # nothing is known of what was refused
    ctx = context()
    event = Event(how.kind, how.action, origin(), status, before, after, _fallback_id(how))
    try:
        await notable_events.happened(ctx, event)
    except Exception as error:
        # The change is done and answered for: a log that cannot be written must not undo it.
        ctx.log.error("an audit entry was not written", error=error, resource=how.kind, action=how.action)


async def _json(answer: Response | None) -> dict[str, Any]:
    if answer is None or answer.mimetype != "application/json":
        return {}
    try:
        found = json.loads(await answer.get_data(as_text=True))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# ---- finding the object


async def _look(how: Audited, answered: dict[str, Any] | None) -> Snapshot | None:
    """The object now. `answered` is None before the view has run."""
    if not how.key:
        return await _look_at_settings(how)
    source, _, name = how.key.partition(":")
    arguments = [str(value) for value in (request.view_args or {}).values()]
    if source == "me":
        return None
    if source == "body":
        if answered is None:
            return None
        key: Any = answered.get(name) or ""
    elif source == "sent":
        key = getattr(g.get("sent"), name, "")  # known once the view has read it
    else:
        key = arguments[int(name)] if int(name) < len(arguments) else ""
    if how.kind not in store.TRACKED:
        return _named(how, key, answered)
    return await _snapshot(how.kind, key, arguments)


def _named(how: Audited, key: Any, answered: dict[str, Any] | None) -> Snapshot | None:
    """An object whose columns are not tracked: the entry says which one it was, not what changed."""
    if isinstance(key, dict):
        key = key.get("id", "")
    try:
        return Snapshot(UUID(str(key)), str((answered or {}).get("name", "")), None, "", "", {})
    except ValueError:
        return Snapshot(g.caller.subject.user_id, "", None, "", "", {}) if how.kind == "convert_login" else None


async def _snapshot(kind: str, key: Any, arguments: list[str]) -> Snapshot | None:
    db = context().db
    organization_id = None
    if kind in {"organization_member", "custom_role"} and arguments:
        organization_id = await _organization_id(arguments[0])
    if kind == "organization":
        key = await _organization_id(str(key))
    elif kind in {"user", "git_ssh_key", "organization_member"}:
        key = await _user_id(str(key))
    elif kind == "task":
        key = await _task_id(arguments[0], str(key))
    elif kind == "api_key":
        key = str(key).partition("-")[0]  # a new key is answered with its secret
    elif kind != "custom_role":
        key = _uuid(str(key))
    if not key:
        return None
    found = await db.read(store.take_snapshot, kind, key, organization_id)
    if found is not None and kind in {"api_key", "git_ssh_key"}:
        return _belonging_to(found)
    return found


def _belonging_to(found: Snapshot) -> Snapshot:
    """Keys have no UUID: entries about them name their user."""
    return Snapshot(_uuid(found.state["user_id"]), found.target, None, "", "", found.state)


async def _look_at_settings(how: Audited) -> Snapshot | None:
    path = shape_of(request.url_rule.rule if request.url_rule else "").removesuffix("/config").removesuffix("/mapping")
    for rule in current_app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and shape_of(rule.rule) == path:
            view = _inner(current_app.view_functions[rule.endpoint])
            try:
                answer = await view(**(request.view_args or {}))
            except Refusal:  # an attempt of somebody who may not even look
                return Snapshot(_settings_id(how), how.target, None, "", "", {})
            state = await _json(answer)
            plain = {
                key.removeprefix("organization_"): None if value in ([], {}) else value for key, value in state.items()
            }
            return Snapshot(_settings_id(how), how.target, None, "", "", plain)
    return None


def _settings_id(how: Audited) -> UUID | None:
    return uuid5(NAMESPACE_URL, how.target) if how.target else None


def _fallback_id(how: Audited) -> UUID:
    """What an entry names where no object was found: the caller, or settings."""
    return cast("UUID", g.caller.subject.user_id) if how.key else _settings_id(how) or new_uuid()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _user_id(reference: str) -> UUID | None:
    if reference == "me":
        return cast("UUID", g.caller.subject.user_id)
    return _uuid(reference) or await context().db.read(store.find_user_id, reference)


async def _task_id(owner: str, reference: str) -> UUID | None:
    found, owner_id = _uuid(reference), await _user_id(owner)
    if found is not None or owner_id is None:
        return found
    view = await context().db.read(task_store.get_view_by_name, owner_id, reference.replace("\0", ""))
    return view.task.id if view else None


async def _organization_id(reference: str) -> UUID | None:
    found = _uuid(reference)
    if found is not None:
        return found
    db = context().db
    if reference == "default":
        return (await db.read(organization_store.get_default_organization)).id
    row = await db.read(organization_store.get_organization_by_name, reference)
    return row.id if row else None


# ---- logging in


def _around_login(view: View) -> View:
    @functools.wraps(view)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        answer, failure = await _answer(view, args, kwargs)
        status = envelope_of(failure)[0] if failure is not None else answer.status_code
        email = str(getattr(g.get("sent"), "email", ""))
        known = email and "\0" not in email
        user_id = await context().db.read(store.find_user_id, email) if known else None
        if user_id is not None:
            who = origin()
            event = Event("api_key", "login", Origin(user_id, who.ip, who.user_agent, who.request_id), status)
            await notable_events.happened(context(), _about(event, user_id))
        if failure is not None:
            raise failure
        return answer

    return recorded


def _about(event: Event, user_id: UUID) -> Event:
    return Event(event.kind, event.action, event.origin, event.status_code, resource_id=user_id)
