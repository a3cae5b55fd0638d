"""Provisioner daemons: who may be one, registering them, listing them, and their keys.

Reference: docs/protocol/rpc.md#daemons. Everything a self-hoster needs is offered without a
licence. What a daemon does once it is in is `job_work.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.provisioning.provisioner_keys import ProvisionerKey, ProvisionerKeyDaemons
from coder.api.provisioning.provisioners import ProvisionerDaemon, ProvisionerDaemonJob
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.access.authentication import Caller, authenticate
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.credentials import Credentials
from coder.coderd.services.foundation.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidFields,
    NotFound,
    Unauthenticated,
)
from coder.coderd.services.provisioning.job_lists import require_queue
from coder.coderd.services.provisioning.job_work import Worker
from coder.coderd.store.engine.errors import IntegrityError
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people.organizations import OrganizationRow
from coder.coderd.store.provisioning import provisioners as store
from coder.coderd.store.provisioning.provisioners import DaemonJob, DaemonRow, ProvisionerKeyRow
from coder.domain.access.policy import ALL, Resource, Subject, decide
from coder.domain.provisioning.provisioners import PSK_KEY, RESERVED_KEYS, USER_AUTH_KEY, daemon_status, is_stale
from coder.domain.provisioning.queue import Offer
from coder.domain.provisioning.tags import NIL_OWNER, SCOPE, SCOPE_USER, find_tag_fault, normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

KEY_DELETED = "provisioner_key_deleted"
"""NOTIFY channel: the id of a key whose daemons must leave."""
MAX_DAEMON_NAME = 64
_KEY_LENGTH = 43
_LIST_LIMIT = 50
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_KEY_NAME = re.compile(r"[a-zA-Z0-9]+(?:[-_][a-zA-Z0-9]+)*")


@dataclass(frozen=True, slots=True)
class DaemonApplication:
    """What a daemon shows and asks for when it knocks."""

    organization_id: UUID
    is_default_organization: bool
    key: str
    psk: str
    credentials: Credentials
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DaemonAdmission:
    """What it may be."""

    tags: dict[str, str]
    key_id: UUID
    user_id: UUID | None = None
    caller: Caller | None = None
    "Who was let in by a session: the link ends with it."


@dataclass(frozen=True, slots=True)
class Introduction:
    """How it describes itself."""

    name: str
    provisioners: Sequence[str]
    version: str
    api_version: str


async def find_organization(ctx: Context, reference: str) -> OrganizationRow | None:
    """By id, by name, or the literal `default`; for daemons, who are asked who they are later."""
    return await ctx.db.read(_find_organization, reference)


async def _find_organization(tx: Tx, reference: str) -> OrganizationRow | None:
    if reference == "default":
        return await organization_store.get_default_organization(tx)
    try:
        return await organization_store.get_organization(tx, UUID(reference))
    except ValueError:
        return await organization_store.get_organization_by_name(tx, reference)


async def admit(ctx: Context, application: DaemonApplication) -> DaemonAdmission:
    """Decides who knocks and with which tags it may run. Raises Forbidden."""
    asked = normalize_tags(NIL_OWNER, application.tags)
    try:
        if application.key and not application.psk:
            return await _admit_key(ctx, application)
        if application.psk and not application.key:
            return _admit_psk(ctx, application)
        if application.credentials.token and not application.key:
            return await _admit_user(ctx, application)
        raise _NotAdmitted("give exactly one of a session token, a provisioner key and a pre-shared key")
    except _NotAdmitted as refusal:
        text = f'You aren\'t allowed to create provisioner daemons with scope "{asked[SCOPE]}"'
        raise Forbidden(text, refusal.reason) from None


class _NotAdmitted(Exception):  # noqa: N818 - an answer inside this module
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def _admit_key(ctx: Context, application: DaemonApplication) -> DaemonAdmission:
    if application.credentials.token:
        raise _NotAdmitted("a session token and a provisioner key were given, but only one is allowed")
    if application.tags:
        raise _NotAdmitted("tags are not allowed when using a provisioner key")
    key = await find_key(ctx, application.key)
    if key is None:
        raise _NotAdmitted("provisioner daemon key invalid")
    if key.organization_id != application.organization_id:
        raise _NotAdmitted("the provisioner key belongs to another organization")
    return DaemonAdmission(normalize_tags(NIL_OWNER, key.tags), key.id)


def _admit_psk(ctx: Context, application: DaemonApplication) -> DaemonAdmission:
    expected = ctx.config.provisioner_daemon_psk.reveal()
    # Hashes of equal length: the comparison tells nothing about the secret's own.
    same = hmac.compare_digest(_digest(application.psk), _digest(expected))
    if not expected or not same:
        raise _NotAdmitted("provisioner daemon psk invalid")
    if not application.is_default_organization:
        raise _NotAdmitted("a pre-shared key is good for the default organization only")
    return DaemonAdmission(normalize_tags(NIL_OWNER, application.tags), PSK_KEY)


async def _admit_user(ctx: Context, application: DaemonApplication) -> DaemonAdmission:
    try:
        caller = await authenticate(ctx, application.credentials)
    except Unauthenticated as error:
        raise _NotAdmitted(error.detail or error.message) from error
    tags = normalize_tags(str(caller.user.id), application.tags)
    create = Resource("provisioner_daemon", organization_id=application.organization_id)
    if tags[SCOPE] == SCOPE_USER:
        # Its jobs carry their owner's session token and keys: more than a narrow key may reach.
        if caller.subject.scope is not ALL:
            raise _NotAdmitted("the key is limited by its scopes; use one without limits")
        if application.organization_id not in caller.subject.organization_roles:
            raise _NotAdmitted("the user is no member of the organization")
    elif not decide(caller.subject, "create", create):
        raise _NotAdmitted("the role of the user does not allow it; scope=user is allowed to everybody")
    return DaemonAdmission(tags, USER_AUTH_KEY, caller.user.id, caller)


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises InvalidFields when the database could not hold them."""
    fault = find_tag_fault(tags.items())
    if fault is not None:
        raise InvalidFields(
            ("tags", f"tag {fault[0]!r}: {fault[1]}"), message="Given tags are not acceptable to the service"
        )


