"""Admissions of owners to their own applications, so that a program without cookies costs no query per request.

A browser shows its ticket, which admits it for a minute without the database. A program that sends its token with each
request shows none: its admission is kept here instead, for a shorter time. Authentication is not kept: key, expiry and
user are checked for every request (`access/auth_cache.py`).

An entry ends with any change of an identity or permission (`Database.identity_generation`), with a notice about its
workspace, and after ADMISSION_LIFETIME. Only owners are kept: access of others also depends on shares of ports,
sharing levels and access lists, whose changes send no notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.coderd.store.workspaces.change_feed import AGENT_ONLY, CHANNEL, parse_change

if TYPE_CHECKING:
    from coder.appproxy.apps.authorizer import AppAdmission
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context
    from coder.domain.apps.app_addresses import AppRequest

ADMISSION_LIFETIME = 10.0
"""Seconds. Ours: a sixth of a ticket's lifetime, and the limit for notices missed by a dead connection."""
MAX_ENTRIES = 1024
"""Above it, the oldest entry is dropped first."""
_HARMLESS = AGENT_ONLY | {"stats", "app_health", "app_status"}
"""Kinds of changes that concern no admission; they arrive every few seconds."""

Key = tuple["AppRequest", str, str]


class AdmissionCache:
    """Cache of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._kept: dict[Key, tuple[int, float, AppAdmission]] = {}
        self._changes = 0
        """Number of notices so far: an admission that was read before one is not kept."""
        self._listening = False

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for changes of workspaces, until cancelled; before that nothing is kept."""
        nursery.start_soon(self._listen)

    def find(self, request: AppRequest, caller: Caller, address: str) -> AppAdmission | None:
        """Return the admission of the same key from the same address to the same application, if nothing changed."""
        key = (request, caller.key.id, address)
        entry, db = self._kept.get(key), self._ctx.db
        if entry is None:
            return None
        generation, expires_at, admission = entry
        if generation == db.identity_generation and trio.current_time() < expires_at and db.is_listening:
            return admission
        del self._kept[key]
        return None

    def state(self) -> tuple[int, int]:
        """Return a mark of what may change, to take before an admission and to pass to `keep` after it."""
        return self._ctx.db.identity_generation, self._changes

    def keep(
        self, state: tuple[int, int], owner_id: UUID, caller: Caller, address: str, admission: AppAdmission
    ) -> None:
        """Keep an admission of the workspace's owner."""
        is_owner = caller.subject.user_id == owner_id
        if not is_owner or not self._listening or not self._ctx.db.is_listening or state != self.state():
            return
        entry = (state[0], trio.current_time() + ADMISSION_LIFETIME, admission)
        self._kept[admission.ticket.request, caller.key.id, address] = entry
        if len(self._kept) > MAX_ENTRIES:
            del self._kept[next(iter(self._kept))]

    async def _listen(self) -> None:
        async with self._ctx.db.listen(CHANNEL) as notices:
            self._listening = True
            async for _channel, payload in notices:
                if payload.partition(" ")[0] not in _HARMLESS:
                    self._changes += 1
                    self._forget(payload)

    def _forget(self, payload: str) -> None:
        try:
            changed = parse_change(payload).workspace_id
        except ValueError:  # notices may have been missed
            changed = None
        for key, (_, _, admission) in list(self._kept.items()):
            if changed is None or admission.ticket.workspace_id == changed:
                del self._kept[key]
