"""Provisioner keys: created with a secret that is shown once, listed with their daemons, deleted."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, NotFound, Unauthenticated
from coder.api.provisioning.provisioner_keys import CreateProvisionerKeyRequest, ProvisionerKey, ProvisionerKeyDaemons
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import require_lasting
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.services.provisioning.job_lists import lists_daemon
from coder.coderd.services.provisioning.provisioners import (
    NO_TIME,
    DaemonFilter,
    load_daemons,
)
from coder.coderd.store.provisioning import provisioners as store
from coder.coderd.store.provisioning import system_provisioners
from coder.coderd.store.provisioning.provisioners import ProvisionerKeyRow
from coder.domain.access.policy import Class, Object, Subject, key_allows
from coder.domain.provisioning.provisioners import RESERVED_KEYS, is_reserved_key

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_KEY_LENGTH = 43


def secret_digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def find_key(ctx: Context, secret: str) -> ProvisionerKeyRow | None:
    """Return the provisioner key with this secret."""
    if len(secret) != _KEY_LENGTH:
        return None
    return await ctx.db.read(store.get_key_by_secret, secret_digest(secret))


async def create_key(ctx: Context, subject: Subject, organization_id: UUID, body: CreateProvisionerKeyRequest) -> str:
    """Create a key and return its secret, which is not stored.

    Raises Invalid (bad or reserved name, bad tags), Conflict (name taken).
    """
    await require_lasting(
        ctx, subject, "create", Class("provisioner_daemon", organization_id=organization_id), "provisioner_key"
    )
    check_request(body)
    secret = secrets.token_urlsafe(32)
    row = ProvisionerKeyRow(
        id=new_uuid(),
        created_at=ctx.clock.now(),
        organization_id=organization_id,
        name=body.name,
        tags={key: value for key, value in (body.tags or {}).items() if value},
        hashed_secret=secret_digest(secret),
    )

    async def write(tx: Tx) -> None:
        await hold_organization(tx, organization_id)
        await store.insert_key(tx, row)

    taken = Conflict(f"Provisioner key with name '{body.name}' already exists in organization")
    with constraint_refusals({"ix_provisioner_keys_organization_id_name": taken}):
        await ctx.db.run(write)
    return secret


async def list_keys(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerKey]:
    """Return the keys of an organization, oldest first."""
    require(subject, "read", _keys_of(organization_id))
    return [present_key(row) for row in await _list_readable(ctx, subject, organization_id)]


def _keys_of(organization_id: UUID) -> Class:
    """Return the class of an organization's keys, for callers that narrow to single keys."""
    return Class("provisioner_daemon", organization_id=organization_id, narrowed=True)


def _key_object(row: ProvisionerKeyRow) -> Object:
    return Object("provisioner_daemon", str(row.id), organization_id=row.organization_id)


async def _list_readable(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerKeyRow]:
    rows = await ctx.db.read(store.list_keys, organization_id)
    return [row for row in rows if may(subject, "read", _key_object(row))]


async def list_key_daemons(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerKeyDaemons]:
    """Return every key with its connected daemons, the three reserved keys first."""
    require(subject, "read", _keys_of(organization_id))
    now = ctx.clock.now()
    loaded = await ctx.db.read(load_daemons, organization_id, DaemonFilter(), now)
    daemons = [daemon for daemon in loaded if lists_daemon(subject, daemon.id)]
    reserved = [
        ProvisionerKey(id=key_id, created_at=NO_TIME, organization=str(organization_id), name=name, tags={})
        for key_id, name in RESERVED_KEYS.items()
        if key_allows(subject, "read", Object("provisioner_daemon", str(key_id)))
    ]
    own = [present_key(row) for row in await _list_readable(ctx, subject, organization_id)]
    return [
        ProvisionerKeyDaemons(key=key, daemons=[daemon for daemon in daemons if daemon.key_id == str(key.id)])
        for key in (*reserved, *own)
    ]


async def delete_key(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> None:
    """Delete a key, which disconnects its daemons. Raises NotFound, Invalid (reserved)."""
    require(subject, "delete", _keys_of(organization_id))
    if is_reserved_key(name):
        raise Invalid("Cannot delete reserved provisioner key")
    await ctx.db.run(_delete_key, subject, organization_id, name)


async def _delete_key(tx: Tx, subject: Subject, organization_id: UUID, name: str) -> None:
    key = await system_provisioners.get_key_by_name(tx, organization_id, name)
    if key is None:
        raise NotFound
    require(subject, "delete", _key_object(key))
    await store.delete_key(tx, key.id)


async def show_own_key(ctx: Context, secret: str) -> ProvisionerKey:
    """Return the key of a daemon that presents its secret. Raises Unauthenticated."""
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
