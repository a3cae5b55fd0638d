"""Audit entries around views: the object before, the object afterwards, and the response.

Each changing route declares its object (`@route(…, audit=Audited(…))`); here the request identifies it.
`services/audit/audit_snapshots.py` reads its state before and after, and the difference is the entry. A refused change
leaves an entry without a difference; a request for an invisible object (401, 404) leaves none.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ParamSpec
from uuid import UUID

import trio
from quart import Response, g, request

from coder.api.audit.audit import AuditAction
from coder.api.base.refusals import Refusal
from coder.appproxy.http.errors import envelope_of
from coder.base.ids import new_uuid
from coder.base.json_types import Json, JsonObject
from coder.coderd.http.server.audit_rules import LOGIN, Audited
from coder.coderd.http.server.auth import context, remote_ip, subject
from coder.coderd.http.server.declarations import declared, own_scope
from coder.coderd.http.server.quart_fixes import finish_when_left
from coder.coderd.services.audit import audit_snapshots as snapshots
from coder.coderd.services.audit import request_events
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.audit.audit_snapshots import AuditSnapshot, ObjectReference
from coder.coderd.services.foundation.outages import SETTLED_WITHIN, settling_doubts, until_available
from coder.domain.access.policy import NIL

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

P = ParamSpec("P")
View = Callable[P, Awaitable[Response | None]]


def origin() -> Origin:
    """Return the origin of the current request. The caller is known behind authentication only."""
    caller = g.get("caller")
    return Origin(
        user_id=caller.subject.user_id if caller is not None else None,
        ip=remote_ip() or _client_ip(),
        user_agent=request.headers.get("User-Agent", ""),
        request_id=UUID(own_scope(request)["coder_request_id"]),
    )


def _client_ip() -> str:
    client = request.scope.get("client")
    return client[0] if client else ""


def around(view: View[P], how: Audited) -> View[P]:
    """Wrap a view so that its entry is written. To be called behind authentication, except for `LOGIN`."""
    if how is LOGIN:
        return _around_login(view)
    if how.key == "view":
        return _around_declaring(view, how)

    @functools.wraps(view)
    async def recorded(*args: P.args, **kwargs: P.kwargs) -> Response:
        _finish_when_left()
        before = await _take_snapshot(how, None)
        result = await _ask(view, *args, **kwargs)
        status = result.status
        # Settings without a name of their own: refusals leave no trace (recorded).
        unnamed = not how.key and not how.target
        if status == 200 if unnamed else status not in {401, 404, 304}:
            await _record(how, before, result.answer, status)
        return result.pass_on()

    return recorded


def _finish_when_left() -> None:
    """Otherwise a client that disconnects at the right moment changes something without an entry."""
    finish_when_left(reads_body=declared().limit > 0)


class _Result:
    """Result of a view: a response or a refusal."""

    __slots__ = ("_outcome", "status")

    def __init__(self, outcome: Response | Refusal) -> None:
        self._outcome: Response | Refusal | None = outcome
        self.status: int = envelope_of(outcome)[0] if isinstance(outcome, Refusal) else outcome.status_code

    @property
    def answer(self) -> Response | None:
        return self._outcome if isinstance(self._outcome, Response) else None

    def pass_on(self) -> Response:
        """Return the response, or raise the refusal, once. A refusal's traceback holds every frame it passes through: a
        frame with a name for it would also hold the request's body until cycles are collected."""
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Response):
            return outcome
        try:
            raise outcome or LookupError("the result was passed on before")
        finally:
            del outcome


async def _ask(view: View[P], *args: P.args, **kwargs: P.kwargs) -> _Result:
    try:
        with settling_doubts(SETTLED_WITHIN):  # a change in doubt would have no entry
            answer = await view(*args, **kwargs)
    except Refusal as refusal:
        return _Result(refusal)
    if answer is None:
        raise TypeError("an audited view returns a response")
    return _Result(answer)


async def _record(how: Audited, before: AuditSnapshot | None, answer: Response | None, status: int) -> None:
    if status >= 400 and before is None and how.key:
        return  # a refusal names no object
    for declaration in await _objects(how, answer):
        after = None
        if status < 400 and how.action != "delete":
            after = await _take_after(partial(_take_snapshot, how, declaration), before)
        await _write(AuditEvent(how.kind, how.action, origin(), status, before, after, _fallback_id(how)))


async def _take_after(
    take: Callable[[], Awaitable[AuditSnapshot | None]], before: AuditSnapshot | None
) -> AuditSnapshot | None:
    """Return the object's state after the change, `before` when it cannot be read: the entry then has no difference."""
    with trio.move_on_after(SETTLED_WITHIN):
        try:
            return await until_available(take)
        except Exception as error:
            context().log.error("an object could not be read after its change", error=error)
    return before


async def _write(event: AuditEvent) -> None:
    """Write the entry. The change is committed and answered: a failure of the log must not undo it."""
    try:
        await request_events.record_event(context(), event)
    except Exception as error:
        context().log.error("an audit entry was not written", error=error, resource=event.kind, action=event.action)


async def _objects(how: Audited, answer: Response | None) -> list[JsonObject]:
    """Return the objects of a response: a list of objects is an entry for each of them."""
    if answer is None or answer.mimetype != "application/json":
        return [{}]
    try:
        result = json.loads(await answer.get_data(as_text=True))
    except ValueError:
        return [{}]
    if isinstance(result, list) and how.key.startswith("body:"):
        return result
    return [result if isinstance(result, dict) else {}]


