"""Terms of `q=` that name an object: one parser for each, shared by all lists.

An id is taken as it is: it reveals nothing, because a list shows only what its caller may read. A name must be of an
object that the caller may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authorization import may
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.engine.names import as_id
from coder.domain.access.policy import Object, Subject
from coder.domain.foundation.names import is_name

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.foundation.search import Terms


async def find_organization(ctx: Context, subject: Subject, terms: Terms) -> UUID | None:
    """Return the organization that a query names by id or name. A name the caller may not see is refused."""
    text = terms.one("organization")
    if not text:
        return None
    found = as_id(text) or await _organization_called(ctx, subject, text)
    if found is None:
        _refuse(terms, "organization", _unknown_organization(text))
    return found


async def find_user(ctx: Context, subject: Subject, terms: Terms, field: str) -> UUID | None:
    """Return the user that a query names by id, name or `me`. A name the caller may not see is refused."""
    text = terms.one(field)
    if text in {"", "me"}:
        return subject.user_id if text else None
    user_id = as_id(text) or await ctx.db.read(name_store.find_user, text)
    if user_id is None or not (as_id(text) or may(subject, "read", Object("user", str(user_id), owner_id=user_id))):
        _refuse(terms, field, f'user "{text}" either does not exist, or you are unauthorized to view them')
        return None
    return user_id


async def find_group(ctx: Context, subject: Subject, terms: Terms, field: str) -> UUID | None:
    """Return the group that a query names: an id, `name` (of the default organization) or `organization/name`."""
    text = terms.one(field)
    if not text:
        return None
    group_id = as_id(text)
    if group_id is not None:
        return group_id
    *before, name = text.split("/")
    if len(before) > 1:
        pattern = "<organization name>/<group name>"
        _refuse(terms, field, f"invalid organization or group name, the filter must be in the pattern of {pattern}")
        return None
    if before and (not is_name(before[0]) or await _organization_called(ctx, subject, before[0]) is None):
        _refuse(terms, field, _unknown_organization(before[0]))
        return None
    group = await ctx.db.read(name_store.find_group, name, *before)
    if group is None or not may(subject, "read", Object("group", str(group.id), organization_id=group.organization_id)):
        where = before[0] if before else await ctx.db.read(name_store.default_organization_name)
        _refuse(
            terms,
            field,
            f'group "{name}" either does not exist, does not belong to the organization "{where}", or you are '
            "unauthorized to view it",
        )
        return None
    return group.id


async def _organization_called(ctx: Context, subject: Subject, name: str) -> UUID | None:
    found = await ctx.db.read(name_store.find_organization_by_name, name)
    resource = Object("organization", str(found), organization_id=found)
    return found if found is not None and may(subject, "read", resource) else None


def _unknown_organization(text: str) -> str:
    return f'organization "{text}" either does not exist, or you are unauthorized to view it'


def _refuse(terms: Terms, field: str, reason: str) -> None:
    terms.refuse(field, f'Query param "{field}" has invalid value: {reason}')
