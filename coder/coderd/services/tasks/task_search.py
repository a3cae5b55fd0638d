"""Listing tasks by a search query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid
from coder.api.tasks.tasks import TasksListResponse
from coder.coderd.services.access.workspace_access import (
    readable_organizations,
)
from coder.coderd.services.people.query_terms import find_organization, find_user
from coder.coderd.services.tasks.task_view import present_task, status_of_task
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import TaskFilter, TaskReaders
from coder.domain.access.policy import Subject, allowed_ids, allowed_organizations, scope_allows
from coder.domain.foundation.search import parse_query
from coder.domain.tasks import tasks as rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def list_tasks(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> TasksListResponse:
    """Return the tasks that match `query` and that `subject` may read, newest first. Raises Invalid for an invalid
    query."""
    terms = parse_query(query.replace("\x00", ""), "owner")
    owner_id = await find_user(ctx, subject, terms, "owner")
    organization_id = await find_organization(ctx, subject, terms)
    status = terms.choice("status", rules.STATUSES)
    refusals = terms.refusals()
    if refusals:
        raise Invalid("Invalid task search query.", validations=[(item.field, item.detail) for item in refusals])
    if not scope_allows(subject, "read", "task"):
        return TasksListResponse(tasks=[], count=0)
    organizations = allowed_organizations(subject, "read", "task", narrowed=True)
    own_in = readable_organizations(subject, "task", owner_id=subject.user_id)
    readers = TaskReaders(organizations is None, sorted(organizations or ()), subject.user_id, own_in)
    listed_ids = allowed_ids(subject, "task")
    ids = None if listed_ids is None else [task_id for task_id in map(as_uuid, listed_ids) if task_id is not None]
    views = await ctx.db.read(store.list_views, TaskFilter(owner_id, organization_id, ids), readers)
    if status:
        views = [view for view in views if status_of_task(ctx, view) == status]
    page = views[offset : offset + limit] if limit else views[offset:]
    return TasksListResponse(tasks=[present_task(ctx, view) for view in page], count=len(views))
