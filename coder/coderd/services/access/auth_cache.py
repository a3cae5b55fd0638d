"""Cache of keys and users, so that not every request queries the database for its user.

An entry holds rows, never a decision: the secret, the expiry and the user's state are checked for each request. An
entry is valid for the generation in which it was read. Every commit of this server that writes to an identity table
starts a new generation before its caller continues (`Database.identity_generation`). Writes of other replicas, and
through psql, send a notice by triggers (migration 0012), which starts a new generation within milliseconds. Without a
listening connection nothing is cached, and no entry is older than `KEEP` seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access.auth_changes import CHANNEL
from coder.coderd.store.access.keys import KeyRow, KeyUser

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

ENTRY_LIFETIME = 10.0
"""Seconds. Ours: the limit for changes missed by a listening connection that died unnoticed."""
MAX_ENTRIES = 2048
"""Entries, some kilobytes each. Above it, the oldest one is dropped first."""


class AuthCache:
    """Cache of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._kept: dict[str, tuple[int, float, tuple[KeyRow, KeyUser]]] = {}
        self._listening = False

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for changes of keys and users, until cancelled; before that nothing is cached."""
        nursery.start_soon(self._listen)

    async def find(self, key_id: str) -> tuple[KeyRow, KeyUser] | None:
        """Return the key and its user, as they are now or as they were before a notice that has not arrived yet."""
        db = self._ctx.db
        now, entry = trio.current_time(), self._kept.get(key_id)
        if entry is not None and entry[0] == db.identity_generation and now < entry[1] and db.is_listening:
            return entry[2]
        generation = db.identity_generation  # taken before the read: an entry that changes meanwhile must not be cached
        row = await db.read(key_store.find_caller, key_id)
        self._kept.pop(key_id, None)
        if row is not None and self._listening and generation == db.identity_generation:
            self._kept[key_id] = (generation, now + ENTRY_LIFETIME, row)
            if len(self._kept) > MAX_ENTRIES:
                del self._kept[next(iter(self._kept))]
        return row

    def forget(self, key_id: str) -> None:
        """Drop a key after a write without a notice: the time of its last use."""
        self._kept.pop(key_id, None)

    async def _listen(self) -> None:
        db = self._ctx.db
        async with db.listen(CHANNEL) as notices:
            self._listening = True
            async for _ in notices:  # also resynchronizes after a lost connection
                db.identity_generation += 1
                self._kept.clear()
