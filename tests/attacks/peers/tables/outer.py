"""Datagrams outside of the tunnel: WireGuard, disco, STUN and relayed packets, of strangers and of an admitted peer."""

from __future__ import annotations

import random
from collections.abc import Callable
from struct import pack

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.handshake_cookie import CookieJar
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.wire import disco, stun
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.core.wire.wireguard import CookieReply, HandshakeResponse, Initiation, Transport
from tests.attacks.peers.place import STUN_TX, Attack, bound
from tests.attacks.peers.tables.packets import datagram

Play = Callable[[Attack], object]
Send = Callable[..., None]
LOW_ORDER = {
    "zero": bytes(32),
    "one": b"\1" + bytes(31),
    "order 8": bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    "minus one": b"\xec" + b"\xff" * 30 + b"\x7f",
    "prime": b"\xed" + b"\xff" * 30 + b"\x7f",
    "all ones": b"\xff" * 32,
}


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def signed(a: Attack, message: Initiation | HandshakeResponse) -> bytes:
    """With a valid first MAC, which needs only the victim's public key."""
    return CookieJar(a.place.victim.key).sign(message.encode_unsigned(), a.place.now)


def initiation(a: Attack, key: PrivateKey | None = None, *, later: float = 0.0, seed: int = 1) -> bytes:
    """A genuine initiation; by the attacker's key unless given."""
    source = random.Random(seed)
    device = Device(key or a.key, source.randbytes, wall_offset=1.7e9 + later)
    tunnel = device.add_peer(a.place.victim.key, a.place.now)
    (made,) = tunnel.seal([datagram(a)], a.place.now)
    return made


def index_of(a: Attack) -> int:
    """The victim's index of the attacker's session."""
    return next(
        i for i, k in a.place.victim.endpoint.device._indices.sessions.items() if k.tunnel.remote == a.machine.key
    )


def witness_index(a: Attack) -> int:
    witness = a.place.witness.key
    return next(i for i, k in a.place.victim.endpoint.device._indices.sessions.items() if k.tunnel.remote == witness)


def at_counter(a: Attack, *counters: int) -> list[bytes]:
    """Genuine transport datagrams with counters of the attacker's choice."""
    keypair = a.peer.tunnel._keypairs.current
    assert keypair is not None
    before, made = keypair.counter, []
    for counter in counters:
        keypair.counter = counter
        made.append(keypair.seal_one(datagram(a), 1280))
    keypair.counter = before
    return made