async def register(
    ctx: Context, organization_id: UUID, admission: DaemonAdmission, introduction: Introduction
) -> Worker:
    """Writes down that the daemon is here; one of the same name, owner, key and user is the same daemon.

    One that comes with the name of another key's or user's daemon is given a name of its own.
    """
    now = ctx.clock.now()
    name = introduction.name.replace("\x00", "")[:MAX_DAEMON_NAME] or random_name("_")
    daemon = DaemonRow(
        id=new_uuid(),
        organization_id=organization_id,
        key_id=admission.key_id,
        created_at=now,
        last_seen_at=now,
        name=name,
        version=introduction.version,
        api_version=introduction.api_version,
        provisioners=sorted(set(introduction.provisioners)),
        tags=admission.tags,
        user_id=admission.user_id,
    )
    row = await ctx.db.run(store.upsert_daemon, daemon)
    # The same name again for whoever comes back, so that it finds the job it had.
    ending = hashlib.sha256(f"{admission.key_id} {admission.user_id}".encode()).hexdigest()[:8]
    while row is None:
        other = f"{name[: MAX_DAEMON_NAME - 9]}-{ending}"
        row = await ctx.db.run(store.upsert_daemon, replace(daemon, name=other))
        ending = secrets.token_hex(4)
    offer = Offer(row.organization_id, frozenset(row.provisioners), row.tags)
    return Worker(row.id, row.name, offer, admission.user_id)


async def keep_seen(ctx: Context, worker: Worker) -> None:
    """One heartbeat: the daemon is still connected."""
    await ctx.db.run(store.touch_daemon, worker.id, ctx.clock.now())


# ---- lists


@dataclass(frozen=True, slots=True)
class DaemonFilter:
    """Which daemons to list. Offline ones are left out unless asked for in one of three ways."""

    limit: int = _LIST_LIMIT
    ids: Collection[UUID] = ()
    tags: Mapping[str, str] | None = None
    offline: bool = False
    statuses: Collection[str] = ()
    max_age: timedelta | None = None


async def list_daemons(
    ctx: Context, subject: Subject, organization_id: UUID, which: DaemonFilter
) -> list[ProvisionerDaemon]:
    """Oldest first. Raises NotFound when the caller may not see them."""
    require_queue(subject, organization_id)
    now = ctx.clock.now()
    daemons = await ctx.db.read(_load_daemons, organization_id, which, now)
    return daemons[: which.limit] if which.limit else daemons


async def _load_daemons(tx: Tx, organization_id: UUID, which: DaemonFilter, now: datetime) -> list[ProvisionerDaemon]:
    rows = await store.list_daemons(tx, organization_id, ids=which.ids, tags=which.tags)
    if which.max_age is not None:
        rows = [row for row in rows if row.last_seen_at is not None and now - row.last_seen_at <= which.max_age]
    shown = await _present_daemons(tx, rows, now)
    if which.statuses:
        return [daemon for daemon in shown if daemon.status in which.statuses]
    if which.offline or which.max_age is not None:
        return shown
    return [daemon for daemon in shown if daemon.status != "offline"]


async def _present_daemons(tx: Tx, rows: Sequence[DaemonRow], now: datetime) -> list[ProvisionerDaemon]:
    jobs = await store.list_daemon_jobs(tx, [row.id for row in rows])
    keys: dict[UUID, str] = RESERVED_KEYS | await store.get_key_names(
        tx, {row.key_id for row in rows} - RESERVED_KEYS.keys()
    )
    return [_present_daemon(row, keys.get(row.key_id), jobs, now) for row in rows]


