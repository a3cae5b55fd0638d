"""Refuse OAuth2 applications, and session tokens of builds, to create objects that would outlive their user's consent.

The kinds of objects are in `domain/access/application_limits.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Forbidden, Unauthenticated
from coder.coderd.services.access.authorization import require
from coder.coderd.store.access import system_keys
from coder.coderd.store.login.oauth2 import Consent, consent_of_key
from coder.domain.access.application_limits import LASTING, Fate
from coder.domain.access.build_tokens import NARROWED

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject, Target


async def require_lasting(
    ctx: Context, subject: Subject, action: str, resource: Target, kind: str, *, hidden: bool = True
) -> None:
    """Require permission as `require` does, and refuse applications as `refuse_applications` does."""
    require(subject, action, resource, hidden=hidden)
    await refuse_applications(ctx, subject, kind)


async def refuse_applications(ctx: Context, subject: Subject, kind: str) -> None:
    """Refuse a key of an application, or of a build, to create an object of a kind in LASTING. Raises Forbidden.

    A build's token could gain rights by such an object. Applies to every key derived from a consent, however
    indirectly. Derivation never ends, so the check needs no lock. Raises Unauthenticated as `consent_of_caller` does.
    """
    lasting = LASTING[kind]
    if lasting.fate is not Fate.REFUSED or not subject.key_id:
        return
    if subject.narrowed_to is not None:
        raise Forbidden(f"Session tokens of workspaces cannot create {lasting.what}.", NARROWED)
    consent = await ctx.db.read(consent_of_caller, subject)
    if consent is not None:
        raise Forbidden(
            f"OAuth2 applications cannot create {lasting.what}.",
            "They would outlive the user's consent. Sign in as the user, or use an API key of the user.",
        )


async def consent_of_caller(tx: Tx, subject: Subject) -> Consent | None:
    """Return the consent behind the caller's key; None for a user's own key, and for a caller without a key.

    Raises Unauthenticated when the key has ended since authentication: a request may wait minutes for its body, and the
    rows that tell an application's key from a user's own end with the key.
    """
    if not subject.key_id:
        return None
    consent = await consent_of_key(tx, subject.key_id)
    if consent is None and await system_keys.get_key(tx, subject.key_id) is None:
        raise Unauthenticated("The session has ended meanwhile. Sign in again.")
    return consent
