"""Relay map of this server: its embedded relay, STUN servers, and regions from the configuration.

Node names and numbers are upstream's, because users know them: region 999, node `999b`, `Coder STUN 1`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from coder.api.agents.agent_connection import AgentConnectionInfo
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.outgoing_requests import DOCUMENT
from coder.mesh.derp_map import DerpMap, DerpNode, DerpRegion
from coder.net.http1 import HttpClient
from coder.net.masking import masked
from coder.net.policy import DialPolicy
from coder.tailnet import derpmap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class RelayMap:
    """Relay map of a server process. `current` may change while the server runs."""

    def __init__(self, ctx: Context) -> None:
        self.current = build_derp_map(ctx.config, ctx.access_url)
        self.proxies: dict[int, DerpRegion] = {}
        "Regions of healthy workspace proxies that relay."


def current_map(ctx: Context) -> DerpMap:
    relays = ctx.services.relay_map
    if not relays.proxies:
        return relays.current
    return DerpMap(dict(sorted({**relays.proxies, **relays.current.regions}.items())))


def proxy_region(number: int, name: str, display_name: str, url: str) -> DerpRegion:
    """Return the region of a workspace proxy's relay, at the proxy's own address."""
    node = DerpNode(name=f"{number}a", region_id=number, host_name="", stun_port=-1)
    region = DerpRegion(number, f"coder_{name}", display_name or name, (node,), embedded_relay=True)
    located = derpmap.with_embedded(DerpMap({number: region}), url).regions[number]
    return replace(located, embedded_relay=False)


def connection_info(ctx: Context) -> AgentConnectionInfo:
    """Return the answer of `/workspaceagents/{id}/connection`, which a client needs before it dials."""
    return AgentConnectionInfo(
        derp_map=derpmap.to_json(current_map(ctx)),
        derp_force_websockets=ctx.config.derp_force_websockets,
        disable_direct_connections=ctx.config.block_direct_connections,
        hostname_suffix=ctx.config.workspace_hostname_suffix,
    )


async def fetch_configured(ctx: Context) -> None:
    """Add the regions of `derp_config_url`. Raises CoderError `bad_derp_map` when they cannot be fetched."""
    if not ctx.config.derp_config_url:
        return
    url = urlsplit(ctx.config.derp_config_url)
    try:
        async with HttpClient(DialPolicy(f"{url.scheme}://{url.netloc}")) as http:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            answer = await http.request("GET", path, limit=DOCUMENT)
        fetched = derpmap.from_json(answer.json())
    except (CoderError, ValueError, KeyError, TypeError) as error:
        raise CoderError(
            "bad_derp_map", f"no relay map at {masked(ctx.config.derp_config_url)}", "Check --derp-config-url."
        ) from error
    ctx.services.relay_map.current = build_derp_map(ctx.config, ctx.access_url, fetched)


def build_derp_map(config: ServerConfig, access_url: str, fetched: DerpMap | None = None) -> DerpMap:
    """Return the map of a configuration. Raises CoderError `bad_derp_map` when the configured file cannot be used."""
    regions = {**_configured(config).regions, **(fetched.regions if fetched else {})}
    if config.derp_server_enable:
        region = _embedded(config, access_url)
        regions[region.region_id] = region
    if not config.block_direct_connections:
        for number, address in enumerate(_stun_addresses(config), start=1):
            region = _stun_region(config.derp_server_region_id + number, number, address)
            regions.setdefault(region.region_id, region)
    derp_map = DerpMap(dict(sorted(regions.items())))
    return derpmap.without_stun(derp_map) if config.block_direct_connections else derp_map


def _configured(config: ServerConfig) -> DerpMap:
    if not config.derp_config_path:
        return DerpMap()
    try:
        document: Json = json.loads(Path(config.derp_config_path).read_text())
        if not isinstance(document, Mapping):
            raise TypeError("a relay map is an object")
        return derpmap.from_json(document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CoderError(
            "bad_derp_map", f"{config.derp_config_path} is no relay map", "Give a JSON file with a `Regions` object."
        ) from error


def _embedded(config: ServerConfig, access_url: str) -> DerpRegion:
    number = config.derp_server_region_id
    node = DerpNode(name=f"{number}b", region_id=number, host_name="", stun_port=embedded_stun_port(config) or -1)
    region = DerpRegion(
        region_id=number,
        region_code=config.derp_server_region_code,
        region_name=config.derp_server_region_name,
        nodes=(node,),
        embedded_relay=True,
    )
    return replace(derpmap.with_embedded(DerpMap({number: region}), access_url).regions[number])


def embedded_stun_port(config: ServerConfig) -> int:
    """Return the UDP port of the embedded STUN server, 0 when there is none or only its process knows it."""
    if not config.stun_address:
        return 0
    port = urlsplit(f"//{config.stun_address}").port
    return 3478 if port is None else port


def _stun_addresses(config: ServerConfig) -> list[str]:
    return [address for address in config.derp_server_stun_addresses if address and address != "disable"]


def _stun_region(region_id: int, number: int, address: str) -> DerpRegion:
    parts = urlsplit(f"//{address}")
    node = DerpNode(
        name=f"{region_id}stun0",
        region_id=region_id,
        host_name=parts.hostname or "",
        stun_only=True,
        stun_port=parts.port or 3478,
    )
    return DerpRegion(region_id, f"coder_stun_{region_id}", f"Coder STUN {number}", (node,))
