"""Lookups by an id or a name, without regard to case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select

from coder.coderd.store.engine.sql_types import Query, SqlColumn
from coder.coderd.store.tables.people import groups, organizations, users
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.foundation.names import is_name

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class FoundGroup:
    id: UUID
    organization_id: UUID


def holds_text(column: SqlColumn, text: str) -> ColumnElement[bool]:
    """Return whether the column holds the text of a search. `%`, `_` and a backslash keep their meaning of SQL's LIKE,
    as in the original's searches."""
    return column.ilike(f"%{text}%")


def matches_text(column: SqlColumn, text: str) -> ColumnElement[bool]:
    """Return whether the whole column matches the text of a search, with LIKE's wildcards as in `holds_text`."""
    trailing = len(text) - len(text.rstrip("\\"))
    return column.ilike(text + "\\" * (trailing % 2))  # PostgreSQL refuses a pattern that ends inside an escape


def as_uuid(text: str) -> UUID | None:
    """Return the UUID in the text, if it is one."""
    try:
        return read_uuid(text)
    except ValueError:
        return None


def as_id(text: str) -> UUID | None:
    """Return the id in a text that may also be a name. A text that can be a name is one: 32 digits of an id are a name
    that another object may have, and a request for one must not reach the other."""
    return None if is_name(text) else as_uuid(text)


def called(query: Query, text: str, ident: ColumnElement[UUID], is_named: ColumnElement[bool]) -> Query:
    """Return at most one row of a query: by that id, or by that name.

    Names of some kinds (groups) are long enough to look like an id: the id takes precedence, so that a request for one
    object never reaches another with that name.
    """
    text_id = as_id(text)
    if text_id is None:
        return query.where(is_named)
    return query.where(or_(ident == text_id, is_named)).order_by(ident != text_id).limit(1)


async def find_organization(tx: Tx, text: str) -> UUID | None:
    """Return a living organization by id, name or the word `default`."""
    query = select(organizations.c.id).where(~organizations.c.deleted)
    if text == "default":
        query = query.where(organizations.c.is_default)
    else:
        query = called(query, text, organizations.c.id, func.lower(organizations.c.name) == func.lower(text))
    return (await tx.execute(query)).scalar_one_or_none()


async def find_organization_by_name(tx: Tx, name: str) -> UUID | None:
    """Return a living organization by name; `default` is a name like others here."""
    query = select(organizations.c.id).where(
        ~organizations.c.deleted, func.lower(organizations.c.name) == func.lower(name)
    )
    return (await tx.execute(query)).scalar_one_or_none()


async def default_organization_name(tx: Tx) -> str:
    query = select(organizations.c.name).where(organizations.c.is_default)
    return str((await tx.execute(query)).scalar_one_or_none() or "")


async def find_user(tx: Tx, text: str) -> UUID | None:
    """Return a living user by id or name."""
    query = select(users.c.id).where(~users.c.deleted)
    query = called(query, text, users.c.id, func.lower(users.c.username) == func.lower(text))
    return (await tx.execute(query)).scalar_one_or_none()


async def find_group(tx: Tx, name: str, organization: str = "") -> FoundGroup | None:
    """Return a group by id, or by exact name within an organization (the default one when none is named)."""
    query = select(groups.c.id, groups.c.organization_id)
    where = await find_organization(tx, organization or "default")
    query = called(query, name, groups.c.id, and_(groups.c.name == name, groups.c.organization_id == where))
    row = (await tx.execute(query)).one_or_none()
    return FoundGroup(*row) if row else None
