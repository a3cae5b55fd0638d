"""Policy checks of services: `require` raises the refusal that the caller may see.

A caller without read permission on an object gets 404; a caller who may read the object, but not act on it, gets 403.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from coder.api.base.refusals import FORBIDDEN_DETAIL, Forbidden, NotFound
from coder.domain.access.build_tokens import NARROWED
from coder.domain.access.policy import ALL, Object, Subject, Target, decide, key_reaches, lists_one


def require(subject: Subject, action: str, resource: Target, *, hidden: bool = True) -> None:
    """Require permission. Raises NotFound without read permission, Forbidden when only `action` is not allowed.

    `hidden=False` raises Forbidden in both cases, for actions on classes of objects, where nothing is hidden.
    """
    if decide(subject, action, resource):
        return
    if hidden and (action == "read" or not decide(subject, "read", resource)):
        raise NotFound
    raise Forbidden


def may(subject: Subject, action: str, resource: Target) -> bool:
    """Return whether the subject has the permission."""
    return decide(subject, action, resource)


def explain_narrowing(subject: Subject, refusal: Forbidden | NotFound) -> Forbidden | NotFound:
    """Return the refusal, with the reason that a build's token may get it for: the roles it lacks.

    Every refusal without a reason of its own gets it: a missing object must answer like a hidden one.
    """
    if subject.lost_roles and refusal.detail in {"", FORBIDDEN_DETAIL}:
        refusal.detail = f"If your roles allow it: {NARROWED}"
    return refusal


def knows_user(subject: Subject, user_id: UUID, organization_ids: Collection[UUID]) -> bool:
    """Return whether the caller may know that a user of these organizations exists.

    Members of an organization may name each other, to share; a key that lists single users names only those.
    """
    if user_id == subject.user_id or may(subject, "read", Object("user", str(user_id), owner_id=user_id)):
        return True
    is_member_too = not subject.organization_roles.keys().isdisjoint(organization_ids)
    return is_member_too and lists_one(subject, user_id, ("user", "organization_member"))


def require_scope(subject: Subject, scopes: Sequence[str]) -> None:
    """Require one of `scopes` (`workspace:read`), if any, of the key alone, independent of its owner.

    Raises NotFound when the key may not read such objects, otherwise Forbidden.
    """
    if not scopes or subject.scope is ALL or any(key_reaches(subject.scope, scope) for scope in scopes):
        return
    if any(key_reaches(subject.scope, f"{scope.partition(':')[0]}:read") for scope in scopes):
        raise Forbidden("Forbidden.", f"The API key would need the scope {' or '.join(scopes)}.")
    raise NotFound
