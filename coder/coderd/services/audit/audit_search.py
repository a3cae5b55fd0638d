"""Search of the audit log."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, get_args
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from coder.api.audit.audit import AuditLog, AuditLogResponse
from coder.api.base.refusals import Forbidden, Invalid
from coder.api.people.organizations import MinimalOrganization
from coder.api.people.users import User
from coder.api.workspaces.builds import BuildReason
from coder.coderd.services.access.authorization import may
from coder.coderd.services.audit.audit import NIL, RESOURCE_TYPES
from coder.coderd.services.people.query_terms import find_organization
from coder.coderd.services.people.user_views import user_view
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import EntryFilter, EntryView
from coder.coderd.store.people import system_users
from coder.domain.access.policy import Class, Subject, allowed_organizations
from coder.domain.audit import audit as audit_rules
from coder.domain.foundation.search import Terms, explain_time, parse_query

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


BUILD_REASONS: tuple[BuildReason, ...] = get_args(BuildReason)


def _require(subject: Subject, action: str) -> None:
    if not may(subject, action, Class("audit_log", any_organization=True)) and not may(
        subject, action, Class("audit_log")
    ):
        raise Forbidden


async def list_entries(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> AuditLogResponse:
    """List entries, newest first. Raises Forbidden, Invalid (with one validation for each mistake)."""
    _require(subject, "read")
    which = await _read_search(ctx, subject, query)
    views, count, people, missing = await ctx.db.read(_load, which, limit, offset)
    return AuditLogResponse(
        audit_logs=[_present(view, people, missing) for view in views], count=count, count_cap=store.COUNT_CAP
    )


async def _load(
    tx: Tx, which: EntryFilter, limit: int, offset: int
) -> tuple[list[EntryView], int, dict[UUID, User], set[UUID]]:
    views = await store.list_entries(tx, which, limit=limit, offset=offset)
    count = await store.count_entries(tx, which)
    ids = {view.entry.user_id for view in views if view.entry.user_id is not None}
    # Without their organizations, as in upstream's entries (recorded): an auditor of one organization must not learn of
    # others.
    rows = await system_users.list_by_ids(tx, sorted(ids))
    people = {row.id: replace(user_view(row), organization_ids=[]) for row in rows}
    missing: set[UUID] = set()
    for kind in {view.entry.resource_type for view in views}:
        about = [view.entry.resource_id for view in views if view.entry.resource_type == kind]
        missing |= await store.list_missing(tx, kind, about)
    return views, count, people, missing


def _present(view: EntryView, people: dict[UUID, User], missing: set[UUID]) -> AuditLog:
    entry = view.entry
    is_deleted = entry.resource_id in missing
    link = audit_rules.resource_link(
        entry.resource_type, entry.resource_target, entry.additional_fields, str(entry.resource_id)
    )
    organization: MinimalOrganization | UnsetType = UNSET
    if entry.organization_id is not None and view.organization_name is not None:
        organization = MinimalOrganization(
            id=entry.organization_id,
            name=view.organization_name,
            display_name=view.organization_display_name or "",
            icon=view.organization_icon or "",
        )
    return AuditLog(
        id=entry.id,
        request_id=entry.request_id,
        time=entry.time,
        ip=entry.ip,
        user_agent=entry.user_agent,
        resource_type=entry.resource_type,
        resource_id=entry.resource_id,
        resource_target=entry.resource_target,
        resource_icon=entry.resource_icon,
        action=entry.action,
        diff=entry.diff,
        status_code=entry.status_code,
        additional_fields=entry.additional_fields,
        description=audit_rules.description(entry.action, entry.resource_type, entry.status_code),
        resource_link="" if is_deleted else link,
        is_deleted=is_deleted,
        organization_id=entry.organization_id or NIL,
        user=people.get(entry.user_id) if entry.user_id else None,
        organization=organization,
    )


async def _read_search(ctx: Context, subject: Subject, query: str) -> EntryFilter:
    terms = parse_query(query, "resource_type")
    date_to = _day(terms, "date_to")
    which = EntryFilter(
        request_id=terms.uuid("request_id"),
        resource_id=terms.uuid("resource_id"),
        resource_target=terms.one("resource_target"),
        username=terms.one("username"),
        email=terms.one("email"),
        date_from=_day(terms, "date_from"),
        date_to=date_to + timedelta(hours=23, minutes=59, seconds=59) if date_to else None,
        resource_type=terms.choice("resource_type", RESOURCE_TYPES),
        action=terms.choice("action", audit_rules.ACTIONS),
        build_reason=terms.choice("build_reason", BUILD_REASONS),
        organization_id=await find_organization(ctx, subject, terms),
    )
    if which.username == "me":
        which = dataclasses.replace(which, username=subject.username)
    refusals = terms.refusals()
    if refusals:
        raise Invalid("Invalid audit search query.", validations=[(item.field, item.detail) for item in refusals])
    readable = allowed_organizations(subject, "read", "audit_log")
    return dataclasses.replace(which, organizations=sorted(readable) if readable is not None else None)


def _day(terms: Terms, key: str) -> datetime | None:
    text = terms.one(key)
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        terms.refuse(
            key,
            f'Query param "{key}" must be a valid date format (2006-01-02): {explain_time(text, "2006-01-02")}',
        )
        return None
