"""The timers and limits of the WireGuard paper as a table: lost datagrams, sent data, expected datagrams.

Each row is a scenario of two peers on its own clock. test_conversation.py covers interactions beyond these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from coder.mesh.core.crypto import handshake_cookie
from coder.mesh.core.tunnel import constants, keypairs
from coder.mesh.core.tunnel.events import HandshakeCompleted, HandshakeGaveUp, KeysExpired, Roamed
from coder.mesh.core.wire.wireguard import TRANSPORT_OVERHEAD
from tests.kit.network.wireguard_devices import Pair, Side

INITIATION, RESPONSE, COOKIE, TRANSPORT = 1, 2, 3, 4
KEEPALIVE = TRANSPORT_OVERHEAD
JITTER = constants.REKEY_JITTER

Loss = Callable[[Pair, str, bytes], bool]


def lose_nothing(_pair: Pair, _name: str, _datagram: bytes) -> bool:
    return False


def lose_everything_after(moment: float) -> Loss:
    return lambda pair, _name, _datagram: pair.now > moment


def lose_kinds_of(name: str, *kinds: int, until: float = 1e9) -> Loss:
    return lambda pair, sender, datagram: sender == name and datagram[0] in kinds and pair.now < until


@dataclass(frozen=True)
class Row:
    """A rule of the paper."""

    rule: str
    sends: dict[str, tuple[float, ...]]
    """When which side gets data to send."""
    until: float
    expect: dict[tuple[str, str], tuple[tuple[float, float], ...]]
    """(sender, kind of datagram): the time span in which each is sent, all of them and no other."""
    lose: Loss = lose_nothing
    persistent: float = 0.0


def span(moment: float, slack: float = JITTER) -> tuple[float, float]:
    return (moment, moment + slack)


SECONDS_OF_DATA = tuple(float(second) for second in range(130))

TABLE = [
    Row(
        "5.1: one round trip, and the initiator's first transport message confirms",
        {"a": (0.0,)},
        5.0,
        {("a", "initiation"): (span(0),), ("b", "response"): (span(0),), ("a", "data"): (span(0),)},
    ),
    Row(
        "6.5: silence after data gets one keepalive after KEEPALIVE-TIMEOUT, and a keepalive none",
        {"a": (0.0,)},
        60.0,
        {
            ("a", "initiation"): (span(0),),
            ("b", "response"): (span(0),),
            ("a", "data"): (span(0),),
            ("b", "keepalive"): (span(10, 0),),
        },
    ),
    Row(
        "6.5: data in return replaces the keepalive",
        {"a": (0.0,), "b": (9.0,)},
        18.0,
        {
            ("a", "initiation"): (span(0),),
            ("b", "response"): (span(0),),
            ("a", "data"): (span(0),),
            ("b", "data"): (span(9),),
        },
    ),
    Row(
        "6.2: REKEY-AFTER-TIME, by the initiator only, when it sends",
        {"a": SECONDS_OF_DATA},
        130.5,
        {("a", "initiation"): (span(0), span(121, 1)), ("b", "response"): (span(0), span(121, 1))},
    ),
    Row(
        "6.2: the responder does not renew before its keys are dead",
        {"a": (0.0,), "b": SECONDS_OF_DATA},
        119.0,
        {("a", "initiation"): (span(0),), ("b", "initiation"): ()},
    ),
    Row(
        "6.4: REKEY-TIMEOUT with jitter, the same attempt until it is answered",
        {"a": (0.0,)},
        30.0,
        {
            ("a", "initiation"): (span(0), span(5), span(10, 2 * JITTER), span(15, 3 * JITTER)),
            ("b", "response"): (span(15, 3 * JITTER),),
        },
        lose=lose_kinds_of("a", INITIATION, until=12.0),
    ),
    Row(
        "6.4: REKEY-ATTEMPT-TIME: eighteen tries in ninety seconds, then silence",
        {"a": (0.0,)},
        400.0,
        {("a", "initiation"): tuple(span(5 * n, JITTER * n + 0.01) for n in range(18)), ("b", "response"): ()},
        lose=lambda *_: True,
    ),
    Row(
        "6.4: data resets the attempt",
        {"a": (0.0, 60.0)},
        160.0,
        {("a", "initiation"): tuple(span(5 * n, JITTER * n + 0.01) for n in range(29))},
        lose=lambda *_: True,
    ),
    Row(
        "6.3/6.4: data without an answer for KEEPALIVE-TIMEOUT + REKEY-TIMEOUT starts a handshake",
        {"a": (0.0, 20.0)},
        36.0,
        {("a", "initiation"): (span(0), span(35))},
        lose=lose_everything_after(19.0),
    ),
    Row(
        "6.5: persistent keepalives fill silence, and begin with a handshake",
        {},
        80.0,
        {
            ("a", "initiation"): (span(0),),
            ("b", "response"): (span(0),),
            ("a", "keepalive"): (span(0), span(25), span(50), span(75)),
        },
        persistent=25.0,
    ),
    Row(
        "5.1: a lost response is requested again",
        {"a": (0.0,)},
        9.0,
        {("a", "initiation"): (span(0), span(5)), ("b", "response"): (span(0), span(5))},
        lose=lose_kinds_of("b", RESPONSE, until=3.0),
    ),
]


def kind_of(datagram: bytes) -> str:
    names = {INITIATION: "initiation", RESPONSE: "response", COOKIE: "cookie"}
    return names.get(datagram[0]) or ("keepalive" if len(datagram) == KEEPALIVE else "data")


@pytest.mark.parametrize("row", TABLE, ids=[row.rule for row in TABLE])
def test_rule(row: Row) -> None:
    pair = Pair()
    pair.lose = lambda name, datagram: row.lose(pair, name, datagram)
    if row.persistent:
        pair.a.tunnel.set_persistent_keepalive(row.persistent, 0.0)
    moments = sorted((moment, name) for name, times in row.sends.items() for moment in times)
    for moment, name in moments:
        pair.run(moment)
        pair.send(pair.a if name == "a" else pair.b)
    pair.run(row.until)
    for (name, kind), spans in row.expect.items():
        times = [moment for moment, sender, datagram in pair.log if (sender, kind_of(datagram)) == (name, kind)]
        assert len(times) == len(spans), (name, kind, times)
        for moment, (earliest, latest) in zip(times, spans, strict=True):
            assert earliest <= moment <= latest, (name, kind, times)


# -- limits that no clock reaches in a test --------------------------------------------------------------------------


def session(side: Side) -> keypairs.Keypair[Any]:
    current = side.tunnel._keypairs.current
    assert current is not None
    return current


def test_rekey_after_messages_both_sides() -> None:
    for name in ("a", "b"):
        pair = Pair()
        pair.send(pair.a)
        side = pair.a if name == "a" else pair.b
        session(side).counter = constants.REKEY_AFTER_MESSAGES - 1
        pair.run(6.0)
        pair.send(side)
        assert pair.sent(name, INITIATION) == ([0.0] if name == "a" else []), "not before the limit is passed"
        pair.send(side)
        pair.run(13.0)
        assert len(pair.sent(name, INITIATION)) == (2 if name == "a" else 1)
        assert session(side).counter < 10


def test_reject_after_messages_stops_keypair() -> None:
    pair = Pair()
    pair.send(pair.a)
    last = session(pair.a)
    last.counter = constants.REJECT_AFTER_MESSAGES - 1
    (datagram, *_) = pair.a.tunnel.seal([pair.packet(pair.a)], 1.0)
    assert datagram[0] == TRANSPORT
    assert not pair.a.tunnel.is_ready(1.0), "the counter is used up"
    forged = bytearray(datagram)
    forged[8:16] = constants.REJECT_AFTER_MESSAGES.to_bytes(8, "little")
    before = len(pair.b.inbox)
    pair.b.device.receive_untrusted(bytes(forged), pair.a.place, 1.0)
    assert len(pair.b.inbox) == before
    pair.run(6.0)
    pair.send(pair.a, b"new keys")
    pair.run(12.0)
    assert pair.b.inbox[-1][40:48] == b"new keys"


def test_reject_then_zero_keys() -> None:
    pair = Pair()
    pair.send(pair.a)
    pair.lose = lambda *_: True
    assert pair.a.tunnel.is_ready(179.9) and not pair.a.tunnel.is_ready(180.0)
    pair.run(539.0)
    assert KeysExpired(pair.a.tunnel.remote) not in pair.a.events
    pair.run(541.0)
    assert KeysExpired(pair.a.tunnel.remote) in pair.a.events


def test_cookie_valid_two_minutes() -> None:
    pair = Pair()
    pair.b.device.always_under_load = True
    pair.send(pair.a)
    pair.run(6.0)
    assert HandshakeCompleted(pair.a.tunnel.remote) in pair.a.events
    jar = pair.a.tunnel._handshaker.jar
    for now, signed in ((6.0 + 100, True), (6.0 + handshake_cookie.COOKIE_LIFE, False)):
        assert (jar.sign(b"message", now)[-16:] != handshake_cookie.NO_MAC) == signed
    maker = handshake_cookie.CookieMaker(pair.b.device.local.public, pair.b.device._random)
    first = maker.cookie(b"source", 0.0)
    assert maker.cookie(b"source", 119.9) == first != maker.cookie(b"source", 120.0)


def test_cookie_reply_waits_for_retry() -> None:
    """Section 6.6: otherwise an attacker with forged replies makes us send."""
    pair = Pair()
    pair.b.device.always_under_load = True
    pair.send(pair.a)
    pair.run(4.9)
    assert [kind_of(datagram) for _, _, datagram in pair.log] == ["initiation", "cookie"]
    pair.run(6.0)
    assert [kind_of(d) for _, _, d in pair.log] == ["initiation", "cookie", "initiation", "response", "data"]


def test_indices_fresh_for_every_handshake() -> None:
    pair = Pair()
    seen: list[int] = []
    for moment in (0.0, 200.0, 400.0):
        pair.run(moment)
        pair.send(pair.a)
        seen += [session(pair.a).local_index, session(pair.b).local_index]
    assert len(set(seen)) == len(seen)
    table = pair.b.device._sessions
    assert not set(seen[:4]) & table.keys(), "dead keys are forgotten"
    unknown = pair.b.device.stats.unknown_receiver
    pair.b.device.receive_untrusted(
        bytes((4, 0, 0, 0)) + seen[1].to_bytes(4, "little") + bytes(40), pair.a.place, pair.now
    )
    assert pair.b.device.stats.unknown_receiver == unknown + 1


def test_source_follows_genuine_datagrams_only() -> None:
    """Section 2.1 (roaming): the last authenticated packet determines the peer's address."""
    pair = Pair()
    pair.send(pair.a)
    (genuine,) = pair.a.tunnel.seal([pair.packet(pair.a)], 1.0)
    forged = genuine[:-1] + bytes((genuine[-1] ^ 1,))
    for datagram, source, follows in (
        (forged, ("198.51.100.1", 1), False),
        (genuine, ("198.51.100.2", 2), True),
        (genuine, ("198.51.100.3", 3), False),
    ):
        received = pair.b.device.receive_untrusted(datagram, source, 1.0)
        assert (pair.b.tunnel.source == source) == follows, "a replayed datagram does not change the source"
        assert (Roamed(pair.b.tunnel.remote, source) in received.events) == follows


def test_give_up_drops_staged_packets() -> None:
    pair = Pair()
    pair.lose = lambda *_: pair.now < 100
    pair.send(pair.a, b"lost")
    pair.run(150.0)
    assert HandshakeGaveUp(pair.a.tunnel.remote) in pair.a.events
    pair.send(pair.a, b"fresh")
    assert [packet[40:45] for packet in pair.b.inbox] == [b"fresh"]


def test_clock_jump_only_expires_sessions() -> None:
    """A laptop sleeps for a day: keys are expired, the next packet creates new ones."""
    pair = Pair()
    pair.send(pair.a)
    pair.now += 86_400
    for side in (pair.a, pair.b):
        pair.take(side, side.device.on_timer(pair.now))
    pair.send(pair.b, b"good morning")
    assert pair.a.inbox[-1][40:52] == b"good morning"
