"""The pinger of a peer: which candidate is pinged when, and how fast a dead path is left."""

import itertools
from collections.abc import Callable

from coder.mesh.core.paths.candidates import MAX_CANDIDATES, UNPROVEN_BURST, UNPROVEN_RATE, Address, Source, usable
from coder.mesh.core.paths.outstanding_pings import SendPing
from coder.mesh.core.paths.probing import Action, PeerPaths, PingAnswered, SendCallMeMaybe

A = ("203.0.113.9", 4000)
B = ("192.168.7.7", 5000)


def counter() -> Callable[[int], bytes]:
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def pings(actions: list[Action]) -> dict[Address | None, bytes]:
    return {action.to: action.tx for action in actions if isinstance(action, SendPing)}


class World:
    """Answers pings to the addresses that work, with a delay, until the given time."""

    def __init__(self, paths: PeerPaths, working: dict[Address, float]) -> None:
        self.paths = paths
        self.working = working
        self.now = 0.0
        self.inbox: list[tuple[float, bytes, Address]] = []
        self.calls = 0

    def apply(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, SendCallMeMaybe):
                self.calls += 1
            elif action.to in self.working:
                self.inbox.append((self.now + self.working[action.to], action.tx, action.to))

    def run(self, until: float, send_every: float | None = 0.1) -> None:
        next_send = self.now
        while self.now < until:
            self.inbox.sort()
            times = [until, self.paths.next_wake() or until]
            if send_every:
                times.append(next_send)
            if self.inbox:
                times.append(self.inbox[0][0])
            self.now = max(self.now, min(times))
            while self.inbox and self.inbox[0][0] <= self.now:
                _, tx, source = self.inbox.pop(0)
                self.paths.on_pong(tx, source, self.now)
            self.apply(self.paths.on_timer(self.now))
            if send_every and next_send <= self.now:
                self.apply(self.paths.on_send(self.now))
                next_send = self.now + send_every


def test_first_data_uses_relay() -> None:
    paths = PeerPaths(counter())
    assert paths.set_endpoints([A, B], 0.0) == [], "an idle peer is not probed"
    actions = paths.on_send(0.0)
    assert set(pings(actions)) == {A, B}
    assert actions[-1] == SendCallMeMaybe()
    assert paths.route(0.0) == (None, True)
    assert paths.on_send(0.1) == [], "each candidate once in five seconds"
    assert paths.on_pong(pings(actions)[A], A, 0.02) is True
    assert paths.route(0.02) == (A, False)


def test_no_candidates_no_call() -> None:
    paths = PeerPaths(counter())
    assert paths.on_send(0.0) == []
    assert paths.on_timer(3.0) == []


def test_unrequested_pongs_are_rejected() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    tx = pings(paths.on_send(0.0))[A]
    assert paths.on_pong(bytes(12), A, 0.01) is False
    assert paths.on_pong(tx, None, 0.01) is False, "a relayed pong cannot vouch for a UDP address"
    assert paths.on_pong(tx, A, 0.01) is False, "a transaction is used up by its first answer"


def test_pongs_to_expired_pings_rejected() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    tx = pings(paths.on_send(0.0))[A]
    paths.on_timer(5.0)
    assert paths.on_pong(tx, A, 5.0) is False


def test_dead_path_left_in_time() -> None:
    for tenth in range(60):
        paths = PeerPaths(counter())
        paths.set_endpoints([A], 0.0)
        world = World(paths, {A: 0.02})
        died = 20 + tenth / 10
        world.run(died)
        assert paths.route(died) == (A, False)
        world.working.clear()
        world.run(died + 5.0)
        assert paths.route(world.now)[1], f"no relay 5 s after a death at {died}"
        world.run(died + 20.0)
        assert paths.route(world.now) == (None, True)
        world.working[A] = 0.02
        world.run(world.now + 6.0)
        assert paths.route(world.now) == (A, False), "back to direct when it works again"


def test_slow_working_path_stays_trusted() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    world = World(paths, {A: 0.9})
    world.run(5.0)
    while world.now < 60:
        world.run(world.now + 0.25)
        assert paths.route(world.now) == (A, False)


def test_an_idle_session_falls_silent() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    world = World(paths, {A: 0.02})
    world.run(1.0)
    world.run(200.0, send_every=None)
    assert paths.next_wake() is None
    assert paths.route(world.now) == (None, True)


