"""Client addresses of requests behind trusted proxies."""

from __future__ import annotations

import ipaddress

from coder.appproxy.settings import TrustedProxySettings
from coder.base.errors import CoderError
from coder.domain.apps.app_headers import Headers, joined


class TrustedProxies:
    """Trusted proxies of `--proxy-trusted-origins` and `--proxy-trusted-headers`. Raises CoderError `bad_option`."""

    def __init__(self, config: TrustedProxySettings) -> None:
        try:
            self._networks = [ipaddress.ip_network(origin, strict=False) for origin in config.proxy_trusted_origins]
        except ValueError as error:
            raise CoderError(
                "bad_option",
                "--proxy-trusted-origins contains an invalid address",
                "Write networks like 10.0.0.0/8.",
            ) from error
        self._headers = [name.lower().encode() for name in config.proxy_trusted_headers]

    def address(self, peer: str, headers: Headers) -> str:
        """Return the client's address: the last one of a trusted header that is not a proxy of ours.

        Proxies append to the list, so only its end is trustworthy; entries from the client come first. Some append by a
        line of their own (HAProxy), which is the same list (RFC 9110, section 5.3). Names of `headers` are in lower
        case.
        """
        if not self._networks or not self.trusts(peer):
            return peer
        for name in self._headers:
            for text in reversed(joined(headers, name).split(",")):
                candidate = text.strip()
                if candidate and not self.trusts(candidate):
                    return candidate if _is_address(candidate) else peer
        return peer

    def trusts(self, text: str) -> bool:
        """Return whether the address is a trusted proxy's."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def network_of(remote_ip: str) -> str:
    """Return the network that requests of an address are counted for: for IPv6 its /64, the minimum that one customer
    has."""
    if ":" not in remote_ip:
        return remote_ip
    try:
        address = ipaddress.IPv6Address(remote_ip.partition("%")[0])
    except ValueError:
        return remote_ip
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
