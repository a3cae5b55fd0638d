"""Addresses of this machine, its source addresses, and waiting until either changes.

Lives here: a netlink dump on Linux, the source addresses of default routes elsewhere. Obeys rtnetlink(7).
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import trio

POLL = 5.0
"""Seconds between polls where the system sends no notifications."""
_SETTLE = 0.2
"""A network change comes as several messages; wait for the last of them."""

_RTM_GETADDR = 22
_RTM_NEWADDR = 20
_NLMSG_DONE = 3
_NLMSG_ERROR = 2
_DUMP_REQUEST = 0x301
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_F_TENTATIVE = 0x40
_GROUPS = 0x1 | 0x10 | 0x100 | 0x40 | 0x400
"""Links, IPv4 addresses, IPv6 addresses, IPv4 routes, IPv6 routes."""
_NETLINK_ROUTE = 0
_HEADER = struct.Struct("=LHHLL")
_IFADDR = struct.Struct("=BBBBL")
_ATTRIBUTE = struct.Struct("=HH")


def local_addresses() -> list[str]:
    """Return unicast addresses of interfaces that are up, loopback included, link-local IPv6 not; IPv4 first."""
    try:
        listed = _netlink_addresses() if sys.platform.startswith("linux") else _default_addresses()
    except OSError:
        listed = _default_addresses()
    unique = dict.fromkeys(listed)
    usable = [ip for ip in unique if not (ip_address(ip).is_link_local or ip_address(ip).is_multicast)]
    return sorted(usable, key=lambda ip: ":" in ip)


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface, for people."""

    name: str
    mtu: int
    """0: unknown."""
    addresses: tuple[str, ...]
    """Addresses, with prefix lengths where known."""


def list_interfaces() -> list[Interface]:
    """Return interfaces with addresses, in the system's order; empty where the system has no such interface list."""
    listed: dict[int, list[str]] = {}
    try:
        for index, address, prefix in _dump() if sys.platform.startswith("linux") else ():
            listed.setdefault(index, []).append(f"{address}/{prefix}")
        names = dict(socket.if_nameindex())
    except OSError:
        return []
    return [
        Interface(names[index], _mtu(names[index]), tuple(addresses))
        for index, addresses in sorted(listed.items())
        if index in names
    ]


def _mtu(name: str) -> int:
    try:
        return int(Path("/sys/class/net", name, "mtu").read_text())
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True, slots=True)
class Network:
    """Network position of this machine, as far as the system knows it."""

    addresses: tuple[str, ...]
    """Same as `local_addresses`."""
    sources: tuple[str, ...]
    """Source addresses towards the Internet: those of its default routes."""


def current_network() -> Network:
    """Return the current network."""
    return Network(tuple(local_addresses()), tuple(_default_sources()))


async def wait_network_changed(known: Network) -> Network:
    """Return as soon as addresses or default routes differ from the known ones.

    Routes matter separately: a cable plugged in next to a wireless network takes over while no address is removed.
    """
    watch = _open_watch()
    try:
        while True:
            now = current_network()
            if now != known:
                return now
            with trio.move_on_after(POLL if watch is None else 12 * POLL):
                if watch is None:
                    await trio.sleep_forever()
                else:
                    await trio.lowlevel.wait_readable(watch)
                    await trio.sleep(_SETTLE)
                    _drain(watch)
    finally:
        if watch is not None:
            watch.close()


def _open_watch() -> socket.socket | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        watch = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE)
    except OSError:
        return None
    try:
        watch.setblocking(False)
        watch.bind((0, _GROUPS))
    except OSError:
        watch.close()
        return None
    return watch


def _drain(watch: socket.socket) -> None:
    try:
        while watch.recv(65536):
            pass
    except OSError:
        pass  # empty, or it overflowed: the addresses are read again either way


def _netlink_addresses() -> list[str]:
    return [address for _, address, _ in _dump()]


def _dump() -> list[tuple[int, str, int]]:
    """Return (index of the interface, address, prefix length) of every interface that is up."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as sock:
        sock.settimeout(1.0)
        sock.bind((0, 0))
        body = _IFADDR.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        sock.send(_HEADER.pack(_HEADER.size + len(body), _RTM_GETADDR, _DUMP_REQUEST, 1, 0) + body)
        listed: list[tuple[int, str, int]] = []
        while not _read_dump(sock.recv(65536), listed):
            pass
        return listed


def _read_dump(data: bytes, listed: list[tuple[int, str, int]]) -> bool:
    """Collect the addresses of one datagram of the answer; return whether it was the last."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if kind in (_NLMSG_DONE, _NLMSG_ERROR) or length < _HEADER.size:
            return True
        if kind == _RTM_NEWADDR:
            body = data[at + _HEADER.size : at + length]
            address = _read_address(body)
            if address:
                _, prefix, _, _, index = _IFADDR.unpack_from(body)
                listed.append((index, address, prefix))
        at += (length + 3) & ~3
    return False


def _read_address(body: bytes) -> str:
    family, _, flags, _, _ = _IFADDR.unpack_from(body)
    if flags & _IFA_F_TENTATIVE:
        return ""
    at = _IFADDR.size
    values: dict[int, bytes] = {}
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            break
        values[kind] = body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    # On point-to-point links IFA_ADDRESS is the far end.
    raw = values.get(_IFA_LOCAL) or values.get(_IFA_ADDRESS)
    return socket.inet_ntop(family, raw) if raw else ""


def _default_addresses() -> list[str]:
    # Resolving our own host name may wait for a name server, and block everything else.
    return [*_default_sources(), "127.0.0.1"]


def _default_sources() -> list[str]:
    listed = []
    # Connecting a UDP socket sends nothing but makes the system choose a source address.
    for family, probe in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((probe, 9))
                listed.append(str(sock.getsockname()[0]).partition("%")[0])
        except OSError:
            continue
    return listed
