"""Inner packets of an admitted peer: IP, fragments, ICMPv6, UDP, TSMP. Each entry returns packets to seal."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

from coder.mesh.core.wire import icmp, ip, tcp, tsmp, udp
from coder.mesh.core.wire.tcp import SYN, Options, Segment
from tests.attacks.peers.place import ATTACKED_PORT, CLOSED_PORT, ECHO_PORT, MAPPED, Attack, bound

Make = Callable[[Attack], list[bytes]]
LARGE = 65_535


def datagram(a: Attack, size: int = 4, port: int = CLOSED_PORT, source: bytes | None = None) -> bytes:
    return udp.Datagram(5, port, bytes(size)).encode(source or a.own, a.target)


def syn(a: Attack, source: bytes | None = None, destination: bytes | None = None) -> bytes:
    body = Segment(a.next_port(), ATTACKED_PORT, 1, 0, SYN, 1000, Options(mss=1220)).encode()
    return ip.header(ip.PROTOCOL_TCP, source or a.own, destination or a.target, len(body)) + body


def changed(packet: bytes, at: int, *values: int) -> bytes:
    return packet[:at] + bytes(values) + packet[at + len(values) :]


def behind(a: Attack, protocol: int, header: bytes) -> list[bytes]:
    """A datagram behind an extension header."""
    body = header + datagram(a)[40:]
    return [ip.header(protocol, a.own, a.target, len(body)) + body]


def icmp6(a: Attack, kind: int, code: int = 0, parameter: int = 0, body: bytes = b"") -> list[bytes]:
    return [icmp.Message(kind, code, parameter, body).encode(a.own, a.target)]


def _sources() -> dict[str, Make]:
    named: dict[str, Callable[[Attack], bytes]] = {
        "the victim's own": lambda a: a.target,
        "another peer's": lambda a: a.place.witness.overlay,
        "unspecified": lambda a: bytes(16),
        "loopback": lambda a: bytes(15) + b"\1",
        "multicast": lambda a: b"\xff\2" + bytes(13) + b"\1",
        "link local": lambda a: b"\xfe\x80" + bytes(13) + b"\1",
        "mapped IPv4": lambda a: MAPPED,
        "nobody's": lambda a: b"\xfd\x7a" + bytes(13) + b"\x63",
    }
    made: dict[str, Make] = {}
    for name, source in named.items():
        made[f"SYN from an address: {name}"] = bound(source, lambda a, s: [syn(a, s(a))])
        made[f"datagram from an address: {name}"] = bound(source, lambda a, s: [datagram(a, source=s(a))])
    return made


IP: dict[str, Make] = {
    "nothing": lambda a: [b""],
    "one byte": lambda a: [b"\x60"],
    "39 bytes": lambda a: [datagram(a)[:39]],
    "header alone": lambda a: [datagram(a)[:40]],
    "length 0": lambda a: [changed(datagram(a), 4, 0, 0)],
    "length one too long": lambda a: [changed(datagram(a), 4, 0, 13)],
    "length 65535": lambda a: [changed(datagram(a), 4, 255, 255)],
    "length shorter than its header": lambda a: [changed(datagram(a), 4, 0, 7)],
    "padding behind the packet": lambda a: [datagram(a) + bytes(900)],
    **{
        f"version {number}": bound(number, lambda a, n: [changed(datagram(a), 0, n << 4)])
        for number in (0, 1, 4, 5, 7, 8, 15)
    },
    "IPv4 packet": lambda a: [b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2" + datagram(a)[40:48]],
    "IPv4 with a header of 60 bytes": lambda a: [b"\x4f" + bytes(100)],
    "IPv4 with a header of no words": lambda a: [b"\x40" + bytes(100)],
    "hop limit 0": lambda a: [changed(datagram(a), 7, 0)],
    "traffic class and flow label of ones": lambda a: [changed(datagram(a), 0, 0x6F, 255, 255, 255)],
    **{
        f"protocol {number}": bound(number, lambda a, n: [changed(datagram(a), 6, n)])
        for number in (1, 2, 4, 41, 47, 89, 103, 132, 136, 255)
    },
    "hop by hop options": lambda a: behind(a, 0, b"\x11\0\1\4" + bytes(4)),
    "hop by hop: jumbo payload": lambda a: behind(a, 0, b"\x11\0\xc2\4\0\1\0\0"),
    "hop by hop: router alert": lambda a: behind(a, 0, b"\x11\0\5\2\0\0\1\0"),
    "hop by hop: longer than the packet": lambda a: behind(a, 0, b"\x11\xff" + bytes(6)),
    "hop by hop, twice": lambda a: behind(a, 0, b"\0\0\1\4" + bytes(4) + b"\x11\0\1\4" + bytes(4)),
    "routing header 0": lambda a: behind(a, 43, b"\x11\2\0\1" + bytes(4) + a.place.witness.overlay),
    "routing header 4": lambda a: behind(a, 43, b"\x11\2\4\1\0\0\0\0" + a.target),
    "destination options": lambda a: behind(a, 60, b"\x11\0\1\4" + bytes(4)),
    "a hundred destination options": lambda a: behind(
        a, 60, (b"\x3c\0\1\4" + bytes(4)) * 100 + b"\x11\0\1\4" + bytes(4)
    ),
    "authentication header": lambda a: behind(a, 51, b"\x11\4" + bytes(22)),
    "encapsulated security": lambda a: behind(a, 50, bytes(16)),
    "mobility header": lambda a: behind(a, 135, b"\x3b\0\5\0" + bytes(4)),
    "no next header": lambda a: behind(a, 59, b""),
    "IPv6 in IPv6, to the witness": lambda a: behind(a, 41, datagram(a)),
    "to the witness": lambda a: [syn(a, destination=a.place.witness.overlay)],
    "to the attacker itself": lambda a: [syn(a, destination=a.own)],
    "to all nodes": lambda a: [syn(a, destination=b"\xff\2" + bytes(13) + b"\1")],
    "to loopback": lambda a: [syn(a, destination=bytes(15) + b"\1")],
    "to nothing": lambda a: [syn(a, destination=bytes(16))],
    "to a mapped address": lambda a: [syn(a, destination=MAPPED)],
    **_sources(),
}


def fragment(a: Attack, at: int, data: bytes, *, more: bool, protocol: int = 17, number: int = 1) -> bytes:
    body = pack("!BBHI", protocol, 0, at | more, number) + data
    return ip.header(44, a.own, a.target, len(body)) + body


def flood(a: Attack, count: int, *, last: bool) -> list[bytes]:
    return [fragment(a, 0 if not last else 800, bytes(800), more=not last, number=n + 1) for n in range(count)]


def whole(a: Attack, protocol: int, body: bytes, piece: int) -> list[bytes]:
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    last = len(pieces) - 1
    return [fragment(a, i * piece, p, more=i < last, protocol=protocol, number=9) for i, p in enumerate(pieces)]


def echo_body(size: int) -> bytes:
    return icmp.Message(icmp.ECHO_REQUEST, 0, 7, bytes(size)).body_bytes()


FRAGMENTS: dict[str, Make] = {
    "header cut": lambda a: [ip.header(44, a.own, a.target, 5) + b"\x11\0\0\1\0"],
    "header alone": lambda a: [fragment(a, 0, b"", more=True)],
    "whole in one": lambda a: [fragment(a, 0, datagram(a)[40:], more=False)],
    "never completed": lambda a: [fragment(a, 0, bytes(8), more=True)],
    "last one only": lambda a: [fragment(a, 800, bytes(8), more=False)],
    "length no multiple of eight": lambda a: [fragment(a, 0, bytes(9), more=True)],
    "offset beyond 65535": lambda a: [fragment(a, 65_528, bytes(16), more=False)],
    "reserved bits": lambda a: [fragment(a, 6, bytes(8), more=True)],
    "same piece twice": lambda a: [fragment(a, 0, bytes(8), more=True)] * 2,
    "overlap by one unit": lambda a: [fragment(a, 0, bytes(16), more=True), fragment(a, 8, bytes(16), more=False)],
    "overlap that hides": lambda a: [fragment(a, 8, bytes(8), more=True), fragment(a, 0, bytes(64), more=True)],
    "two ends": lambda a: [fragment(a, 80, bytes(8), more=False), fragment(a, 160, bytes(8), more=False)],
    "data behind the end": lambda a: [fragment(a, 80, bytes(8), more=False), fragment(a, 160, bytes(8), more=True)],
    "end moves forward": lambda a: [fragment(a, 800, bytes(8), more=True), fragment(a, 80, bytes(8), more=False)],
    "other protocol in the second": lambda a: [
        fragment(a, 0, bytes(8), more=True),
        fragment(a, 8, bytes(8), more=False, protocol=6),
    ],
    "fragment in a fragment": lambda a: [
        fragment(a, 0, pack("!BBHI", 17, 0, 0, 2) + datagram(a)[40:], more=False, protocol=44)
    ],
    "pieces of eight bytes, too many": lambda a: [fragment(a, 8 * n, bytes(8), more=True) for n in range(600)],
    "pieces in reverse": lambda a: [fragment(a, 8 * n, bytes(8), more=True) for n in range(400, 0, -1)],
    "a thousand beginnings": lambda a: flood(a, 1000, last=False),
    "a thousand ends": lambda a: flood(a, 1000, last=True),
    "extension header first": lambda a: [
        fragment(a, 0, b"\x11\0\1\4" + bytes(4) + datagram(a)[40:], more=False, protocol=0)
    ],
    "largest echo": lambda a: whole(a, 58, echo_body(LARGE - 8), 1200),
    "largest echo from a mapped address": lambda a: [
        changed(piece, 8, *MAPPED) for piece in whole(a, 58, echo_body(LARGE - 8), 1200)
    ],
    "largest datagram from a mapped address": lambda a: [
        changed(piece, 8, *MAPPED) for piece in whole(a, 17, pack("!HHHH", 5, 7, LARGE, 0) + bytes(LARGE - 8), 1200)
    ],
    "largest datagram to no port": lambda a: whole(a, 17, pack("!HHHH", 5, 9, LARGE, 0) + bytes(LARGE - 8), 1200),
    "largest datagram to a port": lambda a: whole(a, 17, pack("!HHHH", 5, 7, LARGE, 0) + bytes(LARGE - 8), 1200),
    "SYN in one": lambda a: whole(a, 6, syn(a)[40:], 800),
    "SYN in two, ports in both": lambda a: whole(a, 6, syn(a)[40:], 8),
    "too big in two": lambda a: whole(a, 58, icmp.Message(2, 0, 1280, datagram(a)).body_bytes(), 24),
    "largest segment": lambda a: whole(a, 6, syn(a)[40:] + bytes(65_000), 1200),
    "from the victim's own address": lambda a: [changed(fragment(a, 0, bytes(8), more=True), 8, *a.target)],
}


def quoted(a: Attack, *, to: bytes | None = None, source: bytes | None = None, protocol: int = 17) -> bytes:
    """The beginning of a packet that the victim may have sent."""
    if protocol == 17:
        return udp.Datagram(CLOSED_PORT, 5, bytes(1200)).encode(source or a.target, to or a.own)
    line = a.place.line
    ports = (line.local_port, line.remote_port) if a.place.role == "edge" else (line.remote_port, line.local_port)
    body = Segment(*ports, 12345, 0, tcp.ACK, 1000, payload=bytes(1000)).encode()
    return ip.header(protocol, source or a.target, to or a.own, len(body)) + body


def _witness(a: Attack) -> bytes:
    return a.place.witness.overlay


ICMP: dict[str, Make] = {
    "cut": lambda a: [ip.header(58, a.own, a.target, 7) + b"\x80\0\0\0\0\1\0"],
    "nothing": lambda a: [ip.header(58, a.own, a.target, 0)],
    "echo": lambda a: icmp6(a, 128, body=b"hello"),
    "echo without data": lambda a: icmp6(a, 128),
    "echo with a code": lambda a: icmp6(a, 128, 7, body=b"hello"),
    "echo, wrong checksum": lambda a: [changed(icmp6(a, 128)[0], 42, 9, 9)],
    "echo reply unasked": lambda a: icmp6(a, 129, parameter=77),
    "thousand echoes": lambda a: icmp6(a, 128, body=bytes(1200)) * 1000,
    **{
        f"type {kind}": bound(kind, lambda a, k: icmp6(a, k, body=quoted(a)))
        for kind in (0, 3, 4, 100, 127, 130, 131, 132)
    },
    **{f"type {kind}": bound(kind, lambda a, k: icmp6(a, k, body=bytes(24))) for kind in (*range(133, 162), 200, 255)},
    **{
        f"unreachable, code {code}": bound(code, lambda a, c: icmp6(a, 1, c, 0, quoted(a))) for code in (*range(8), 255)
    },
    **{
        f"unreachable about the witness's {name}, code {code}": (
            bound((protocol, code), lambda a, v: icmp6(a, 1, v[1], 0, quoted(a, to=_witness(a), protocol=v[0])))
        )
        for name, protocol in (("datagram", 17), ("connection", 6))
        for code in (1, 4)
    },
    "unreachable about what another sent": lambda a: icmp6(a, 1, 4, 0, quoted(a, source=_witness(a))),
    **{
        f"too big: {mtu}": bound(mtu, lambda a, m: icmp6(a, 2, 0, m, quoted(a)))
        for mtu in (0, 1, 68, 1279, 1280, 1281, 65_535, 0xFFFFFFFF)
    },
    "too big about the witness's datagram": lambda a: icmp6(a, 2, 0, 1280, quoted(a, to=_witness(a))),
    "too big about the witness's connection": lambda a: icmp6(a, 2, 0, 1280, quoted(a, to=_witness(a), protocol=6)),
    "too big about a thousand destinations": lambda a: [
        icmp6(a, 2, 0, 1280, quoted(a, to=a.own[:14] + n.to_bytes(2, "big")))[0] for n in range(1000)
    ],
    "too big, quote cut in the header": lambda a: icmp6(a, 2, 0, 1280, quoted(a)[:39]),
    "too big, quote cut in the ports": lambda a: icmp6(a, 2, 0, 1280, quoted(a)[:43]),
    "too big about an error": lambda a: icmp6(a, 2, 0, 1280, icmp6(a, 1, 4, 0, quoted(a))[0]),
    "too big, quote of IPv4": lambda a: icmp6(a, 2, 0, 1280, b"\x45" + bytes(60)),
    "redirect": lambda a: icmp6(a, 137, body=_witness(a) + a.target + bytes(8)),
    "router advertisement": lambda a: icmp6(a, 134, 0, 0x40400708, bytes(8) + b"\5\1\0\0\0\0\5\0"),
    "neighbour advertisement of the victim": lambda a: icmp6(a, 136, 0, 0xE0000000, a.target + b"\2\1" + bytes(6)),
}

UDP: dict[str, Make] = {
    "cut": lambda a: [ip.header(17, a.own, a.target, 7) + bytes(7)],
    "nothing": lambda a: [ip.header(17, a.own, a.target, 0)],
    "length 0": lambda a: [changed(datagram(a), 44, 0, 0)],
    "length 7": lambda a: [changed(datagram(a), 44, 0, 7)],
    "length beyond the packet": lambda a: [changed(datagram(a), 44, 255, 255)],
    "length shorter than the packet": lambda a: [changed(datagram(a, 100), 44, 0, 9)],
    "no checksum": lambda a: [changed(datagram(a), 46, 0, 0)],
    "wrong checksum": lambda a: [changed(datagram(a), 46, 1, 2)],
    "no payload": lambda a: [datagram(a, 0)],
    "port 0": lambda a: [datagram(a, port=0)],
    "from port 0": lambda a: [changed(datagram(a, port=ECHO_PORT), 40, 0, 0)],
    "from the same port": lambda a: [changed(datagram(a, port=ECHO_PORT), 40, 0, 7)],
    "largest that a relay carries": lambda a: [datagram(a, 65_400, ECHO_PORT)],
    "flood of one port": lambda a: [datagram(a, 1000, CLOSED_PORT)] * 2000,
    "flood of all ports": lambda a: [datagram(a, 4, port) for port in range(1, 60_000, 29)],
    "flood from all ports": lambda a: [changed(datagram(a), 40, *divmod(p, 256)) for p in range(1, 60_000, 29)],
    "STUN inside": lambda a: [datagram(a)[:44] + b"\0\x1c" + bytes(2) + b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12)],
    "TSMP ping": lambda a: [tsmp.TsmpPing(b"8 bytes!").encode(a.own, a.target)],
    "TSMP pong unasked": lambda a: [tsmp.TsmpPong(b"8 bytes!").encode(a.own, a.target)],
    "TSMP, unknown type": lambda a: [ip.header(99, a.own, a.target, 9) + b"Z" + bytes(8)],
    "TSMP, cut": lambda a: [ip.header(99, a.own, a.target, 3) + b"pin"],
    "TSMP, nothing": lambda a: [ip.header(99, a.own, a.target, 0)],
    "thousand TSMP pings": lambda a: [tsmp.TsmpPing(b"8 bytes!").encode(a.own, a.target)] * 1000,
}