WIREGUARD: dict[str, Callable[[Attack], list[bytes]]] = {
    **{
        f"type {kind} of {size} bytes": bound((kind, size), lambda a, v: [bytes([v[0], 0, 0, 0]) + noise(v[1] - 4)])
        for kind in (1, 2, 3, 4)
        for size in (4, 31, 32, 64, 92, 148, 1400)
    },
    **{f"type {kind}": bound(kind, lambda a, k: [bytes([k, 0, 0, 0]) + noise(144)]) for kind in (0, 5, 84, 255)},
    "reserved bytes set": lambda a: [b"\1\1\1\1" + initiation(a)[4:]],
    "one byte": lambda a: [b"\4"],
    "three bytes": lambda a: [b"\4\0\0"],
    "60,000 bytes of transport": lambda a: [pack("<IIQ", 4, index_of(a), 1 << 20) + noise(60_000)],
    "initiation, wrong mac1": lambda a: [initiation(a)[:116] + bytes(32)],
    "initiation, wrong mac2": lambda a: [initiation(a)[:132] + b"\xff" * 16],
    "initiation of a stranger": lambda a: [initiation(a, PrivateKey(b"\x55" * 32))],
    "initiation, static garbled": lambda a: [signed(a, Initiation(7, bytes(a.key.public), noise(48), noise(28)))],
    **{
        f"initiation, ephemeral of low order: {name}": (
            bound(point, lambda a, p: [signed(a, Initiation(7, p, noise(48), noise(28)))])
        )
        for name, point in LOW_ORDER.items()
    },
    **{
        f"response, ephemeral of low order: {name}": (
            bound(point, lambda a, p: [signed(a, HandshakeResponse(7, index_of(a), p, noise(16)))])
        )
        for name, point in LOW_ORDER.items()
    },
    "initiation, timestamp garbled": lambda a: [initiation(a)[:88] + noise(28) + initiation(a)[116:]],
    "initiation replayed": lambda a: [initiation(a, later=100)] * 3,
    "initiation older than the session": lambda a: [initiation(a, later=-1e6)],
    "initiation of the far future": lambda a: [initiation(a, later=1e9)],
    "flood of valid initiations": lambda a: [initiation(a, later=200.0 + n, seed=n) for n in range(300)],
    "flood of strangers' initiations": lambda a: [initiation(a, PrivateKey(pack("<I", n) * 8)) for n in range(1, 301)],
    "flood of signed garbage": lambda a: [
        signed(a, Initiation(n, noise(32, n), noise(48), noise(28))) for n in range(400)
    ],
    "response unasked": lambda a: [signed(a, HandshakeResponse(7, 12345, noise(32), noise(16)))],
    "response to the witness's index": lambda a: [
        signed(a, HandshakeResponse(7, witness_index(a), noise(32), noise(16)))
    ],
    "cookie reply unasked": lambda a: [CookieReply(12345, noise(24), noise(32)).encode()],
    "cookie reply to the session's index": lambda a: [CookieReply(index_of(a), noise(24), noise(32)).encode()],
    "cookie reply to the witness's index": lambda a: [CookieReply(witness_index(a), noise(24), noise(32)).encode()],
    "thousand cookie replies": lambda a: [
        CookieReply(index_of(a), noise(24, n), noise(32)).encode() for n in range(1000)
    ],
    "transport, unknown index": lambda a: [Transport(12345, 0, noise(64)).encode()],
    "transport, witness's index": lambda a: [Transport(witness_index(a), 1 << 40, noise(64)).encode()],
    "transport, garbled": lambda a: [Transport(index_of(a), 1 << 20, noise(64)).encode()],
    "transport, tag only": lambda a: [Transport(index_of(a), 1 << 20, noise(16)).encode()],
    "transport, replayed": lambda a: a.sealed(datagram(a)) * 3,
    "keepalives, a thousand": lambda a: at_counter(a, *range(5000, 6000)),
    "counter far ahead": lambda a: at_counter(a, 1 << 40, 5),
    "counter at the limit": lambda a: at_counter(a, (1 << 64) - (1 << 13) - 2, (1 << 64) - (1 << 13) - 1),
    "largest counter": lambda a: at_counter(a, (1 << 64) - 1),
    "counters in reverse": lambda a: at_counter(a, *range(40_000, 39_000, -1)),
    "every 8,000th counter": lambda a: at_counter(a, *range(100_000, 900_000, 8000)),
    "every second counter, then the others": lambda a: at_counter(
        a, *range(1 << 21, (1 << 21) + 800, 2), *range((1 << 21) + 1, (1 << 21) + 800, 2)
    ),
    "empty plaintext as data": lambda a: a.sealed(b""),
    "zeros inside": lambda a: a.sealed(bytes(1280)),
    "noise inside": lambda a: a.sealed(noise(1280)),
}


def boxed(a: Attack, clear: bytes, sender: PrivateKey | None = None, nonce: bytes = bytes(24)) -> bytes:
    """A disco packet with any clear text, genuinely sealed."""
    key = sender or a.disco
    box = SharedBox(key, a.place.victim.endpoint.disco_key)
    return disco.MAGIC + key.public + nonce + box.seal(nonce, clear)


