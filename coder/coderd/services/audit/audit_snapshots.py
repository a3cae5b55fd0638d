"""State of an object at one moment. Read before and after a change, the difference is the audit entry.

This module finds the object that a request names (by name, `me` or a secret) and reads its tracked state.
`store/audit/audit.py` says which columns are tracked, `request_events.py` writes the entries.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

from coder.api.base import codec
from coder.api.base.refusals import Refusal
from coder.base.json_types import Json, as_text
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import AuditSnapshot as AuditSnapshot
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_organizations, system_user_secrets, system_user_skills
from coder.coderd.store.tasks import system_tasks
from coder.domain.access.policy import Subject
from coder.domain.notifications.notification_texts import BY_ID

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class ReadSettings(Protocol):
    """Service function that returns settings as the API has them. Raises a refusal without read permission."""

    def __call__(self, ctx: Context, subject: Subject, /) -> Awaitable[object]: ...


class ReadOrganizationSettings(Protocol):
    """Service function that returns settings of an organization, by its name or id. Raises as `ReadSettings` does."""

    def __call__(self, ctx: Context, subject: Subject, organization: str, /) -> Awaitable[object]: ...


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Object of a request, as far as the request names it."""

    kind: str
    key: UUID | Json
    "Key from the path, the request or the response: an id, a name, `me`, an object with an id."
    arguments: Sequence[str]
    "Every argument of the path."
    name: str = ""
    "Name in the response."


async def take_snapshot(ctx: Context, subject: Subject, reference: ObjectReference) -> AuditSnapshot | None:
    """Read the object; None when there is none."""
    if reference.kind not in store.TRACKED:
        return await _named(ctx, reference)
    organization_id = None
    if reference.kind in {"organization_member", "custom_role"} and reference.arguments:
        organization_id = await _organization_id(ctx, reference.arguments[0])
    key = await _key(ctx, subject, reference)
    if not key:
        return None
    snapshot = await ctx.db.read(store.take_snapshot, reference.kind, key, organization_id)
    if snapshot is not None and reference.kind in {"api_key", "git_ssh_key"}:
        return _belonging_to(snapshot)
    return snapshot


async def snapshot_of_object(ctx: Context, kind: str, key: UUID | str, name: str = "") -> AuditSnapshot | None:
    """Read an object by its own key. `name` is the name of an untracked object, or of a bulk operation."""
    if kind not in store.TRACKED or name:
        return AuditSnapshot(_uuid(str(key)), name, None, "", "", {})
    snapshot = await ctx.db.read(store.take_snapshot, kind, key)
    return _belonging_to(snapshot) if snapshot is not None and kind == "api_key" else snapshot


async def snapshot_of_settings(read: Callable[[], Awaitable[object]], target: str) -> AuditSnapshot:
    """Read settings of the deployment or of an organization through their own service."""
    try:
        state = json.loads(codec.encode(await read()))
    except Refusal:  # the attempt of a caller without read permission
        return AuditSnapshot(settings_id(target), target, None, "", "", {})
    plain = {key.removeprefix("organization_"): None if value in ([], {}) else value for key, value in state.items()}
    return AuditSnapshot(settings_id(target), target, None, "", "", plain)


def settings_id(target: str) -> UUID | None:
    """Return the id of settings, which have no row: a UUID derived from their name, if they have one."""
    return uuid5(NAMESPACE_URL, target) if target else None


async def user_with_email(ctx: Context, email: str) -> UUID | None:
    """Return the user who tries to log in, or None."""
    return await ctx.db.read(store.find_user_id, email)


async def _named(ctx: Context, reference: ObjectReference) -> AuditSnapshot | None:
    """Return the snapshot of an untracked object: its entry has a name, but no changes."""
    key = reference.key.get("id", "") if isinstance(reference.key, dict) else reference.key
    object_id = _uuid(str(key))
    if object_id is None:
        return None
    if reference.kind == "notification_template":
        template = BY_ID.get(object_id)
        return AuditSnapshot(object_id, template.name if template else "", None, "", "", {})
    # A deletion returns no name, and the response may use the field for something else.
    name = await ctx.db.read(store.find_name, reference.kind, object_id)
    return AuditSnapshot(object_id, name or reference.name, None, "", "", {})


async def _key(ctx: Context, subject: Subject, reference: ObjectReference) -> UUID | Json:
    text = str(reference.key)
    match reference.kind:
        case "organization":
            return await _organization_id(ctx, text)
        case "user" | "git_ssh_key" | "organization_member":
            return await _user_id(ctx, subject, text)
        case "task":
            return await _task_id(ctx, subject, reference.arguments[0], text)
        case "user_secret" | "user_skill":
            return await _asset_id(ctx, subject, reference, text)
        case "api_key":
            return text.partition("-")[0]  # the response to creating a key has its secret
        case "custom_role":
            return reference.key
        case _:
            return _uuid(text)


def _belonging_to(snapshot: AuditSnapshot) -> AuditSnapshot:
    """Return the user of a key: keys have no UUID, so their entries have the user's."""
    return AuditSnapshot(_uuid(as_text(snapshot.state["user_id"])), snapshot.target, None, "", "", snapshot.state)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _user_id(ctx: Context, subject: Subject, reference: str) -> UUID | None:
    if reference == "me":
        return subject.user_id
    return as_id(reference) or await ctx.db.read(store.find_user_id, reference)


async def _task_id(ctx: Context, subject: Subject, owner: str, reference: str) -> UUID | None:
    task_id, owner_id = as_id(reference), await _user_id(ctx, subject, owner)
    if task_id is not None or owner_id is None:
        return task_id
    view = await ctx.db.read(system_tasks.get_view_by_name, owner_id, reference.replace("\0", ""))
    return view.task.id if view else None


async def _asset_id(ctx: Context, subject: Subject, reference: ObjectReference, name: str) -> UUID | None:
    """Return the asset that a user names so; the response has the id of a new one."""
    owner_id = await _user_id(ctx, subject, reference.arguments[0])
    if owner_id is None or "\0" in name:
        return None
    find = system_user_secrets.get_secret if reference.kind == "user_secret" else system_user_skills.get_skill
    row = await ctx.db.read(find, owner_id, name)
    return row.id if row is not None else _uuid(name)


async def _organization_id(ctx: Context, reference: str) -> UUID | None:
    organization_id = as_id(reference)
    if organization_id is not None:
        return organization_id
    if reference == "default":
        return (await ctx.db.read(organization_store.get_default_organization)).id
    row = await ctx.db.read(system_organizations.get_organization_by_name, reference)
    return row.id if row else None
