"""The site's VAPID key pair (RFC 8292).

The server generates it once. The private key is encrypted at rest like other secrets
(`services/foundation/encryption_at_rest.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.store.notifications import web_push as store
from coder.coderd.store.site import site_settings
from coder.domain.notifications import web_push as web_push_rules

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def public_key(ctx: Context) -> str:
    """Return the site's VAPID public key (base64url, uncompressed point), generated on first use."""
    return (await site_keys(ctx))[0]


async def site_keys(ctx: Context) -> tuple[str, EllipticCurvePrivateKey]:
    sealer = ctx.services.sealer
    pair = json.loads(await ctx.db.run(_stored_pair, sealer))
    scalar = web_push_rules.decode_key_untrusted(sealer.open(pair["private"]).reveal(), 32)
    return str(pair["public"]), web_push_rules.private_key(scalar)


async def _stored_pair(tx: Tx, sealer: Sealer) -> str:
    stored = await site_settings.get_config(tx, store.VAPID_KEYS)
    if stored is None:
        return await site_settings.ensure_config(tx, store.VAPID_KEYS, _new_pair(sealer))
    pair = json.loads(stored)
    sealed = sealer.seal(sealer.open(pair["private"]))
    if sealer.is_plain(pair["private"]) and not sealer.is_plain(sealed):
        # Stored before the site had encryption keys.
        stored = json.dumps({**pair, "private": sealed})
        await site_settings.put_config(tx, store.VAPID_KEYS, stored)
    return stored


def _new_pair(sealer: Sealer) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    scalar = private.private_numbers().private_value.to_bytes(32, "big")
    pair = {
        "public": web_push_rules.base64url(web_push_rules.public_point(private)),
        "private": sealer.seal(web_push_rules.base64url(scalar)),
    }
    return json.dumps(pair)
