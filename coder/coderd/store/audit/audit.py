"""Queries on the audit log, and on the states of objects it compares.

`TRACKED` lists the relevant columns per kind of object; the others (times of the row, sizes) change without meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Text, case, func, insert, literal, or_, select

from coder.base.json_types import Json, JsonObject
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import ColumnValue, Query, SqlColumn, SqlFrom, SqlTable
from coder.coderd.store.tables.agents import workspace_agent_tokens
from coder.coderd.store.tables.audit import audit_logs
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.oauth2 import oauth2_provider_app_secrets, oauth2_provider_apps
from coder.coderd.store.tables.people import (
    api_keys,
    custom_roles,
    git_ssh_keys,
    group_members,
    groups,
    organization_members,
    organizations,
    users,
)
from coder.coderd.store.tables.provisioners import provisioner_keys
from coder.coderd.store.tables.proxies import workspace_proxies
from coder.coderd.store.tables.rollouts import template_rollouts
from coder.coderd.store.tables.tasks import tasks
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.user_secrets import user_secrets
from coder.coderd.store.tables.user_skills import user_skills
from coder.coderd.store.tables.workspaces import workspace_port_shares, workspaces

if TYPE_CHECKING:
    from coder.api.audit.audit import AuditAction, ResourceType
    from coder.api.base.enums import WorkspaceTransition
    from coder.coderd.store.engine.database import Tx

COUNT_CAP = 2000
"""Maximum count: users do not page further, and counting on would only cost."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """Audit entry. Users and organizations it names may be deleted."""

    id: UUID
    time: datetime
    user_id: UUID | None
    organization_id: UUID | None
    ip: str
    user_agent: str
    resource_type: ResourceType
    resource_id: UUID
    resource_target: str
    resource_icon: str
    action: AuditAction
    diff: JsonObject
    status_code: int
    additional_fields: JsonObject
    request_id: UUID


@dataclass(frozen=True, slots=True)
class EntryView:
    """Entry with its organization, for callers that may see it."""

    entry: EntryRow
    organization_name: str | None
    organization_display_name: str | None
    organization_icon: str | None


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filter of entries; None or empty means any."""

    resource_type: str = ""
    resource_id: UUID | None = None
    resource_target: str = ""
    action: str = ""
    username: str = ""
    email: str = ""
    date_from: datetime | None = None
    date_to: datetime | None = None
    build_reason: str = ""
    request_id: UUID | None = None
    organization_id: UUID | None = None
    organizations: Sequence[UUID] | None = None
    """Organizations whose entries the caller may read; None means all."""


async def insert_entry(tx: Tx, row: EntryRow) -> None:
    await tx.execute(insert(audit_logs).values(**column_values(row)))


async def list_entries(tx: Tx, which: EntryFilter, *, limit: int, offset: int) -> list[EntryView]:
    """Return entries, newest first. `limit` 0 is all."""
    columns = [audit_logs.c[field.name] for field in fields(EntryRow)]
    statement = (
        select(*columns, organizations.c.name, organizations.c.display_name, organizations.c.icon)
        .select_from(audit_logs.outerjoin(organizations, organizations.c.id == audit_logs.c.organization_id))
        .where(*_conditions(which))
        .order_by(audit_logs.c.time.desc(), audit_logs.c.id)
        .offset(offset)
    )
    if limit:
        statement = statement.limit(limit)
    count = len(columns)
    return [EntryView(EntryRow(*row[:count]), *row[count:]) for row in await tx.execute(statement)]


async def count_entries(tx: Tx, which: EntryFilter) -> int:
    """Return their number, at most `COUNT_CAP`."""
    result = select(audit_logs.c.id).where(*_conditions(which)).limit(COUNT_CAP).subquery()
    return int((await tx.execute(select(func.count()).select_from(result))).scalar_one())


