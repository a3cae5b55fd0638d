"""The server's keys by which this proxy checks tickets and opens sealed keys: fetched, kept in memory, kept fresh.

They are replaced every month and verify for a day longer; a token may name one that is younger than our last look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import trio

from coder.api.proxies.proxies import CryptoKey
from coder.appproxy.apps.app_tickets import KEY_FEATURE, TICKET_FEATURE
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.domain.foundation.signed_tokens import SigningKey, TokenRefused
from coder.domain.foundation.zero import ZERO_TIME

REFRESH = 600.0
"""Seconds between two looks at the server's keys, as its own processes look."""
_PAUSE = 5.0
"""Seconds in which a key is asked for once: anybody may invent names of keys."""

_log = get_logger("keys")


class KeyRing:
    """The keys of this process; see `app_tickets.KeyFinder`."""

    def __init__(self, fetch: Callable[[str], Awaitable[list[CryptoKey]]], now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now
        self._keys: dict[str, list[CryptoKey]] = {}
        self._read_at: dict[str, float] = {}
        self._lock = trio.Lock()

    async def find(self, feature: str, key_id: str) -> SigningKey:
        """The key a token names, else another, which will refuse the token. Raises TokenRefused without any key."""
        found = self._known(feature, key_id)
        if found is None:
            async with self._lock:  # a look that is under way may bring it: the first one of all, too
                if self._may_look(feature) and self._known(feature, key_id) is None:
                    await self._look(feature)
            found = self._known(feature, key_id)
        if found is not None:
            return found
        others = self._keys.get(feature)
        if not others:
            raise TokenRefused("this proxy has no keys of its server yet")
        return _signing_key(others[0])

    def _known(self, feature: str, key_id: str) -> SigningKey | None:
        now = self._now()
        for key in self._keys.get(feature, ()):
            if str(key.sequence) == key_id and (key.deletes_at == ZERO_TIME or key.deletes_at > now):
                return _signing_key(key)
        return None

    def _may_look(self, feature: str) -> bool:
        return trio.current_time() - self._read_at.get(feature, -_PAUSE) >= _PAUSE

    async def _look(self, feature: str) -> None:
        self._read_at[feature] = trio.current_time()
        try:
            self._keys[feature] = await self._fetch(feature)
        except CoderError as error:
            # The keys we have go on working; a visitor with a new one is asked to sign in again.
            _log.warn("the server's keys could not be fetched", feature=feature, reason=error.message)

    async def keep_fresh(self) -> None:
        """Looks now, and again every ten minutes, for ever."""
        while True:
            async with self._lock:
                for feature in (TICKET_FEATURE, KEY_FEATURE):
                    await self._look(feature)
            await trio.sleep(REFRESH)


def _signing_key(key: CryptoKey) -> SigningKey:
    return SigningKey(str(key.sequence), bytes.fromhex(key.secret))