def _present_daemon(
    row: DaemonRow, key_name: str | None, jobs: Sequence[DaemonJob], now: datetime
) -> ProvisionerDaemon:
    mine = [job for job in jobs if job.worker_id == row.id]
    # A daemon that is gone holds nothing, whatever its unfinished job says.
    here = not is_stale(row.last_seen_at, now)
    current = [job for job in mine if here and job.status in {"running", "canceling"}]
    previous = [job for job in mine if job.status in {"succeeded", "failed", "canceled"}]
    return ProvisionerDaemon(
        id=row.id,
        organization_id=row.organization_id,
        key_id=str(row.key_id),
        created_at=row.created_at,
        last_seen_at=row.last_seen_at or UNSET,
        name=row.name,
        version=row.version,
        api_version=row.api_version,
        provisioners=cast("Any", row.provisioners),
        tags=row.tags,
        key_name=key_name,
        status=daemon_status(row.last_seen_at, busy=bool(current), now=now),
        current_job=_present_daemon_job(current[0]) if current else None,
        previous_job=_present_daemon_job(previous[0]) if previous else None,
    )


def _present_daemon_job(job: DaemonJob) -> ProvisionerDaemonJob:
    return ProvisionerDaemonJob(
        id=job.id,
        status=cast("Any", job.status),
        template_name=job.template_name,
        template_icon=job.template_icon,
        template_display_name=job.template_display_name,
    )


# ---- keys


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def find_key(ctx: Context, secret: str) -> ProvisionerKeyRow | None:
    """The provisioner key with this secret."""
    if len(secret) != _KEY_LENGTH:
        return None
    return await ctx.db.read(store.get_key_by_secret, _digest(secret))


async def create_key(ctx: Context, subject: Subject, organization_id: UUID, name: str, tags: Mapping[str, str]) -> str:
    """Makes a key and returns its secret, which nobody can see again.

    Raises Invalid (bad or reserved name, bad tags), Conflict (name taken).
    """
    require(subject, "create", Resource("provisioner_daemon", organization_id=organization_id))
    if not name:
        raise InvalidFields(("name", "Name is required"), message="Name is required")
    if name.lower() in RESERVED_KEYS.values():
        raise Invalid(f"Name cannot be reserved name '{name}'", validations=[("name", "Name is reserved")])
    if len(name) > MAX_DAEMON_NAME or not _KEY_NAME.fullmatch(name):
        raise InvalidFields(("name", "Must be letters, digits and single dashes or underscores, at most 64."))
    check_tags(tags)
    secret = secrets.token_urlsafe(32)
    row = ProvisionerKeyRow(
        id=new_uuid(),
        created_at=ctx.clock.now(),
        organization_id=organization_id,
        name=name,
        tags={key: value for key, value in tags.items() if value},
        hashed_secret=_digest(secret),
    )
    try:
        await ctx.db.run(store.insert_key, row)
    except IntegrityError as error:
        raise Conflict(f"Provisioner key with name '{name}' already exists in organization") from error
    return secret


async def list_keys(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerKey]:
    """Oldest first."""
    require(subject, "read", Resource("provisioner_daemon", organization_id=organization_id))
    return [present_key(row) for row in await ctx.db.read(store.list_keys, organization_id)]


async def list_key_daemons(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerKeyDaemons]:
    """Every key with its daemons that are here, the three pseudo keys first."""
    require(subject, "read", Resource("provisioner_daemon", organization_id=organization_id))
    now = ctx.clock.now()
    daemons = await ctx.db.read(_load_daemons, organization_id, DaemonFilter(), now)
    reserved = [
        ProvisionerKey(id=key_id, created_at=_NO_TIME, organization=str(organization_id), name=name, tags={})
        for key_id, name in RESERVED_KEYS.items()
    ]
    own = [present_key(row) for row in await ctx.db.read(store.list_keys, organization_id)]
    return [
        ProvisionerKeyDaemons(key=key, daemons=[daemon for daemon in daemons if daemon.key_id == str(key.id)])
        for key in (*reserved, *own)
    ]


async def delete_key(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> None:
    """Deletes a key; its daemons are shown out. Raises NotFound, Invalid (reserved)."""
    require(subject, "delete", Resource("provisioner_daemon", organization_id=organization_id))
    if name.lower() in RESERVED_KEYS.values():
        raise Invalid("Cannot delete reserved provisioner key")
    await ctx.db.run(_delete_key, organization_id, name)


async def _delete_key(tx: Tx, organization_id: UUID, name: str) -> None:
    key = await store.get_key_by_name(tx, organization_id, name)
    if key is None:
        raise NotFound
    await store.delete_key(tx, key.id)
    await notify(tx, KEY_DELETED, str(key.id))


async def show_own_key(ctx: Context, secret: str) -> ProvisionerKey:
    """What a daemon may know of the key it holds. Raises Unauthenticated."""
    if not secret:
        raise Unauthenticated("provisioner daemon key required")
    key = await find_key(ctx, secret)
    if key is None:
        raise Unauthenticated("provisioner daemon key invalid")
    return present_key(key)


def present_key(row: ProvisionerKeyRow) -> ProvisionerKey:
    return ProvisionerKey(
        id=row.id, created_at=row.created_at, organization=str(row.organization_id), name=row.name, tags=row.tags
    )
