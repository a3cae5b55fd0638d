"""Home region choice, STUN results, published endpoints, and the timer queue, peer map and relay routes of the
paths."""

from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.paths.netcheck import HomeChooser, Mappings, own_endpoints
from coder.mesh.core.paths.peermap import MAX_ADDRESSES, PeerMap
from coder.mesh.core.paths.relays import RelayRoutes
from coder.mesh.core.paths.timer_queue import TimerQueue


def region(number: int, *, stun_only: bool = False, avoid: bool = False, stun_port: int = 0) -> DerpRegion:
    node = DerpNode(f"{number}a", number, f"r{number}.test", stun_only=stun_only, stun_port=stun_port)
    return DerpRegion(number, f"r{number}", f"Region {number}", (node,), avoid=avoid)


def world(*regions: DerpRegion, score: dict[int, float] | None = None) -> DerpMap:
    return DerpMap({r.region_id: r for r in regions}, score or {})


def test_nearest_relay_becomes_home() -> None:
    chooser = HomeChooser()
    where = world(region(1), region(2), region(3, stun_only=True), region(4, avoid=True))
    assert chooser.on_report(where, {1: 0.05, 2: 0.02, 3: 0.001, 4: 0.001}, 0.0, 7) == 2


def test_home_changes_for_clear_gain() -> None:
    chooser = HomeChooser()
    where = world(region(1), region(2))
    chooser.on_report(where, {1: 0.030, 2: 0.050}, 0.0, 7)
    assert chooser.on_report(where, {1: 0.030, 2: 0.022}, 400.0, 7) == 1, "8 ms is not 10"
    assert chooser.on_report(where, {1: 0.100, 2: 0.080}, 800.0, 7) == 1, "20 % is not a third"
    assert chooser.on_report(where, {1: 0.100, 2: 0.040}, 1200.0, 7) == 2
    assert chooser.on_report(where, {1: 0.900}, 1600.0, 7) == 1, "a home that does not answer is left"


def test_best_of_five_minutes_counts() -> None:
    chooser = HomeChooser()
    where = world(region(1), region(2))
    chooser.on_report(where, {1: 0.010, 2: 0.020}, 0.0, 7)
    assert chooser.on_report(where, {1: 0.050, 2: 0.020}, 60.0, 7) == 1
    assert chooser.on_report(where, {1: 0.050, 2: 0.020}, 500.0, 7) == 2


def test_scores_multiply() -> None:
    chooser = HomeChooser()
    where = world(region(1), region(2), score={1: 4.0})
    assert chooser.on_report(where, {1: 0.010, 2: 0.030}, 0.0, 7) == 2


def test_unmeasured_home_is_kept() -> None:
    chooser = HomeChooser()
    where = world(region(1), region(2), region(3))
    first = chooser.on_report(where, {}, 0.0, 4)
    assert first == 2
    assert chooser.on_report(where, {}, 10.0, 5) == first
    assert HomeChooser().on_report(world(), {}, 0.0, 5) == 0


def test_stun_servers_of_map() -> None:
    where = world(region(1), region(2, stun_port=-1), region(3, stun_only=True, stun_port=19302))
    assert where.stun_servers() == [("r1.test", 3478), ("r3.test", 19302)]


def test_mapping_varies_when_servers_disagree() -> None:
    seen = Mappings()
    assert seen.on_answer(("192.0.2.1", 3478), ("203.0.113.9", 1000), 0.0)
    assert seen.varies is None
    assert not seen.on_answer(("192.0.2.2", 3478), ("203.0.113.9", 1000), 0.0)
    assert seen.varies is False
    assert seen.on_answer(("192.0.2.3", 3478), ("203.0.113.9", 1001), 0.0)
    assert seen.varies is True
    assert seen.fresh(26.0)
    assert not seen.fresh(27.0)
    assert seen.observed() == [("203.0.113.9", 1000), ("203.0.113.9", 1001)]


def test_published_endpoints_are_ordered() -> None:
    observed = [("203.0.113.9", 1000), ("2001:db8::9", 41)]
    assert own_endpoints(observed, ["10.0.0.5", "127.0.0.1", "fd00::5"], 40, 41) == [
        ("203.0.113.9", 1000),
        ("2001:db8::9", 41),
        ("203.0.113.9", 40),
        ("10.0.0.5", 40),
        ("fd00::5", 41),
    ]
    assert own_endpoints([], ["127.0.0.1", "::1"], 40, 0) == [("127.0.0.1", 40)]


def test_timer_queue_one_deadline_per_key() -> None:
    queue: TimerQueue[str] = TimerQueue()
    queue.set("a", 5.0)
    queue.set("b", 3.0)
    queue.set("a", 1.0)
    assert queue.next() == 1.0
    queue.set("a", 9.0)
    assert queue.next() == 3.0
    assert queue.pop_due(4.0) == ["b"]
    queue.set("a", None)
    assert queue.next() is None
    for i in range(1000):
        queue.set("a", float(i))
    assert queue.pop_due(2000.0) == ["a"]


def test_peer_map_follows_roaming_address() -> None:
    peers: PeerMap[str] = PeerMap()
    peers.learn(("192.0.2.1", 1), "alice", answered=False)
    peers.learn(("192.0.2.1", 1), "bob", answered=True)
    assert peers.by_address == {("192.0.2.1", 1): "bob"}
    for port in range(2 * MAX_ADDRESSES):
        peers.learn(("192.0.2.9", port), "carol", answered=False)
    assert len(peers.by_address) == MAX_ADDRESSES + 1
    peers.forget("carol")
    peers.forget("alice")
    assert peers.by_address == {("192.0.2.1", 1): "bob"}


def test_forged_ping_takes_no_address() -> None:
    """It would be forgotten with the forger's other addresses, and the victim's data dropped until its next ping."""
    peers: PeerMap[str] = PeerMap()
    peers.learn(("192.0.2.1", 1), "victim", answered=False)
    for port in range(2 * MAX_ADDRESSES):
        peers.learn(("192.0.2.1", 1), "forger", answered=False)
        peers.learn(("192.0.2.9", port), "forger", answered=False)
    assert peers.by_address[("192.0.2.1", 1)] == "victim"


def test_relay_route_prefers_last_region() -> None:
    routes = RelayRoutes()
    assert routes.region(b"k", 3) == 3
    routes.learn(b"k", 7)
    assert routes.region(b"k", 3) == 7
    routes.forget(b"k", 5)
    assert routes.region(b"k", 3) == 7
    routes.forget(b"k", 7)
    assert routes.region(b"k", 3) == 3
    routes.learn(b"k", 7)
    routes.forget_region(7)
    assert routes.region(b"k", 3) == 3
