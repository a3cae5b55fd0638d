"""Keys that sign the deployment's own short-lived tokens: generated on first use, stored in the database, rotated.

A stolen key opens every application and terminal, so keys are encrypted where the site has encryption keys. Each
feature signs with one key; the previous key still verifies for a while, so that tokens outlive a rotation. The tokens
are in `domain/foundation/signed_tokens.py`, the schedule of the rotation in `loops/key_rotation.py`.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NotRequired, TypedDict

import trio

from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.store.site import site_settings
from coder.domain.foundation.signed_tokens import SigningKey

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

LIFETIME = timedelta(days=30)
"""Time for which a key signs."""
OVERLAP = timedelta(hours=25)
"""Time for which it verifies afterwards: a little longer than the longest token lives (a day)."""
_REREAD = timedelta(minutes=10)
PAUSE = 5.0
"""Seconds between reads caused by tokens with an unknown key id: any client can send such tokens."""
_PREFIX = "signing_key:"
_KEY_SIZE = 64
"Bytes of an HS512 key: the size of its hash (RFC 7518 section 3.2)."
_KEY_SIZES = {"workspace_apps_api_key": 32}
"Key sizes of features that do not sign: this one encrypts with A256GCM."


@dataclass(frozen=True, slots=True)
class DescribedKey:
    key: SigningKey
    starts_at: datetime
    deletes_at: datetime | None = None
    "Time the key is deleted; None while it signs."


@dataclass(frozen=True, slots=True)
class _KeySet:
    """Keys of a feature: the first signs, all verify. `read_at` is the time this process read them."""

    keys: tuple[SigningKey, ...]
    read_at: datetime


class StoredKey(TypedDict):
    """Key as stored in JSON; the secret is sealed where the site has encryption keys."""

    id: str
    secret: str
    made_at: NotRequired[str]
    "Missing from keys that older releases stored."
    until: NotRequired[str]
    "Of a previous key: time until which it verifies."
    previous: NotRequired[StoredKey]


class SigningKeys:
    """The keys of this process, reread periodically."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sets: dict[str, _KeySet] = {}
        self._read_lock = trio.Lock()
        self._reread_at: dict[str, float] = {}
        "Time of the last read for a key that this process did not know, by feature."

    async def get(self, feature: str) -> SigningKey:
        """Return the key that signs."""
        key_set = self._sets.get(feature)
        if key_set is None or self._ctx.clock.now() - key_set.read_at > _REREAD:
            key_set = await self._read(feature)
        return key_set.keys[0]

    async def find(self, feature: str, key_id: str) -> SigningKey:
        """Return the key a token names while it verifies; otherwise the signing key, which will reject the token."""
        signing = await self.get(feature)
        key = self._cached(feature, key_id)
        if key is None:
            # Another replica may have created the key after the last read.
            async with self._read_lock:
                if self._cached(feature, key_id) is None:
                    await self._reread(feature)
            key = self._cached(feature, key_id)
        return key or signing

    def _cached(self, feature: str, key_id: str) -> SigningKey | None:
        return next((key for key in self._sets[feature].keys if key.id == key_id), None)

    async def _reread(self, feature: str) -> None:
        now = self._ctx.clock.monotonic()
        if now - self._reread_at.get(feature, -PAUSE) >= PAUSE:
            self._reread_at[feature] = now
            await self._read(feature)

    async def describe(self, feature: str) -> list[DescribedKey]:
        """Return every key of a feature with its times, the signing one first, for proxies that verify tokens
        themselves.
        """
        await self.get(feature)
        sealer = self._ctx.services.sealer
        stored = await self._ctx.db.read(site_settings.get_config, _PREFIX + feature)
        value: StoredKey = json.loads(stored or "{}")
        now = self._ctx.clock.now()
        made_at = datetime.fromisoformat(text) if (text := value.get("made_at")) else now
        keys = [DescribedKey(_opened(sealer, value), made_at)]
        previous, until = _previous(value, now)
        if previous:
            keys.append(DescribedKey(_opened(sealer, previous), made_at - LIFETIME, until))
        return keys

    async def _read(self, feature: str) -> _KeySet:
        now = self._ctx.clock.now()
        keys = await self._ctx.db.run(_ensure_keys, _PREFIX + feature, now, self._ctx.services.sealer)
        self._sets[feature] = key_set = _KeySet(keys, now)
        return key_set


async def _ensure_keys(tx: Tx, name: str, now: datetime, sealer: Sealer) -> tuple[SigningKey, ...]:
    stored = await site_settings.get_config(tx, name)
    if stored is None:
        stored = await site_settings.ensure_config(tx, name, json.dumps(_new_key(name, "1", now, sealer)))
    elif _encrypted(sealer, stored) != stored:
        await site_settings.lock_keys(tx)  # another replica may be rotating the key
        stored = _encrypted(sealer, await site_settings.get_config(tx, name) or stored)
        await site_settings.put_config(tx, name, stored)
    value: StoredKey = json.loads(stored)
    previous, _ = _previous(value, now)
    return tuple(_opened(sealer, key) for key in (value, previous) if key)


def _previous(value: StoredKey, now: datetime) -> tuple[StoredKey | None, datetime]:
    """Return the previous key and the time until which it verifies; an empty key and `now` after that."""
    previous = value.get("previous")
    until = datetime.fromisoformat(previous["until"]) if previous else now
    return (previous, until) if previous and until > now else (None, now)


def _encrypted(sealer: Sealer, stored: str) -> str:
    """Return `stored` with secrets encrypted that were stored before the site had encryption keys."""
    value: StoredKey = json.loads(stored)
    plain = [key for key in (value, value.get("previous")) if key and sealer.is_plain(key["secret"])]
    if not sealer.can_seal or not plain:
        return stored
    for key in plain:
        key["secret"] = sealer.seal(key["secret"])
    return json.dumps(value)


def _opened(sealer: Sealer, value: StoredKey) -> SigningKey:
    return SigningKey(value["id"], bytes.fromhex(sealer.open(value["secret"]).reveal()))


def _new_key(name: str, key_id: str, now: datetime, sealer: Sealer) -> StoredKey:
    size = _KEY_SIZES.get(name.removeprefix(_PREFIX), _KEY_SIZE)
    return {"id": key_id, "secret": sealer.seal(secrets.token_hex(size)), "made_at": now.isoformat()}


async def rotate_due(ctx: Context) -> list[str]:
    """Rotate old keys and return the features whose key was replaced."""
    return await ctx.db.run(rotate, ctx.clock.now(), ctx.services.sealer)


async def rotate(tx: Tx, now: datetime, sealer: Sealer) -> list[str]:
    """Rotate old keys and return their features. Replicas wait for each other, and the second one finds new keys."""
    changed = []
    await site_settings.lock_keys(tx)
    for name, text in (await site_settings.list_configs(tx, _PREFIX)).items():
        value: StoredKey = json.loads(text)
        made_at = value.get("made_at")
        if made_at is None:  # stored before keys had a creation time: the lifetime starts now
            await site_settings.put_config(tx, name, json.dumps({**value, "made_at": now.isoformat()}))
            continue
        if now - datetime.fromisoformat(made_at) < LIFETIME:
            continue
        previous = {"id": value["id"], "secret": value["secret"], "until": (now + OVERLAP).isoformat()}
        fresh = _new_key(name, str(int(value["id"]) + 1), now, sealer)
        await site_settings.put_config(tx, name, json.dumps({**fresh, "previous": previous}))
        changed.append(name.removeprefix(_PREFIX))
    return changed
