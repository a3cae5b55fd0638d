"""Keys and users that were read a moment ago, so that not every request asks the database who it is from.

What is kept is what the rows said, never a decision: the secret, the expiry and the user's state are judged anew for
each request. An entry is good for the generation it was read in. Every commit of ours that writes to the tables of
identities begins a new one before its caller hears of it (`Database.identity_generation`); writes of other replicas,
and of people with psql, are told by triggers (migration 0012) and begin one when the notice arrives, within
milliseconds. Without a listening connection nothing is kept, and nothing is kept longer than `KEEP` seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access.auth_changes import CHANNEL
from coder.coderd.store.access.keys import KeyRow, KeyUser

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

KEEP = 10.0
"""Seconds. Ours: bounds what a listening connection could miss that died without anybody noticing."""
MOST = 2048
"""Entries; some kilobytes each. Above it the oldest goes first."""


class AuthCache:
    """Those of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._kept: dict[str, tuple[int, float, tuple[KeyRow, KeyUser]]] = {}
        self._listening = False
        ctx.nursery.start_soon(self._listen)

    async def find(self, key_id: str) -> tuple[KeyRow, KeyUser] | None:
        """The key and its user, as they are now or were until a notice that is still on its way."""
        db = self._ctx.db
        now, kept = trio.current_time(), self._kept.get(key_id)
        if kept is not None and kept[0] == db.identity_generation and now < kept[1] and db.is_listening:
            return kept[2]
        generation = db.identity_generation  # before the read: what changes meanwhile must not be kept
        found = await db.read(key_store.find_caller, key_id)
        self._kept.pop(key_id, None)
        if found is not None and self._listening and generation == db.identity_generation:
            self._kept[key_id] = (generation, now + KEEP, found)
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return found

    def forget(self, key_id: str) -> None:
        """Something that is not told of was written about this key: when it was used."""
        self._kept.pop(key_id, None)

    async def _listen(self) -> None:
        db = self._ctx.db
        async with db.listen(CHANNEL) as notices:
            self._listening = True
            async for _ in notices:  # resyncs after a lost connection included
                db.identity_generation += 1
                self._kept.clear()