# ---- finding the object


async def _take_snapshot(how: Audited, answered: JsonObject | None) -> AuditSnapshot | None:
    """Return the object's current state. `answered` is None before the view has run."""
    if how.settings is not None:
        return await snapshots.snapshot_of_settings(partial(how.settings, context(), g.caller.subject), how.target)
    arguments = [str(value) for value in (request.view_args or {}).values()]
    if how.organization_settings is not None:
        read = partial(how.organization_settings, context(), g.caller.subject, arguments[0])
        return await snapshots.snapshot_of_settings(read, how.target)
    source, _, name = how.key.partition(":")
    if source == "me":
        return None
    if source == "caller":
        return await snapshots.snapshot_of_object(context(), how.kind, g.caller.subject.user_id)
    if source == "body":
        if answered is None:
            return None
        key: Json = answered.get(name) or ""
    elif source == "sent":
        key = getattr(g.get("sent"), name, "")  # known once the view has read it
    else:
        key = arguments[int(name)] if int(name) < len(arguments) else ""
    name = str((answered or {}).get("name", ""))
    return await snapshots.take_snapshot(context(), g.caller.subject, ObjectReference(how.kind, key, arguments, name))


def _fallback_id(how: Audited) -> UUID:
    """Return the id in an entry without an object: the caller, or settings."""
    return subject().user_id if how.key else snapshots.settings_id(how.target) or new_uuid()


# ---- objects that only the view knows


@dataclass(frozen=True, slots=True)
class _About:
    key: UUID | str
    name: str
    by: UUID | None
    action: AuditAction
    before: AuditSnapshot | None


async def about(
    key: UUID | str, *, name: str = "", by: UUID | None = None, new: bool = False, action: AuditAction | None = None
) -> None:
    """Declare the object of a route whose key is `view`: before the change, or once a `new` object is created.

    `name` is for kinds that are not tracked and for several objects, `by` the caller identified by the view, `action`
    the actual action.
    """
    how = declared().audit
    if how is None:
        raise LookupError("the route declares no audit entry")
    before = None if new else await snapshots.snapshot_of_object(context(), how.kind, key, name)
    g.about = _About(key, name, by, action or how.action, before)


def _around_declaring(view: View[P], how: Audited) -> View[P]:
    @functools.wraps(view)
    async def recorded(*args: P.args, **kwargs: P.kwargs) -> Response:
        _finish_when_left()
        result = await _ask(view, *args, **kwargs)
        status = result.status
        declaration: _About | None = g.get("about")
        if declaration is not None:
            removed = status >= 400 or declaration.action == "delete"
            take = partial(snapshots.snapshot_of_object, context(), how.kind, declaration.key, declaration.name)
            after = None if removed else await _take_after(take, declaration.before)
            actor = origin()
            actor = actor if declaration.by is None else replace(actor, user_id=declaration.by)
            event = AuditEvent(how.kind, declaration.action, actor, status, declaration.before, after)
            if g.get("caller") is None and status >= 400:
                await _leave(event, declaration.key != NIL)
            elif declaration.key != NIL:
                await _write(event)
        return result.pass_on()

    return recorded


# ---- requests without a session


async def _leave(event: AuditEvent, is_somebody: bool) -> None:
    """Record a refusal of an unidentified caller, after the response, so that its duration does not reveal whether the
    user exists."""
    ctx = context()

    async def write() -> None:
        if is_somebody:
            await request_events.record_event(ctx, event)

    await ctx.services.deferred_work.enqueue(f"audit entry: {event.action} {event.kind}", write)


async def do_afterwards(email: str, work: Callable[[], Awaitable[object]]) -> None:
    """Run the view's work for the user of an address, and write the entry, after the response. For routes whose key is
    `view`."""
    how, actor, ctx = declared().audit, origin(), context()
    if how is None:
        raise LookupError("the route declares no audit entry")

    async def do() -> None:
        user_id = await snapshots.user_with_email(ctx, email)
        before = await snapshots.snapshot_of_object(ctx, how.kind, user_id) if user_id is not None else None
        await work()
        if user_id is not None:
            after = await snapshots.snapshot_of_object(ctx, how.kind, user_id)
            await request_events.record_event(ctx, AuditEvent(how.kind, how.action, actor, 204, before, after))

    await ctx.services.deferred_work.enqueue(f"{how.action} {how.kind}", do)


def _around_login(view: View[P]) -> View[P]:
    @functools.wraps(view)
    async def recorded(*args: P.args, **kwargs: P.kwargs) -> Response:
        _finish_when_left()
        result = await _ask(view, *args, **kwargs)
        email = str(getattr(g.get("sent"), "email", ""))
        if email and "\0" not in email:
            event = AuditEvent("api_key", "login", origin(), result.status)
            write = functools.partial(_write_login, context(), email, event)
            if result.status < 400:
                await write()
            else:
                await context().services.deferred_work.enqueue("audit entry: login", write)
        return result.pass_on()

    return recorded


async def _write_login(ctx: Context, email: str, event: AuditEvent) -> None:
    try:
        user_id = await snapshots.user_with_email(ctx, email)
        if user_id is not None:
            actor = replace(event.origin, user_id=user_id)
            await request_events.record_event(ctx, replace(event, origin=actor, resource_id=user_id))
    except Exception as error:
        ctx.log.error("an audit entry was not written", error=error, resource=event.kind, action=event.action)
