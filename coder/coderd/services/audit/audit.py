"""Write entries of the audit log. `audit_search` reads them.

Entries about requests are written around the view (`http/server/audited.py` calls `request_events.py`); entries about
builds when they end (`services/workspaces/builds/build_events.py`). Both send the notifications of the event as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, get_args
from uuid import UUID

from coder.api.audit.audit import AuditAction, CreateTestAuditLogRequest, ResourceType
from coder.api.base.refusals import Forbidden, Invalid
from coder.base.ids import new_uuid
from coder.base.json_types import Json
from coder.coderd.services.access.authorization import may
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import AuditSnapshot, EntryRow
from coder.domain.access.policy import Class, Subject
from coder.domain.audit import audit as audit_rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

RESOURCE_TYPES: tuple[ResourceType, ...] = get_args(ResourceType)
NIL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a change."""

    user_id: UUID | None = None
    ip: str = ""
    user_agent: str = ""
    request_id: UUID = NIL


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A change, or an attempt."""

    kind: ResourceType
    action: AuditAction
    origin: Origin
    status_code: int
    before: AuditSnapshot | None = None
    after: AuditSnapshot | None = None
    resource_id: UUID | None = None
    "Id of the resource when no snapshot has it."
    additional: Mapping[str, Json] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return self.status_code < 400

    @property
    def snapshot(self) -> AuditSnapshot | None:
        return self.after or self.before


def entry_of(event: AuditEvent, now: datetime) -> EntryRow:
    snapshot = event.snapshot
    tracked = store.TRACKED.get(event.kind)
    secret = tracked.secret if tracked else ()
    additional = dict(event.additional)
    if snapshot is not None and snapshot.owner:
        additional.setdefault("workspace_owner", snapshot.owner)
    before = event.before.state if event.before else None
    after = event.after.state if event.after else None
    changed = audit_rules.diff(before, after, secret) if event.succeeded and (before or after) is not None else {}
    return EntryRow(
        id=new_uuid(),
        time=now,
        user_id=event.origin.user_id,
        organization_id=snapshot.organization_id if snapshot else None,
        ip=event.origin.ip,
        user_agent=event.origin.user_agent[:1000],
        resource_type=event.kind,
        resource_id=(snapshot.id if snapshot else None) or event.resource_id or NIL,
        resource_target=snapshot.target if snapshot else "",
        resource_icon=snapshot.icon if snapshot else "",
        action=event.action,
        diff={**changed},
        status_code=event.status_code,
        additional_fields=additional,
        request_id=event.origin.request_id,
    )


async def write(tx: Tx, event: AuditEvent, now: datetime) -> None:
    await store.insert_entry(tx, entry_of(event, now))


async def generate_test(ctx: Context, subject: Subject, origin: Origin, body: CreateTestAuditLogRequest) -> None:
    """Write an entry with the caller's own values. Raises Forbidden, Invalid."""
    if not may(subject, "create", Class("audit_log")):  # permission on one organization's log is not enough
        raise Forbidden
    kind, action = body.resource_type or "user", body.action or "write"
    if action not in audit_rules.ACTIONS:
        raise Invalid("Invalid audit action.")
    if kind not in RESOURCE_TYPES:
        raise Invalid("Invalid resource type.")
    fields = body.additional_fields or {}
    if not isinstance(fields, dict):
        raise Invalid("Invalid additional fields.", "They must be an object.")
    additional = dict(fields)
    if body.build_reason:
        additional["build_reason"] = body.build_reason
    row = EntryRow(
        id=new_uuid(),
        time=body.time or ctx.clock.now(),
        user_id=subject.user_id,
        organization_id=body.organization_id or None,
        ip=origin.ip,
        user_agent=origin.user_agent,
        resource_type=kind,
        resource_id=body.resource_id or new_uuid(),
        resource_target="",
        resource_icon="",
        action=action,
        diff={},
        status_code=200,
        additional_fields=additional,
        request_id=body.request_id or origin.request_id,
    )
    await ctx.db.run(store.insert_entry, row)