def _conditions(which: EntryFilter) -> list[ColumnElement[bool]]:
    log = audit_logs.c
    candidates: list[tuple[str | UUID | datetime | None, Callable[[], ColumnElement[bool]]]] = [
        (which.resource_type, lambda: log.resource_type == which.resource_type),
        (which.resource_id, lambda: log.resource_id == which.resource_id),
        (which.resource_target, lambda: log.resource_target == which.resource_target),
        (which.action, lambda: log.action == which.action),
        (which.date_from, lambda: log.time >= which.date_from),
        (which.date_to, lambda: log.time <= which.date_to),
        (which.request_id, lambda: log.request_id == which.request_id),
        (which.organization_id, lambda: log.organization_id == which.organization_id),
        (which.build_reason, lambda: log.additional_fields["build_reason"].astext == which.build_reason),
        (which.username, lambda: _by_user(func.lower(users.c.username) == func.lower(which.username))),
        (which.email, lambda: _by_user(func.lower(users.c.email) == func.lower(which.email))),
    ]
    results = [make() for value, make in candidates if value]
    if which.organizations is not None:
        results.append(log.organization_id.in_(list(which.organizations)))
    return results


def _by_user(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return audit_logs.c.user_id.in_(select(users.c.id).where(condition))


# ---- objects


@dataclass(frozen=True, slots=True)
class Tracked:
    """Query for the state of one kind of object."""

    table: SqlTable
    columns: tuple[str, ...]
    target: SqlColumn
    secret: tuple[str, ...] = ()
    id: SqlColumn | None = None
    organization: SqlColumn | None = None
    icon: SqlColumn | None = None
    owner: SqlColumn | None = None
    """Name of the owning user, for links."""
    joined: SqlFrom | None = None
    extra: tuple[SqlColumn, ...] = ()
    """Computed fields, labelled."""


_GROUP_MEMBERS = (
    select(func.coalesce(func.jsonb_agg(group_members.c.user_id), literal([], type_=audit_logs.c.diff.type)))
    .where(group_members.c.group_id == groups.c.id)
    .scalar_subquery()
    .label("members")
)

_TOKEN_GENERATIONS = (
    select(
        func.jsonb_object_agg(
            func.concat(workspace_agent_tokens.c.agent_name, " ", workspace_agent_tokens.c.generation),
            case((workspace_agent_tokens.c.used_at.is_not(None), "used"), else_="waiting"),
        )
    )
    .where(workspace_agent_tokens.c.workspace_id == workspaces.c.id)
    .scalar_subquery()
    .label("agent_tokens")
)
"""Rotated generations, never the tokens themselves."""

_PROVISIONER_KEYS = (
    select(func.coalesce(func.jsonb_agg(provisioner_keys.c.name), literal([], type_=audit_logs.c.diff.type)))
    .where(provisioner_keys.c.organization_id == organizations.c.id)
    .scalar_subquery()
    .label("provisioner_keys")
)
"""Provisioner keys have no kind of their own: a key that lets a machine take an organization's jobs is a change of the
organization."""

_MOMENT = 'YYYY-MM-DD"T"HH24:MI:SS"Z"'
_PORT_SHARES = (
    select(
        func.jsonb_object_agg(
            func.concat(workspace_port_shares.c.agent_name, " ", workspace_port_shares.c.port),
            func.concat(
                workspace_port_shares.c.share_level,
                " ",
                workspace_port_shares.c.protocol,
                literal(" until ", Text)  # empty when there is no end
                + func.to_char(func.timezone("UTC", workspace_port_shares.c.expires_at), _MOMENT, type_=Text),
            ),
        )
    )
    .where(workspace_port_shares.c.workspace_id == workspaces.c.id)
    .scalar_subquery()
    .label("port_shares")
)

_ROLLOUT = (
    select(
        func.concat(
            template_versions.c.name, ": ", template_rollouts.c.status, " at ", template_rollouts.c.percent, " percent"
        )
    )
    .select_from(template_rollouts)
    .join(template_versions, template_versions.c.id == template_rollouts.c.template_version_id)
    .where(template_rollouts.c.template_id == templates.c.id)
    .order_by(template_rollouts.c.created_at.desc())
    .limit(1)
    .correlate(templates)
    .scalar_subquery()
    .label("rollout")
)
"""The latest rollout, which has no kind of its own: it changes the template."""

TRACKED: dict[str, Tracked] = {
    "user": Tracked(
        users,
        ("id", "email", "username", "name", "hashed_password", "status", "rbac_roles", "login_type", "deleted",
         "quiet_hours_schedule", "github_com_user_id", "one_time_passcode_hash", "is_service_account"),
        users.c.username,
        ("hashed_password", "one_time_passcode_hash"),
    ),
    "git_ssh_key": Tracked(
        git_ssh_keys, ("user_id", "private_key", "public_key"), git_ssh_keys.c.public_key, ("private_key",),
        id=git_ssh_keys.c.user_id,
    ),
    "api_key": Tracked(
        api_keys, ("user_id", "expires_at", "login_type", "lifetime_seconds", "token_name", "scopes", "allow_list"),
        func.coalesce(func.nullif(api_keys.c.token_name, ""), api_keys.c.id),  # sessions have an id instead of a name
    ),
    "organization_member": Tracked(
        organization_members, ("user_id", "roles"), users.c.username, id=organization_members.c.user_id,
        organization=organization_members.c.organization_id,
        joined=organization_members.join(users, users.c.id == organization_members.c.user_id),
        extra=(users.c.username.label("username"),),
    ),
    "organization": Tracked(
        organizations, ("name", "display_name", "description", "icon", "deleted", "is_default", "workspace_sharing"),
        organizations.c.name, organization=organizations.c.id, icon=organizations.c.icon, extra=(_PROVISIONER_KEYS,),
    ),
    "group": Tracked(
        groups, ("id", "name", "display_name", "avatar_url", "quota_allowance"), groups.c.name,
        organization=groups.c.organization_id, extra=(_GROUP_MEMBERS,),
    ),
    "custom_role": Tracked(
        custom_roles, ("name", "display_name", "permissions"), custom_roles.c.name, id=custom_roles.c.name,
        organization=custom_roles.c.organization_id,
    ),
    "template": Tracked(
        templates,
        ("id", "name", "display_name", "provisioner", "active_version_id", "description", "icon", "deleted",
         "deprecated", "default_ttl_ms", "activity_bump_ms", "autostop_days", "autostop_weeks", "autostart_days",
         "allow_user_cancel_workspace_jobs", "allow_user_autostart", "allow_user_autostop", "failure_ttl_ms",
         "time_til_dormant_ms", "time_til_dormant_autodelete_ms", "require_active_version", "max_port_share_level",
         "cors_behavior", "use_classic_parameter_flow", "created_by", "user_acl", "group_acl", "full_build_tokens"),
        templates.c.name, organization=templates.c.organization_id, icon=templates.c.icon, extra=(_ROLLOUT,),
    ),
    "template_version": Tracked(
        template_versions, ("id", "template_id", "name", "message", "readme", "created_by", "archived"),
        template_versions.c.name, organization=template_versions.c.organization_id,
    ),
    "workspace": Tracked(
        workspaces,
        ("id", "owner_id", "template_id", "name", "deleted", "autostart_schedule", "ttl_ms", "dormant_at",
         "deleting_at", "automatic_updates", "favorite", "next_start_at", "user_acl", "group_acl"),
        workspaces.c.name, organization=workspaces.c.organization_id, owner=users.c.username,
        joined=workspaces.join(users, users.c.id == workspaces.c.owner_id), extra=(_TOKEN_GENERATIONS, _PORT_SHARES),
    ),
    "task": Tracked(
        tasks,
        ("id", "organization_id", "owner_id", "name", "display_name", "workspace_id", "template_version_id", "prompt",
         "deleted_at"),
        tasks.c.name, organization=tasks.c.organization_id, owner=users.c.username,
        joined=tasks.join(users, users.c.id == tasks.c.owner_id),
    ),
    "user_secret": Tracked(
        user_secrets, ("id", "user_id", "name", "description", "env_name", "file_path", "enabled", "value"),
        user_secrets.c.name, ("value",),
    ),
    "user_skill": Tracked(
        user_skills, ("id", "user_id", "name", "description", "content"), user_skills.c.name,
    ),
}  # fmt: skip


def _workspace_of_build() -> Select[tuple[str]]:
    return select(workspaces.c.name).join(workspace_builds, workspace_builds.c.workspace_id == workspaces.c.id)


NAMED: dict[str, tuple[Select[tuple[str]], tuple[ColumnElement[UUID], ...]]] = {
    "oauth2_provider_app": (select(oauth2_provider_apps.c.name), (oauth2_provider_apps.c.id,)),
    "oauth2_provider_app_secret": (
        select(oauth2_provider_app_secrets.c.display_secret),
        (oauth2_provider_app_secrets.c.id,),
    ),
    "workspace_build": (_workspace_of_build(), (workspace_builds.c.id, workspace_builds.c.job_id)),
    "workspace_proxy": (select(workspace_proxies.c.name), (workspace_proxies.c.id,)),
}
"""Kinds whose entries only name the object: the query for the name, and the columns of its key."""


async def find_name(tx: Tx, kind: str, key: UUID) -> str:
    """Return the name; empty when there is none."""
    names, ids = NAMED[kind]
    statement = names.where(or_(*(column == key for column in ids))).limit(1)
    return str((await tx.execute(statement)).scalar_one_or_none() or "")


@dataclass(frozen=True, slots=True)
class AuditSnapshot:
    """State of an object at one moment."""

    id: UUID | None
    """Id; None for objects without a UUID."""
    target: str
    organization_id: UUID | None
    icon: str
    owner: str
    state: JsonObject


async def take_snapshot(
    tx: Tx, kind: str, key: ColumnValue, organization_id: UUID | None = None
) -> AuditSnapshot | None:
    """Return the object by its key; None when there is none."""
    how = TRACKED[kind]
    identity = how.table.c.id if how.id is None else how.id
    empty = literal(None)
    columns = [how.table.c[name] for name in how.columns]
    parts = [identity, how.target, how.organization, how.icon, how.owner]
    statement: Query = select(*(part if part is not None else empty for part in parts), *columns, *how.extra)
    statement = statement.select_from(how.joined if how.joined is not None else how.table).where(identity == key)
    if organization_id is not None and how.organization is not None:
        statement = statement.where(how.organization == organization_id)
    row = (await tx.execute(statement)).first()
    if row is None:
        return None
    names = [*how.columns, *(str(column.key) for column in how.extra)]
    state = {name: _plain(value) for name, value in zip(names, row[len(parts) :], strict=True)}
    object_id = row[0] if isinstance(row[0], UUID) else None
    return AuditSnapshot(object_id, row[1] or "", row[2], row[3] or "", row[4] or "", state)


def _plain(value: Json | UUID | datetime | date | bytes) -> Json:
    """Convert a value to JSON types."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """Facts about a build in an entry."""

    workspace_id: UUID
    workspace_name: str
    owner_id: UUID
    owner_name: str
    organization_id: UUID
    build_number: int
    reason: str
    transition: WorkspaceTransition
    initiator_id: UUID
    build_id: UUID
    template_id: UUID
    template_version_id: UUID


async def get_build_facts(tx: Tx, job_id: UUID) -> BuildFacts | None:
    statement: Query = (
        select(
            workspaces.c.id,
            workspaces.c.name,
            workspaces.c.owner_id,
            users.c.username,
            workspaces.c.organization_id,
            workspace_builds.c.build_number,
            workspace_builds.c.reason,
            workspace_builds.c.transition,
            workspace_builds.c.initiator_id,
            workspace_builds.c.id,
            workspaces.c.template_id,
            workspace_builds.c.template_version_id,
        )
        .select_from(workspace_builds)
        .join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id)
        .join(users, users.c.id == workspaces.c.owner_id)
        .where(workspace_builds.c.job_id == job_id)
    )
    row = (await tx.execute(statement)).one_or_none()
    return BuildFacts(*row) if row else None


_EXISTENCE: dict[str, tuple[SqlTable, str]] = {
    "user": (users, "deleted"),
    "template": (templates, "deleted"),
    "workspace": (workspaces, "deleted"),
    "organization": (organizations, "deleted"),
    "group": (groups, ""),
    "template_version": (template_versions, ""),
    "task": (tasks, "deleted_at"),
}


async def list_missing(tx: Tx, kind: str, ids: Sequence[UUID]) -> set[UUID]:
    """Return the ids of deleted objects."""
    if kind not in _EXISTENCE or not ids:
        return set()
    table, flag = _EXISTENCE[kind]
    statement = select(table.c.id).where(table.c.id.in_(list(ids)))
    if flag:
        deleted = table.c[flag].is_not(None) if flag.endswith("_at") else table.c[flag]
        statement = statement.where(~deleted)
    return set(ids) - set((await tx.execute(statement)).scalars())


async def find_user_id(tx: Tx, reference: str) -> UUID | None:
    """Return a living user by name or e-mail."""
    text = func.lower(reference)
    statement = select(users.c.id).where(
        or_(func.lower(users.c.username) == text, func.lower(users.c.email) == text), ~users.c.deleted
    )
    row: UUID | None = (await tx.execute(statement)).scalar_one_or_none()
    return row
