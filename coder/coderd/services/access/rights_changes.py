"""Wake everything that stays open by a right when rights may have changed.

Notices come from the database: triggers of migrations 0008 and 0029 on users, roles, groups, organizations, members and
workspaces, and notices of ended sessions, shares and provisioner keys. So no code that revokes a right has to know the
users of the right, and every replica is notified. A notice names no user: each waiter asks the policy. Daemons with a
provisioner key depend on the key alone and wait only for deleted keys. Lost notices are caught by each waiter's regular
check.
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
"""Seconds between two checks of one waiter: many changes cause one check, and rights are not queried all day."""
_NO_RIGHTS = frozenset({"wireguard_clients", "workspace_agents"})
"""Tables whose changes revoke no right to an agent."""


class RightsChanges:
    """Changes of rights of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._next = trio.Event()
        self._next_key = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for changes of rights, until cancelled."""
        nursery.start_soon(self._listen)

    def next_change(self) -> trio.Event:
        """Return an event that the next change sets. Take it before the check, so that a change meanwhile counts."""
        return self._next

    def next_key_deleted(self) -> trio.Event:
        """Return an event that the next deletion of a provisioner key sets."""
        return self._next_key

    async def _listen(self) -> None:
        async with self._ctx.db.listen(CHANNEL, ENDED, KEY_DELETED) as notices:
            self._notify(keys=True)  # changes before the subscription started
            async for channel, payload in notices:
                if payload not in _NO_RIGHTS:
                    self._notify(keys=channel == KEY_DELETED or payload == RESYNC)

    def _notify(self, *, keys: bool) -> None:
        event, self._next = self._next, trio.Event()
        event.set()
        if keys:
            event, self._next_key = self._next_key, trio.Event()
            event.set()
