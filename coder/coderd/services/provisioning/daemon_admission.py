"""Letting a daemon in: by key, by pre-shared key, as a user; and registering it.

Reference: docs/protocol/rpc.md#daemons.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, Unauthenticated
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.access.authentication import Caller, authenticate, recognize, subject_of
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.provisioner_keys import find_key, secret_digest
from coder.coderd.services.provisioning.provisioners import MAX_DAEMON_NAME
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people.organizations import OrganizationRow
from coder.coderd.store.provisioning import provisioners as store
from coder.coderd.store.provisioning.provisioners import DaemonRow
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import ALL, Resource, Subject, decide
from coder.domain.provisioning.provisioners import PSK_KEY, RESERVED_KEYS, STALE_AFTER, USER_AUTH_KEY
from coder.domain.provisioning.queue import Offer
from coder.domain.provisioning.tags import NIL_OWNER, SCOPE, SCOPE_USER, normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


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
    organization_id = as_id(reference)
    if organization_id is None:
        return await organization_store.get_organization_by_name(tx, reference)
    return await organization_store.get_organization(tx, organization_id)


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
    same = hmac.compare_digest(secret_digest(application.psk), secret_digest(expected))
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
    _check_user(caller.subject, application.organization_id, tags)
    return DaemonAdmission(tags, USER_AUTH_KEY, caller.user.id, caller)


def _check_user(subject: Subject, organization_id: UUID, tags: Mapping[str, str]) -> None:
    if tags[SCOPE] == SCOPE_USER:
        # Its jobs carry their owner's session token and keys: more than a narrow key may reach.
        if subject.scope is not ALL:
            raise _NotAdmitted("the key is limited by its scopes; use one without limits")
        if organization_id not in subject.organization_roles:
            raise _NotAdmitted("the user is no member of the organization")
    elif not decide(subject, "create", Resource("provisioner_daemon", organization_id=organization_id)):
        raise _NotAdmitted("the role of the user does not allow it; scope=user is allowed to everybody")


async def ask_again(ctx: Context, organization_id: UUID, admission: DaemonAdmission) -> None:
    """Whether what let the daemon in would do so now. Raises Forbidden; Unauthenticated when its session has ended."""
    try:
        if admission.caller is not None:
            key, user = await recognize(ctx, admission.caller.credentials)
            # Roles for the whole site say nothing of that; while one has a key, it is not deleted.
            if await ctx.db.read(organization_store.get_organization, organization_id) is None:
                raise _NotAdmitted("the organization was deleted")
            _check_user(subject_of(ctx, user, key), organization_id, admission.tags)
        elif admission.key_id not in RESERVED_KEYS and not await ctx.db.read(store.has_key, admission.key_id):
            raise _NotAdmitted("the provisioner key was deleted")
    except _NotAdmitted as refusal:
        raise Forbidden("The provisioner is no longer allowed to run.", refusal.reason) from None


async def register(
    ctx: Context, organization_id: UUID, admission: DaemonAdmission, introduction: Introduction
) -> Worker:
    """Writes down that the daemon is here; one of the same name, owner, key and user is the same daemon.

    One that comes with the name of another key's or user's daemon is given a name of its own. Raises Conflict for a
    user with too many of them.
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
    link = new_uuid()
    row = await ctx.db.run(_put, daemon, link)
    # The same name again for whoever comes back, so that it finds the job it had.
    ending = hashlib.sha256(f"{admission.key_id} {admission.user_id}".encode()).hexdigest()[:8]
    while row is None:
        other = f"{name[: MAX_DAEMON_NAME - 9]}-{ending}"
        row = await ctx.db.run(_put, replace(daemon, name=other), link)
        ending = secrets.token_hex(4)
    offer = Offer(row.organization_id, frozenset(row.provisioners), row.tags)
    return Worker(row.id, row.name, offer, admission.user_id, link)


async def _put(tx: Tx, daemon: DaemonRow, link: UUID) -> DaemonRow | None:
    if daemon.user_id is None:
        return await store.upsert_daemon(tx, daemon, link)
    async with within_limit(tx, "provisioners", daemon.user_id, daemon.created_at):
        return await store.upsert_daemon(tx, daemon, link)


class Presence:
    """What one link writes down of its daemon being there. The same daemon may have come back over another link."""

    def __init__(self, ctx: Context, worker: Worker) -> None:
        self._ctx = ctx
        self._worker = worker

    async def keep(self) -> None:
        """One heartbeat: the daemon is still connected."""
        await self._ctx.db.run(store.touch_daemon, self._worker.id, self._worker.link, self._ctx.clock.now())

    async def end(self) -> None:
        """The link has ended: the daemon is offline at once, not when its last heartbeat has grown old."""
        stale = self._ctx.clock.now() - STALE_AFTER - timedelta(seconds=1)
        await self._ctx.db.run(store.leave_daemon, self._worker.id, self._worker.link, stale)
