"""Admission of provisioner daemons: by key, by pre-shared key, or as a user.

Reference: docs/protocol/rpc.md#daemons. Registration follows in `daemon_registration.py`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, Unauthenticated
from coder.coderd.services.access.authentication import Caller, authenticate, recognize, subject_of
from coder.coderd.services.provisioning.provisioner_keys import find_key, secret_digest
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.people.organizations import OrganizationRow
from coder.coderd.store.provisioning import provisioners as store
from coder.domain.access.build_tokens import NARROWED
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import ALL, Class, Subject, decide
from coder.domain.provisioning.provisioners import PSK_KEY, RESERVED_KEYS, USER_AUTH_KEY
from coder.domain.provisioning.tags import NIL_OWNER, SCOPE, SCOPE_USER, normalize_tags

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class DaemonApplication:
    """Credentials and requested tags of a connecting daemon."""

    organization_id: UUID
    is_default_organization: bool
    key: str
    psk: str
    credentials: Credentials
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DaemonAdmission:
    """Identity and tags of an admitted daemon."""

    tags: dict[str, str]
    key_id: UUID
    user_id: UUID | None = None
    caller: Caller | None = None
    "User whose session admitted the daemon; the link ends with the session."


async def find_organization(ctx: Context, reference: str) -> OrganizationRow | None:
    """Return an organization by id, name, or the literal `default`. Daemons are authenticated later."""
    return await ctx.db.read(_find_organization, reference)


async def _find_organization(tx: Tx, reference: str) -> OrganizationRow | None:
    if reference == "default":
        return await organization_store.get_default_organization(tx)
    organization_id = as_id(reference)
    if organization_id is None:
        return await system_organizations.get_organization_by_name(tx, reference)
    return await system_organizations.get_organization(tx, organization_id)


async def admit(ctx: Context, application: DaemonApplication) -> DaemonAdmission:
    """Authenticate a daemon and decide its tags. Raises Forbidden."""
    requested = normalize_tags(NIL_OWNER, application.tags)
    try:
        if application.key and not application.psk:
            return await _admit_key(ctx, application)
        if application.psk and not application.key:
            return _admit_psk(ctx, application)
        if application.credentials.token and not application.key:
            return await _admit_user(ctx, application)
        raise _NotAdmitted("give exactly one of a session token, a provisioner key and a pre-shared key")
    except _NotAdmitted as refusal:
        text = f'You aren\'t allowed to create provisioner daemons with scope "{requested[SCOPE]}"'
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
    # Hashes have equal length, so the comparison does not reveal the secret's length.
    matches = hmac.compare_digest(secret_digest(application.psk), secret_digest(expected))
    if not expected or not matches:
        raise _NotAdmitted("provisioner daemon psk invalid")
    if not application.is_default_organization:
        raise _NotAdmitted("a pre-shared key is valid for the default organization only")
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
        # Jobs carry their owner's session token and keys, which exceed a limited key.
        if subject.scope is not ALL:
            raise _NotAdmitted("the key is limited by its scopes; use one without limits")
        if subject.narrowed_to is not None:
            raise _NotAdmitted(NARROWED)
        if organization_id not in subject.organization_roles:
            raise _NotAdmitted("the user is no member of the organization")
    elif not decide(subject, "create", Class("provisioner_daemon", organization_id=organization_id)):
        raise _NotAdmitted("the role of the user does not allow it; scope=user is allowed to all users")


async def require_admission(ctx: Context, organization_id: UUID, admission: DaemonAdmission) -> None:
    """Require that the daemon would still be admitted. Raises Forbidden; Unauthenticated when its session ended."""
    try:
        if admission.caller is not None:
            key, user = await recognize(ctx, admission.caller.credentials)
            # Site-wide roles do not show it. An organization with a provisioner key cannot be deleted.
            if await ctx.db.read(system_organizations.get_organization, organization_id) is None:
                raise _NotAdmitted("the organization was deleted")
            _check_user(subject_of(ctx, user, key), organization_id, admission.tags)
        elif admission.key_id not in RESERVED_KEYS and not await ctx.db.read(store.has_key, admission.key_id):
            raise _NotAdmitted("the provisioner key was deleted")
    except _NotAdmitted as refusal:
        raise Forbidden("The provisioner is no longer allowed to run.", refusal.reason) from None
