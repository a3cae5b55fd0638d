"""The WireGuard server as clients configure it, and its key pair."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from coder.api.wireguard.wireguard_clients import (
    WireguardServer,
)
from coder.coderd.services.wireguard.wireguard_audit import key_text
from coder.coderd.services.wireguard.wireguard_service import gateway_of
from coder.coderd.store.site import site_settings
from coder.domain.network.overlay import TAILSCALE_SERVICE_PREFIX
from coder.mesh.gateway import CLIENT_MTU
from coder.mesh.keys import PrivateKey

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


KEEPALIVE = 25
"Seconds between keepalives, which keep the mapping of a phone's NAT open (the WireGuard tools' own advice)."
_KEY_NAME = "wireguard_private_key"


async def server_view(ctx: Context) -> WireguardServer:
    """Return what every client's configuration contains about this server."""
    gateway = gateway_of(ctx)
    return WireguardServer(
        enabled=gateway is not None,
        endpoint=gateway.endpoint if gateway else "",
        public_key=key_text(await public_key(ctx)) if gateway else "",
        allowed_ips=[str(TAILSCALE_SERVICE_PREFIX)],
        mtu=CLIENT_MTU,
        persistent_keepalive=KEEPALIVE,
    )


async def public_key(ctx: Context) -> bytes:
    """Return the server's public key."""
    return (await load_private_key(ctx)).public


async def load_private_key(ctx: Context) -> PrivateKey:
    """Return the gateway's key, which all replicas share; encrypted in the database when the site has keys for that."""
    sealer = ctx.services.sealer
    stored = await ctx.db.read(site_settings.get_config, _KEY_NAME)
    if stored is None:
        sealed = sealer.seal(PrivateKey.generate(secrets.token_bytes).reveal().hex())
        stored = await ctx.db.run(site_settings.ensure_config, _KEY_NAME, sealed)
    elif sealer.can_seal and sealer.is_plain(stored):  # stored before the site had encryption keys
        await ctx.db.run(site_settings.put_config, _KEY_NAME, sealer.seal(stored))
    return PrivateKey(bytes.fromhex(sealer.open(stored).reveal()))
