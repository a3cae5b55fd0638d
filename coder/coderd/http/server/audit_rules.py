"""What a route says of the audit entry it leaves; the entries are written in `audited.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Audited:
    """What a route changes.

    `key` finds the object: `path:N` is the Nth path argument, `body:NAME` a field of the answer, `sent:NAME` one of the
    request, `me` the caller. Settings have no key: their state is what GET of the same path says.
    """

    kind: str
    action: str
    key: str = "path:0"
    target: str = ""
    "Of settings, whose name is fixed."


LOGIN = Audited("api_key", "login", "")
"""The one entry about somebody whom only the view gets to know."""
