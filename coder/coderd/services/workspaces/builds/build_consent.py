"""Builds that an OAuth2 application caused: their session tokens end with the consent of the application's user.

The job of a build remembers the consent. The daemon may acquire the job much later, so the consent is looked up again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.json_types import JsonObject, as_object, as_text
from coder.coderd.services.access.application_limits import consent_of_caller
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import oauth2 as oauth2_store
from coder.coderd.store.login.oauth2 import Consent
from coder.coderd.store.people import system_users
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_KEY = "oauth2_consent"


@dataclass(frozen=True, slots=True)
class BuildConsent:
    """Consent behind a build: `consent` is None for a build that no application caused."""

    consent: Consent | None
    has_ended: bool = False


async def job_input(tx: Tx, subject: Subject) -> JsonObject:
    """Return the part of a job's input that remembers the consent behind the caller's key; empty without one.

    Raises Unauthenticated when the key has ended meanwhile.
    """
    consent = await consent_of_caller(tx, subject)
    if consent is None:
        return {}
    return {_KEY: {"app_id": str(consent.app_id), "user_id": str(consent.user_id), "grant_id": consent.grant_id}}


async def hold_consent(tx: Tx, job: JobRow, owner_id: UUID, now: datetime) -> BuildConsent:
    """Return the consent behind a job, and keep it from ending until the transaction ends.

    Locks the application, users and keys in the order of every transaction that ends keys (`access/new_keys.py`).
    """
    stored = as_object(job.input.get(_KEY))
    if not stored:
        return BuildConsent(None)
    app_id, user_id = UUID(as_text(stored["app_id"])), UUID(as_text(stored["user_id"]))
    grant_id = as_text(stored["grant_id"])
    if await oauth2_store.hold_app(tx, app_id) is None:
        return BuildConsent(None, has_ended=True)
    for locked_id in sorted({user_id, owner_id}):
        await system_users.get_user(tx, locked_id, hold=True)
    consent = await oauth2_store.hold_consent(tx, app_id, user_id, grant_id)
    return BuildConsent(consent, has_ended=consent is None or consent.expires_at <= now)


async def end_with_consent(tx: Tx, token: str, consent: Consent | None) -> None:
    """Let a session token end with the consent."""
    if token and consent is not None:
        key_id = token.partition("-")[0]
        await key_store.shorten_key(tx, key_id, consent.expires_at)
        await oauth2_store.insert_made_key(tx, key_id, consent)
