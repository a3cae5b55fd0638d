"""What a route says of the audit entry it leaves; the entries are written in `audited.py`."""

from __future__ import annotations

from dataclasses import dataclass

from coder.coderd.services.audit.audit_snapshots import ReadSettings


@dataclass(frozen=True, slots=True)
class Audited:
    """What a route changes.

    `key` finds the object: `path:N` is the Nth path argument, `body:NAME` a field of the answer, `sent:NAME` one of the
    request, `caller` the caller, `me` the caller's session. An answer that is a list is an entry for each of its
    objects. Settings have no key: `settings` reads them. Where nobody signs in, or the object is known to the view
    alone, the key is `view`: it says so by `audited.about`.
    """

    kind: str
    action: str
    key: str = "path:0"
    target: str = ""
    "Of settings, whose name is fixed."
    settings: ReadSettings | None = None
    "The service's function that says how they stand."


LOGIN = Audited("api_key", "login", "")
"""The one entry about somebody whom only the view gets to know."""
