"""Rights may have changed: whoever holds something open by a right is woken to look again.

The notices come from the database (triggers of migrations 0008 and 0029 on users, roles, groups, organizations, members
and workspaces; what ends sessions, sharing and provisioner keys), so that no place that takes a right away has to think
of those who use it, and every replica hears. A notice names nobody: who waits asks the policy. Daemons that a key let
in have no other right, and wait for ends of keys alone. Lost notices are caught by everybody's regular look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.store.access.keys import ENDED
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.provisioning.provisioners import KEY_DELETED
from coder.coderd.store.wireguard.wireguard_clients import CHANNEL

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

PAUSE = 2.0
"""Seconds between two looks of one waiter: many changes are one look, and nobody's rights are asked for all day."""
_NO_RIGHTS = frozenset({"wireguard_clients", "workspace_agents"})
"""Tables whose changes take nobody's right to an agent away."""


class RightsChanges:
    """Those of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._next = trio.Event()
        self._next_key = trio.Event()
        ctx.nursery.start_soon(self._listen)

    def next_change(self) -> trio.Event:
        """Set by the first change from now on. Take it before you look: what changes meanwhile counts."""
        return self._next

    def next_key_deleted(self) -> trio.Event:
        """The same of provisioner keys alone."""
        return self._next_key

    async def _listen(self) -> None:
        async with self._ctx.db.listen(CHANNEL, ENDED, KEY_DELETED) as notices:
            self._tell(keys=True)  # what happened before anybody listened
            async for channel, payload in notices:
                if payload not in _NO_RIGHTS:
                    self._tell(keys=channel == KEY_DELETED or payload == RESYNC)

    def _tell(self, *, keys: bool) -> None:
        told, self._next = self._next, trio.Event()
        told.set()
        if keys:
            told, self._next_key = self._next_key, trio.Event()
            told.set()
