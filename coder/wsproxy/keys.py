"""Cache of the server's keys, with which this proxy verifies tickets and decrypts sealed keys.

Keys rotate every month and stay valid for a day longer; a token can name a key that is newer than the last fetch.
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
"""Seconds between two fetches of the server's keys, as in its own processes."""
_PAUSE = 5.0
"""Seconds between two fetches for unknown keys, because visitors can invent key names."""

_log = get_logger("keys")


class KeyRing:
    """Keys of this process; see `app_tickets.KeyFinder`."""

    def __init__(self, fetch: Callable[[str], Awaitable[list[CryptoKey]]], now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now
        self._keys: dict[str, list[CryptoKey]] = {}
        self._read_at: dict[str, float] = {}
        self._lock = trio.Lock()

    async def find(self, feature: str, key_id: str) -> SigningKey:
        """Return the key that a token names, or another, with which the token fails to verify. Raise TokenRefused
        without any key."""
        key = self._known(feature, key_id)
        if key is None:
            async with self._lock:  # a running fetch, perhaps the first, can bring the key
                if self._may_fetch(feature) and self._known(feature, key_id) is None:
                    await self._look(feature)
            key = self._known(feature, key_id)
        if key is not None:
            return key
        keys = self._keys.get(feature)
        if not keys:
            raise TokenRefused("this proxy has no keys of its server yet")
        return _signing_key(keys[0])

    def _known(self, feature: str, key_id: str) -> SigningKey | None:
        now = self._now()
        for key in self._keys.get(feature, ()):
            if str(key.sequence) == key_id and (key.deletes_at == ZERO_TIME or key.deletes_at > now):
                return _signing_key(key)
        return None

    def _may_fetch(self, feature: str) -> bool:
        return trio.current_time() - self._read_at.get(feature, -_PAUSE) >= _PAUSE

    async def _look(self, feature: str) -> None:
        self._read_at[feature] = trio.current_time()
        try:
            self._keys[feature] = await self._fetch(feature)
        except CoderError as error:
            # The known keys stay valid; a visitor with a token of a new key has to log in again.
            _log.warn("the server's keys could not be fetched", feature=feature, reason=error.message)

    async def keep_fresh(self) -> None:
        """Fetch the keys now and every ten minutes, forever."""
        while True:
            async with self._lock:
                for feature in (TICKET_FEATURE, KEY_FEATURE):
                    await self._look(feature)
            await trio.sleep(REFRESH)


def _signing_key(key: CryptoKey) -> SigningKey:
    return SigningKey(str(key.sequence), bytes.fromhex(key.secret))
