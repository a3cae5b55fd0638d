"""Settings: the relay and the paths of the overlay."""

from __future__ import annotations

from dataclasses import dataclass

from coder.coderd.config.groups import DERP, NETWORKING
from coder.coderd.config.setting import concern, setting


@concern(DERP)
@dataclass(frozen=True, kw_only=True)
class DerpSettings:
    """The embedded relay, external relays, and direct connections."""

    derp_server_enable: bool = setting(
        True,
        "DERP Server Enable",
        "Run a relay in this server, for workspaces that clients cannot reach directly.",
        yaml="enable",
        path="derp.server.enable",
        proxies=True,
    )
    derp_server_region_id: int = setting(
        999,
        "DERP Server Region ID",
        "Region id of the embedded relay.",
        yaml="regionID",
        path="derp.server.region_id",
        hidden=True,
    )
    derp_server_region_code: str = setting(
        "coder",
        "DERP Server Region Code",
        "Region code of the embedded relay.",
        yaml="regionCode",
        path="derp.server.region_code",
        hidden=True,
    )
    derp_server_region_name: str = setting(
        "Coder Embedded Relay",
        "DERP Server Region Name",
        "Name of the embedded relay's region, shown with each connection.",
        yaml="regionName",
        path="derp.server.region_name",
    )
    derp_server_stun_addresses: tuple[str, ...] = setting(
        (
            "stun.l.google.com:19302",
            "stun1.l.google.com:19302",
            "stun2.l.google.com:19302",
            "stun3.l.google.com:19302",
            "stun4.l.google.com:19302",
        ),
        "DERP Server STUN Addresses",
        'STUN servers, host:port, by which machines learn their outer address; "disable" for none.',
        yaml="stunAddresses",
        path="derp.server.stun_addresses",
    )
    derp_server_relay_url: str = setting(
        "",
        "DERP Server Relay URL",
        "Address at which other replicas reach this one; needed where there are several.",
        yaml="relayURL",
        path="derp.server.relay_url",
        enterprise=True,
        proxies=True,
    )
    derp_config_url: str = setting(
        "",
        "DERP Config URL",
        "URL of a DERP map whose relays are offered in addition to the embedded one.",
        yaml="url",
        path="derp.config.url",
    )
    derp_config_path: str = setting(
        "",
        "DERP Config Path",
        "File with a DERP map whose relays are offered in addition to the embedded one.",
        yaml="configPath",
        path="derp.config.path",
    )
    derp_force_websockets: bool = setting(
        False,
        "DERP Force WebSockets",
        "Let clients speak to relays over WebSockets only, for proxies that let nothing else through.",
        yaml="forceWebSockets",
        path="derp.config.force_websockets",
    )
    block_direct_connections: bool = setting(
        False,
        "Block Direct Connections",
        "Let clients and agents talk through relays only, never directly.",
        env="CODER_BLOCK_DIRECT",
        yaml="blockDirect",
        path="derp.config.block_direct",
        proxies=True,
    )
    derp_server_bytes_per_second: int = setting(
        0,
        "Derp Server Bytes Per Second",
        "Bytes per second that each client of the embedded relay may send; 0 for no limit.",
        yaml="bytesPerSecond",
        hidden=True,
    )
    stun_address: str = setting(
        "",
        "Stun Address",
        "Address of the embedded STUN server (UDP); empty disables it.",
        yaml="stunAddress",
        hidden=True,
    )


@concern(DERP)
@dataclass(frozen=True, kw_only=True)
class WireguardSettings:
    """The gateway for plain WireGuard clients."""

    wireguard_address: str = setting(
        "",
        "Wireguard Address",
        "Address for plain WireGuard clients (UDP host:port, such as :51820); empty disables it.",
        group=NETWORKING,
        yaml="wireguardAddress",
    )
    wireguard_endpoint: str = setting(
        "",
        "Wireguard Endpoint",
        "host:port for clients; the default is the access URL's host and the port of the WireGuard address.",
        group=NETWORKING,
        yaml="wireguardEndpoint",
    )
