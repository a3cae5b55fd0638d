"""Audit declarations of routes; `audited.py` writes the entries."""

from __future__ import annotations

from dataclasses import dataclass

from coder.api.audit.audit import AuditAction, ResourceType
from coder.coderd.services.audit.audit_snapshots import ReadOrganizationSettings, ReadSettings


@dataclass(frozen=True, slots=True)
class Audited:
    """Object that a route changes.

    `key` finds the object: `path:N` is the Nth path argument, `body:NAME` a field of the response, `sent:NAME` a field
    of the request, `caller` the caller, `me` the caller's session. A response that is a list is an entry for each of
    its objects. Settings have no key: `settings` reads them. Without a session, or if only the view knows the object,
    the key is `view`: the view declares it by `audited.about`.
    """

    kind: ResourceType
    action: AuditAction
    key: str = "path:0"
    target: str = ""
    """Fixed name of settings."""
    settings: ReadSettings | None = None
    """Service function that returns the current settings."""
    organization_settings: ReadOrganizationSettings | None = None
    """The same for settings of the organization that the path names."""


LOGIN = Audited("api_key", "login", "")
"""The one entry about a user that only the view identifies."""
