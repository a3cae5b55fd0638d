"""Queries on notifications: queueing, leasing due messages, preferences, methods of templates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.people.object_counts import lock_objects
from coder.coderd.store.tables.notifications import (
    inbox_notifications,
    notification_messages,
    notification_methods,
    notification_preferences,
)
from coder.coderd.store.tables.people import organization_members, users

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

MAX_INBOX_MESSAGES = 1000
"""Maximum messages of one reader."""
CHANNEL = "notification_messages"
"""Channel notified when there is a message to send."""


class MessagePayload(TypedDict, total=False):
    """Content of a message; each has all keys."""

    title: str
    body: str
    icon: str
    actions: list[dict[str, str]]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class MessageRow:
    """Message to be sent. `payload` is its whole content."""

    id: UUID
    template_id: UUID
    user_id: UUID
    method: str
    payload: MessagePayload
    targets: Sequence[str]
    attempts: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Preference:
    template_id: UUID
    disabled: bool
    updated_at: datetime


_COLUMNS = tuple(notification_messages.c[field.name] for field in fields(MessageRow))


async def insert_message(tx: Tx, row: MessageRow) -> None:
    values = column_values(row)
    values |= {"targets": list(row.targets), "updated_at": row.created_at, "next_try_at": row.created_at}
    await tx.execute(insert(notification_messages).values(**values))


async def lease(tx: Tx, now: datetime, until: datetime, methods: Collection[str]) -> MessageRow | None:
    """Lease the oldest due message of these methods; no other process gets it before `until`."""
    due = (
        select(notification_messages.c.id)
        .where(notification_messages.c.status == "pending", notification_messages.c.next_try_at <= now)
        .where(notification_messages.c.method.in_(methods))
        .order_by(notification_messages.c.created_at, notification_messages.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    statement = (
        update(notification_messages)
        .where(notification_messages.c.id == due.scalar_subquery())
        .values(next_try_at=until, attempts=notification_messages.c.attempts + 1, updated_at=now)
        .returning(*_COLUMNS)
    )
    row = (await tx.execute(statement)).one_or_none()
    return MessageRow(*row) if row is not None else None


async def settle(
    tx: Tx, leased: MessageRow, status: str, reason: str, now: datetime, next_try_at: datetime | None = None
) -> None:
    """Record the result of an attempt. Changes nothing if another process leased the message after this lease
    expired."""
    table = notification_messages
    values: ColumnValues = {"status": status, "status_reason": reason, "updated_at": now}
    if next_try_at is not None:
        values["next_try_at"] = next_try_at
    leased_row = (table.c.id == leased.id, table.c.attempts == leased.attempts, table.c.status == "pending")
    await tx.execute(update(table).where(*leased_row).values(**values))


async def next_due(tx: Tx, methods: Collection[str]) -> datetime | None:
    """Return when the next message of these methods is due."""
    waits = (notification_messages.c.status == "pending", notification_messages.c.method.in_(methods))
    statement = select(func.min(notification_messages.c.next_try_at)).where(*waits)
    row: datetime | None = (await tx.execute(statement)).scalar_one_or_none()
    return row


async def insert_inbox(tx: Tx, row: MessageRow) -> None:
    """Insert the message into its reader's inbox and delete the oldest entries; a second delivery changes nothing."""
    payload = row.payload
    statement = insert(inbox_notifications).values(
        id=row.id,
        user_id=row.user_id,
        template_id=row.template_id,
        targets=list(row.targets),
        title=payload["title"],
        content=payload["body"],
        icon=payload["icon"],
        actions=payload["actions"],
        created_at=row.created_at,
    )
    await lock_objects(tx, "inbox", row.user_id)  # two replicas may deliver concurrently
    await tx.execute(statement.on_conflict_do_nothing())
    own = inbox_notifications.c.user_id == row.user_id
    newest = select(inbox_notifications.c.created_at).where(own).order_by(inbox_notifications.c.created_at.desc())
    last = newest.offset(MAX_INBOX_MESSAGES - 1).limit(1).scalar_subquery()
    await tx.execute(delete(inbox_notifications).where(own, inbox_notifications.c.created_at < last))


# ---- preferences and methods


async def list_preferences(tx: Tx, user_id: UUID) -> list[Preference]:
    table = notification_preferences
    statement = select(table.c.template_id, table.c.disabled, table.c.updated_at).where(table.c.user_id == user_id)
    return [Preference(*row) for row in await tx.execute(statement.order_by(table.c.updated_at, table.c.template_id))]


async def put_preferences(tx: Tx, user_id: UUID, disabled: Mapping[UUID, bool], now: datetime) -> None:
    for template_id, value in disabled.items():
        statement = insert(notification_preferences).values(
            user_id=user_id, template_id=template_id, disabled=value, updated_at=now
        )
        await tx.execute(
            statement.on_conflict_do_update(
                index_elements=["user_id", "template_id"], set_={"disabled": value, "updated_at": now}
            )
        )


async def get_preference(tx: Tx, user_id: UUID, template_id: UUID) -> bool | None:
    """Return whether the user disabled it; None without a preference."""
    table = notification_preferences
    statement = select(table.c.disabled).where(table.c.user_id == user_id, table.c.template_id == template_id)
    return (await tx.execute(statement)).scalar_one_or_none()


async def list_methods(tx: Tx) -> dict[UUID, str]:
    """Return the templates with a method of their own."""
    statement = select(notification_methods.c.template_id, notification_methods.c.method)
    return {row[0]: row[1] for row in await tx.execute(statement)}


async def put_method(tx: Tx, template_id: UUID, method: str) -> bool:
    """Set a template's method; empty restores the deployment's. False when unchanged."""
    if (await list_methods(tx)).get(template_id, "") == method:
        return False
    if not method:
        await tx.execute(delete(notification_methods).where(notification_methods.c.template_id == template_id))
        return True
    statement = insert(notification_methods).values(template_id=template_id, method=method)
    await tx.execute(statement.on_conflict_do_update(index_elements=["template_id"], set_={"method": method}))
    return True


async def list_admins(tx: Tx, roles: Collection[str], organization_id: UUID | None = None) -> list[UUID]:
    """Return active users with one of the site roles, or one of the roles in the organization
    (`organization-<role>`)."""
    chosen: ColumnElement[bool] = users.c.rbac_roles.op("&&")(list(roles))
    if organization_id is not None:
        inside = select(organization_members.c.user_id).where(
            organization_members.c.organization_id == organization_id,
            organization_members.c.roles.op("&&")([f"organization-{role}" for role in roles] + ["organization-admin"]),
        )
        chosen = or_(chosen, users.c.id.in_(inside))
    statement = select(users.c.id).where(chosen, ~users.c.deleted, ~users.c.is_system, users.c.status != "suspended")
    return list((await tx.execute(statement.order_by(users.c.id))).scalars())
