"""Asking the policy from a service: `require` raises what the caller may be told.

A caller who may not read an object hears that it does not exist (404); one who may read but not act hears 403.
"""

from __future__ import annotations

from coder.coderd.services.errors import Forbidden, NotFound
from coder.domain.policy import Resource, Subject, decide


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
