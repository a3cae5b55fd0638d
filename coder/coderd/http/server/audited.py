"""Audit entries around views: what was there before, what is there afterwards, how it was answered.

Each changing route declares what it changes (`@route(…, audit=Audited(…))`). Sitting between door and service, the
entry needs no help of the services: the object is read before and after, and the difference is the entry. A change
that was refused leaves an entry without a difference; what the caller cannot even see (401, 404) leaves none.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from quart import Response, current_app, g, request

from coder.base.ids import new_uuid
from coder.coderd.http.server.audit_rules import LOGIN, Audited
from coder.coderd.http.server.auth import context, remote_ip
from coder.coderd.http.server.declarations import route_of
from coder.coderd.http.server.errors import envelope_of
from coder.coderd.services.events import record_event
from coder.coderd.services.events.audit import AuditEvent, Origin
from coder.coderd.services.foundation.errors import Refusal
from coder.coderd.store.events import audit as store
from coder.coderd.store.events.audit import AuditSnapshot
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.tasks import tasks as task_store

View = Callable[..., Awaitable[Any]]


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


def around(view: View, how: Audited) -> View:
    """The view with its entry written. To be called behind authentication, but for `LOGIN`."""
    if how is LOGIN:
        return _around_login(view)

    @functools.wraps(view)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
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


async def _record(how: Audited, before: AuditSnapshot | None, answer: Response | None, status: int) -> None:
    after = None
    if status < 400:
        after = await _look(how, await _json(answer))
        if how.action == "delete":
            after = None
    elif before is None and how.key:
        return  # nothing is known of what was refused
    ctx = context()
    event = AuditEvent(how.kind, how.action, origin(), status, before, after, _fallback_id(how))
    try:
        await record_event.record_event(ctx, event)
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


async def _look(how: Audited, answered: dict[str, Any] | None) -> AuditSnapshot | None:
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


def _named(how: Audited, key: Any, answered: dict[str, Any] | None) -> AuditSnapshot | None:
    """An object whose columns are not tracked: the entry says which one it was, not what changed."""
    if isinstance(key, dict):
        key = key.get("id", "")
    try:
        return AuditSnapshot(UUID(str(key)), str((answered or {}).get("name", "")), None, "", "", {})
    except ValueError:
        return AuditSnapshot(g.caller.subject.user_id, "", None, "", "", {}) if how.kind == "convert_login" else None


async def _snapshot(kind: str, key: Any, arguments: list[str]) -> AuditSnapshot | None:
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


def _belonging_to(found: AuditSnapshot) -> AuditSnapshot:
    """Keys have no UUID: entries about them name their user."""
    return AuditSnapshot(_uuid(found.state["user_id"]), found.target, None, "", "", found.state)


async def _look_at_settings(how: Audited) -> AuditSnapshot | None:
    path = shape_of(request.url_rule.rule if request.url_rule else "").removesuffix("/config").removesuffix("/mapping")
    for rule in current_app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and shape_of(rule.rule) == path:
            said = route_of(current_app.view_functions[rule.endpoint])
            if said is None:
                continue
            try:
                answer = await said.view(**(request.view_args or {}))
            except Refusal:  # an attempt of somebody who may not even look
                return AuditSnapshot(_settings_id(how), how.target, None, "", "", {})
            state = await _json(answer)
            plain = {
                key.removeprefix("organization_"): None if value in ([], {}) else value for key, value in state.items()
            }
            return AuditSnapshot(_settings_id(how), how.target, None, "", "", plain)
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
            event = AuditEvent("api_key", "login", Origin(user_id, who.ip, who.user_agent, who.request_id), status)
            await record_event.record_event(context(), _about(event, user_id))
        if failure is not None:
            raise failure
        return answer

    return recorded


def _about(event: AuditEvent, user_id: UUID) -> AuditEvent:
    return AuditEvent(event.kind, event.action, event.origin, event.status_code, resource_id=user_id)
