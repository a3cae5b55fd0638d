"""Keys this deployment signs its own short-lived tokens with: made on first use, kept in the database, replaced.

Whoever has one opens every application and terminal, so they are sealed where the site has encryption keys. One key
per feature signs; the one before it still verifies for a while, so that tokens outlive the change. Not here: the
tokens (`domain/foundation/signed_tokens.py`), and when the change is looked for (`loops/key_rotation.py`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import trio

from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.store.site import site_settings
from coder.domain.foundation.signed_tokens import SigningKey

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

LIFETIME = timedelta(days=30)
"""How long a key signs."""
OVERLAP = timedelta(hours=25)
"""How long it verifies afterwards: a little longer than the longest token lives (a day)."""
_REREAD = timedelta(minutes=10)
PAUSE = 5.0
"""Seconds between looks for keys that a token names and we do not know: anybody may write such tokens."""
_PREFIX = "signing_key:"
_KEY_SIZE = 64
"Bytes of an HS512 key: the size of its hash (RFC 7518 section 3.2)."
_KEY_SIZES = {"workspace_apps_api_key": 32}
"Features that do not sign: this one encrypts with A256GCM."


@dataclass(frozen=True, slots=True)
class DescribedKey:
    key: SigningKey
    starts_at: datetime
    deletes_at: datetime | None = None
    "None while it signs."


@dataclass(frozen=True, slots=True)
class _KeySet:
    """A feature's keys: the first signs, all verify. `read_at` is when this process looked."""

    keys: tuple[SigningKey, ...]
    read_at: datetime


class SigningKeys:
    """The keys of this process, read now and then, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sets: dict[str, _KeySet] = {}
        self._looks = trio.Lock()
        self._looked_at: dict[str, float] = {}
        "When a feature's keys were read for the sake of one we did not know."

    async def get(self, feature: str) -> SigningKey:
        """The key that signs."""
        found = self._sets.get(feature)
        if found is None or self._ctx.clock.now() - found.read_at > _REREAD:
            found = await self._read(feature)
        return found.keys[0]

    async def find(self, feature: str, key_id: str) -> SigningKey:
        """The key a token names, if it still verifies; else the one that signs, which will refuse the token."""
        signing = await self.get(feature)
        found = self._known(feature, key_id)
        if found is None:
            # It may be younger than our last look: another replica made it.
            async with self._looks:
                if self._known(feature, key_id) is None:
                    await self._look(feature)
            found = self._known(feature, key_id)
        return found or signing

    def _known(self, feature: str, key_id: str) -> SigningKey | None:
        return next((key for key in self._sets[feature].keys if key.id == key_id), None)

    async def _look(self, feature: str) -> None:
        now = self._ctx.clock.monotonic()
        if now - self._looked_at.get(feature, -PAUSE) >= PAUSE:
            self._looked_at[feature] = now
            await self._read(feature)

    async def describe(self, feature: str) -> list[DescribedKey]:
        """Every key of a feature with its times, the signing one first: for proxies, which check tokens themselves."""
        await self.get(feature)
        sealer = self._ctx.part(Sealer)
        stored = await self._ctx.db.read(site_settings.get_config, _PREFIX + feature)
        value = json.loads(stored or "{}")
        now = self._ctx.clock.now()
        made_at = datetime.fromisoformat(value["made_at"]) if value.get("made_at") else now
        found = [DescribedKey(_opened(sealer, value), made_at)]
        previous, until = _previous(value, now)
        if previous:
            found.append(DescribedKey(_opened(sealer, previous), made_at - LIFETIME, until))
        return found

    async def _read(self, feature: str) -> _KeySet:
        now = self._ctx.clock.now()
        keys = await self._ctx.db.run(_ensure_keys, _PREFIX + feature, now, self._ctx.part(Sealer))
        self._sets[feature] = found = _KeySet(keys, now)
        return found


async def _ensure_keys(tx: Tx, name: str, now: datetime, sealer: Sealer) -> tuple[SigningKey, ...]:
    stored = await site_settings.get_config(tx, name)
    if stored is None:
        stored = await site_settings.ensure_config(tx, name, json.dumps(_new_key(name, "1", now, sealer)))
    elif _sealed_anew(sealer, stored) != stored:
        await site_settings.lock_keys(tx)  # the key may be replaced at this moment
        stored = _sealed_anew(sealer, await site_settings.get_config(tx, name) or stored)
        await site_settings.put_config(tx, name, stored)
    value = json.loads(stored)
    previous, _ = _previous(value, now)
    return tuple(_opened(sealer, one) for one in (value, previous) if one)


def _previous(value: Mapping[str, Any], now: datetime) -> tuple[Mapping[str, str], datetime]:
    """The key before, and until when it verifies; nothing and `now` when that is over."""
    previous = value.get("previous") or {}
    until = datetime.fromisoformat(previous["until"]) if previous else now
    return (previous, until) if until > now else ({}, now)


def _sealed_anew(sealer: Sealer, stored: str) -> str:
    """The same with what was stored before the site had encryption keys sealed, too."""
    value = json.loads(stored)
    plain = [one for one in (value, value.get("previous")) if one and sealer.is_plain(one["secret"])]
    if not sealer.can_seal or not plain:
        return stored
    for one in plain:
        one["secret"] = sealer.seal(one["secret"])
    return json.dumps(value)


def _opened(sealer: Sealer, value: Mapping[str, str]) -> SigningKey:
    return SigningKey(value["id"], bytes.fromhex(sealer.open(value["secret"]).reveal()))


def _new_key(name: str, key_id: str, now: datetime, sealer: Sealer) -> dict[str, Any]:
    size = _KEY_SIZES.get(name.removeprefix(_PREFIX), _KEY_SIZE)
    return {"id": key_id, "secret": sealer.seal(secrets.token_hex(size)), "made_at": now.isoformat()}


async def rotate_due(ctx: Context) -> list[str]:
    """Replaces keys that are old; returns the features whose key was replaced."""
    return await ctx.db.run(rotate, ctx.clock.now(), ctx.part(Sealer))


async def rotate(tx: Tx, now: datetime, sealer: Sealer) -> list[str]:
    """Replaces keys that are old; returns the features. Replicas wait for each other, and the second finds new keys."""
    changed = []
    await site_settings.lock_keys(tx)
    for name, text in (await site_settings.list_configs(tx, _PREFIX)).items():
        value = json.loads(text)
        made_at = value.get("made_at")
        if made_at is None:  # made before keys had an age: it counts from now
            await site_settings.put_config(tx, name, json.dumps({**value, "made_at": now.isoformat()}))
            continue
        if now - datetime.fromisoformat(made_at) < LIFETIME:
            continue
        previous = {"id": value["id"], "secret": value["secret"], "until": (now + OVERLAP).isoformat()}
        fresh = _new_key(name, str(int(value["id"]) + 1), now, sealer)
        await site_settings.put_config(tx, name, json.dumps({**fresh, "previous": previous}))
        changed.append(name.removeprefix(_PREFIX))
    return changed
