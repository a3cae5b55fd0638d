"""Finding things by what people call them: an id or a name, without regard to case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from coder.coderd.store.tables.people import groups, organizations, users
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.foundation.names import is_name

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class FoundGroup:
    id: UUID
    organization_id: UUID


def as_uuid(text: str) -> UUID | None:
    """The id a text is, if it is one."""
    try:
        return read_uuid(text)
    except ValueError:
        return None


def as_id(text: str) -> UUID | None:
    """The id a text is where names may stand, too. What can be a name is one: 32 digits of somebody's id are a name
    that another may have, and what is meant for the one must not reach the other."""
    return None if is_name(text) else as_uuid(text)


def called(query: Select[Any], text: str, ident: ColumnElement[UUID], is_named: ColumnElement[bool]) -> Select[Any]:
    """At most one row of those a query chooses among: the one of that id, or the one of that name.

    Names of some kinds (groups) are long enough to look like an id as it is written: the id comes first, so that what
    is meant for one thing never reaches another that is called so.
    """
    wanted = as_id(text)
    if wanted is None:
        return query.where(is_named)
    return query.where(or_(ident == wanted, is_named)).order_by(ident != wanted).limit(1)


async def find_organization(tx: Tx, text: str) -> UUID | None:
    """A living organization by id, name or the word `default`."""
    query = select(organizations.c.id).where(~organizations.c.deleted)
    if text == "default":
        query = query.where(organizations.c.is_default)
    else:
        query = called(query, text, organizations.c.id, func.lower(organizations.c.name) == func.lower(text))
    return (await tx.execute(query)).scalar_one_or_none()


async def default_organization_name(tx: Tx) -> str:
    query = select(organizations.c.name).where(organizations.c.is_default)
    return str((await tx.execute(query)).scalar_one_or_none() or "")


async def find_user(tx: Tx, text: str) -> UUID | None:
    """A living user by id or name."""
    query = select(users.c.id).where(~users.c.deleted)
    query = called(query, text, users.c.id, func.lower(users.c.username) == func.lower(text))
    return (await tx.execute(query)).scalar_one_or_none()


async def find_group(tx: Tx, name: str, organization: str = "") -> FoundGroup | None:
    """A group by id, or by exact name within an organization (the default one when none is named)."""
    query = select(groups.c.id, groups.c.organization_id)
    where = await find_organization(tx, organization or "default")
    query = called(query, name, groups.c.id, and_(groups.c.name == name, groups.c.organization_id == where))
    row = (await tx.execute(query)).one_or_none()
    return FoundGroup(*row) if row else None