def ping(a: Attack, number: int = 1, *, key: bytes | None = None, size: int = 1230) -> bytes:
    node = PublicKey(a.machine.key if key is None else key)
    return boxed(a, disco.DiscoPing(pack("<I", number) * 3, node, size).encode(), nonce=pack("<I", number) * 6)


def call(a: Attack, *addresses: UdpAddress) -> bytes:
    return boxed(a, disco.CallMeMaybe(addresses).encode())


def calls(a: Attack, host: str, count: int = 1) -> list[bytes]:
    return [call(a, *[UdpAddress(host, port) for port in range(1, count + 1)])]


DISCO: dict[str, Callable[[Attack], list[bytes]]] = {
    "mark alone": lambda a: [disco.MAGIC],
    **{
        f"ping cut to {size}": bound(size, lambda a, s: [ping(a)[:s]])
        for size in (6, 7, 37, 38, 61, 62, 77, 78, 100, 1300)
    },
    "ping": lambda a: [ping(a)],
    "ping, twice": lambda a: [ping(a)] * 2,
    "ping, one bit changed": lambda a: [ping(a)[:200] + bytes([ping(a)[200] ^ 1]) + ping(a)[201:]],
    "ping, nonce changed": lambda a: [ping(a)[:38] + b"\1" + ping(a)[39:]],
    "ping by a stranger's key": lambda a: [boxed(a, disco.DiscoPing(bytes(12)).encode(), PrivateKey(b"\x44" * 32))],
    "ping in another's name": lambda a: [ping(a, key=a.place.witness.key)],
    "ping in the victim's name": lambda a: [ping(a, key=a.place.victim.key)],
    "ping in the witness's disco key": lambda a: [disco.MAGIC + a.place.witness.endpoint.disco_key + ping(a)[38:]],
    "ping in the victim's disco key": lambda a: [disco.MAGIC + a.place.victim.endpoint.disco_key + ping(a)[38:]],
    "ping with a sender of zeros": lambda a: [disco.MAGIC + bytes(32) + ping(a)[38:]],
    **{f"ping of {size} bytes": bound(size, lambda a, s: [ping(a, size=s)]) for size in (12, 13, 44, 60_000)},
    "ping too short": lambda a: [boxed(a, b"\1\1" + bytes(11))],
    "pong unasked": lambda a: [boxed(a, disco.DiscoPong(bytes(12), UdpAddress("192.0.2.1", 9)).encode())],
    "pong too short": lambda a: [boxed(a, b"\2\1" + bytes(29))],
    "pong for the witness's ping": lambda a: [
        boxed(a, disco.DiscoPong(_witness_ping(a), UdpAddress("1.2.3.4", 5)).encode())
    ],
    "thousand pongs": lambda a: [
        boxed(a, disco.DiscoPong(pack("<I", n) * 3, UdpAddress("1.2.3.4", 5)).encode()) for n in range(1000)
    ],
    "nothing in the box": lambda a: [boxed(a, b"")],
    "one byte in the box": lambda a: [boxed(a, b"\1")],
    **{f"type {kind}": bound(kind, lambda a, k: [boxed(a, bytes([k, 0]) + bytes(60))]) for kind in (0, 4, 5, 127, 255)},
    "call with nothing": lambda a: [call(a)],
    "call of another version": lambda a: [boxed(a, b"\3\1" + bytes(18))],
    "call, entry cut": lambda a: [boxed(a, b"\3\0" + bytes(17))],
    "call with 3,600 addresses": lambda a: [boxed(a, b"\3\0" + b"".join(noise(16, n) + b"\0\5" for n in range(3600)))],
    "call with the same address 3,600 times": lambda a: [boxed(a, b"\3\0" + (noise(16) + b"\0\5") * 3600)],
    **{
        f"call to {name}": bound(host, calls)
        for name, host in {
            "loopback": "127.0.0.1",
            "loopback of IPv6": "::1",
            "private": "10.1.2.3",
            "link local": "169.254.169.254",
            "link local of IPv6": "fe80::1",
            "multicast": "224.0.0.1",
            "multicast of IPv6": "ff02::1",
            "broadcast": "255.255.255.255",
            "unspecified": "0.0.0.0",
            "unspecified of IPv6": "::",
            "reserved": "240.0.0.1",
            "documentation": "192.0.2.1",
            "translation": "64:ff9b::1.2.3.4",
            "6to4": "2002:a00:1::1",
            "overlay": "fd60:627a:a42b::1",
        }.items()
    },
    "call to port 0": lambda a: [call(a, UdpAddress("192.0.2.9", 0))],
    "call to the victim itself": lambda a: [call(a, UdpAddress(*a.place.victim.udp_address))],
    "call to the witness": lambda a: [call(a, UdpAddress(*a.place.witness.udp_address))],
    "call to a hundred ports of one host": lambda a: calls(a, "192.0.2.7", 100),
    "fifty calls to a hundred ports": lambda a: calls(a, "192.0.2.8", 100) * 50,
    "call that alternates": lambda a: [call(a, UdpAddress("192.0.2.9", 1 + n % 2)) for n in range(200)],
}


