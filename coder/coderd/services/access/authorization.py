"""Asking the policy from a service: `require` raises what the caller may be told.

A caller who may not read an object hears that it does not exist (404); one who may read but not act hears 403.
"""

from __future__ import annotations

from collections.abc import Sequence

from coder.api.base.refusals import Forbidden, NotFound
from coder.domain.access.policy import ALL, Resource, Subject, decide, key_reaches


def require(subject: Subject, action: str, resource: Resource, *, hidden: bool = True) -> None:
    """Raises NotFound when `resource` may not be read, Forbidden when only `action` is not allowed.

    `hidden=False` answers 403 in both cases (actions on classes of objects, where there is nothing to hide).
    """
    if decide(subject, action, resource):
        return
    if hidden and (action == "read" or not decide(subject, "read", resource)):
        raise NotFound
    raise Forbidden


def may(subject: Subject, action: str, resource: Resource) -> bool:
    """The same question as a value."""
    return decide(subject, action, resource)


def require_scope(subject: Subject, scopes: Sequence[str]) -> None:
    """Asks the key alone, whoever its owner is: it must reach one of `scopes` (`workspace:read`), if any.

    Raises NotFound when the key may not even read such objects, else Forbidden.
    """
    if not scopes or subject.scope is ALL or any(key_reaches(subject.scope, scope) for scope in scopes):
        return
    if any(key_reaches(subject.scope, f"{scope.partition(':')[0]}:read") for scope in scopes):
        raise Forbidden("Forbidden.", f"The API key would need the scope {' or '.join(scopes)}.")
    raise NotFound