def test_only_slow_path_is_upgraded() -> None:
    for latency, expected in ((0.02, 2), (0.004, 0)):
        paths = PeerPaths(counter())
        paths.set_endpoints([A, B], 0.0)
        world = World(paths, {A: latency})
        world.run(10.0)
        calls = world.calls
        world.run(10.0 + 125.0)
        assert world.calls - calls == expected


def test_call_me_maybe_lifts_throttle() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    paths.on_send(0.0)
    actions = paths.on_call_me_maybe([B], 0.1)
    assert set(pings(actions)) == {A, B}
    assert SendCallMeMaybe() not in actions
    paths.on_call_me_maybe([], 0.2)
    assert set(paths.candidates.by_address) == {A}, "the new list replaces the one of the last call"


def test_new_address_ping_is_answered() -> None:
    paths = PeerPaths(counter())
    assert paths.on_ping(A, 0.0) == []
    paths.on_send(0.0)
    actions = paths.on_ping(B, 0.1)
    assert set(pings(actions)) == {B}
    assert paths.on_ping(B, 0.2) == []
    assert set(pings(paths.on_ping(B, 1.1))) == {B}


def test_discovered_addresses_expire_after_silence() -> None:
    paths = PeerPaths(counter())
    paths.on_ping(A, 0.0)
    assert paths.candidates.by_address[A].source is Source.DISCOVERED
    paths.on_send(311.0)
    assert len(paths.candidates) == 0


def test_overlay_candidates_rejected() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([("fe80::1", 1), ("fd60:627a:a42b::7", 1), ("10.0.0.1", 0), ("nonsense", 1), A], 0.0)
    assert set(paths.candidates.by_address) == {A}


def test_callers_get_current_path() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    outstanding = pings(paths.ask(7, 0.0))
    assert set(outstanding) == {None, A}
    assert paths.on_pong(outstanding[None], None, 0.05) == PingAnswered(7, 0.05, None)
    assert paths.relay_latency == 0.05
    assert paths.on_pong(outstanding[A], A, 0.06) == PingAnswered(7, 0.06, A)
    assert set(pings(paths.ask(8, 0.1))) == {A}


def test_direct_paths_can_be_disabled() -> None:
    paths = PeerPaths(counter(), direct=False)
    paths.set_endpoints([A], 0.0)
    assert paths.on_send(0.0) == []
    assert paths.on_call_me_maybe([B], 0.0) == []
    assert set(pings(paths.ask(1, 0.0))) == {None}
    assert paths.next_wake() == 5.0


def test_withdrawn_address_returns_to_relay() -> None:
    paths = PeerPaths(counter())
    paths.set_endpoints([A], 0.0)
    tx = pings(paths.on_send(0.0))[A]
    paths.on_pong(tx, A, 0.02)
    paths.set_endpoints([B], 1.0)
    assert paths.route(1.0) == (None, True)


def test_calls_do_not_flood_unproven_addresses() -> None:
    """A call of 2 kB must not make this node send 130 kB to machines of the caller's choice, as often as it calls."""
    paths = PeerPaths(counter())
    victims = [("198.51.100.7", port) for port in range(1, MAX_CANDIDATES + 1)]
    sent = 0
    for number in range(1000):
        now = number / 100
        sent += len(pings(paths.on_call_me_maybe(victims, now)))
        while (wake := paths.next_wake()) is not None and wake <= now:
            sent += len(pings(paths.on_timer(now)))
    assert MAX_CANDIDATES <= sent <= UNPROVEN_BURST + 10 * UNPROVEN_RATE + 1
    (tx,) = pings(paths.on_call_me_maybe([A], 20.0)).values()
    paths.on_pong(tx, A, 20.1)
    for number in range(100):
        assert pings(paths.on_call_me_maybe([A, *victims], 20.2 + number / 100)).get(A), "a proven address is pinged"


def test_replayed_pings_leave_room_for_peer() -> None:
    paths = PeerPaths(counter())
    paths.on_send(0.0)
    for port in range(1, 1000):
        paths.on_ping(("198.51.100.7", port), 0.1)
    assert len(paths.candidates) == MAX_CANDIDATES
    assert set(pings(paths.on_call_me_maybe([A], 30.0))) >= {A}
    paths.on_ping(B, 30.1)
    assert {A, B} <= paths.candidates.by_address.keys()


def test_broadcast_addresses_not_pinged() -> None:
    assert not usable(("255.255.255.255", 5)) and not usable(("240.0.0.1", 5)) and not usable(("224.0.0.1", 5))
    assert usable(("10.0.0.1", 5)) and usable(("127.0.0.1", 5)) and usable(("fd00::1", 5))