def _witness_ping(a: Attack) -> bytes:
    """A transaction that the victim awaits from the witness."""
    victim, witness = a.place.victim.endpoint, a.place.witness.key
    victim.ping(victim.peers[witness], 5, a.place.now)
    return next(reversed(victim.peers[witness].paths._outstanding._sent))


def stun_answer(tx: bytes) -> bytes:
    return stun.BindingResponse(tx, UdpAddress("203.0.113.77", 7)).encode()


def stun_raw(body: bytes, kind: int = 0x0101, tx: bytes = STUN_TX, length: int | None = None) -> bytes:
    return pack("!HHI", kind, len(body) if length is None else length, 0x2112A442) + tx + body


STUN: dict[str, Callable[[Attack], list[bytes]]] = {
    "forged transaction": lambda a: [stun_answer(noise(12))],
    "thousand forged transactions": lambda a: [stun_answer(noise(12, n)) for n in range(1000)],
    "request": lambda a: [stun.BindingRequest(noise(12)).encode()],
    "header cut": lambda a: [stun_answer(noise(12))[:19]],
    "header alone": lambda a: [stun_raw(b"")],
    "length beyond the datagram": lambda a: [stun_raw(bytes(8), length=500)],
    "length 65535": lambda a: [stun_raw(bytes(8), length=65_535)],
    "error answer": lambda a: [stun_raw(bytes(8), kind=0x0111)],
    "indication": lambda a: [stun_raw(bytes(8), kind=0x0011)],
    "unknown method": lambda a: [stun_raw(bytes(8), kind=0x0102)],
    "no attribute": lambda a: [stun_raw(bytes(4))],
    "attribute over the end": lambda a: [stun_raw(b"\0\x20\0\xff" + bytes(8))],
    "attribute cut": lambda a: [stun_raw(b"\0\x20")],
    "address of no family": lambda a: [stun_raw(b"\0\x20\0\x08\0\0\0\7" + bytes(4))],
    "address of family 3": lambda a: [stun_raw(b"\0\x20\0\x08\0\3\0\7" + bytes(4))],
    "IPv6 address of 4 bytes": lambda a: [stun_raw(b"\0\x20\0\x08\0\2\0\7" + bytes(4))],
    "empty address": lambda a: [stun_raw(b"\0\x20\0\0")],
    "four thousand attributes": lambda a: [stun_raw(b"\x80\x22\0\0" * 4000)],
    "without cookie": lambda a: [pack("!HHI", 0x0101, 12, 0) + noise(12) + b"\0\1\0\x08\0\1\0\7" + bytes(4)],
    "larger than any": lambda a: [stun_raw(b"\x80\x22\xf0\0" + bytes(0xF000))],
}
