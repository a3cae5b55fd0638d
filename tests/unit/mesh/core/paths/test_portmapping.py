"""Port mapping: the messages, the exchange with several kinds of routers, and the cases without a request."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths import portmapping
from coder.mesh.core.paths.netcheck import own_endpoints
from coder.mesh.core.paths.portmapping import ASK_AGAIN, LIFETIME, TABLE, MappingEvent, MappingState, PortMapping
from coder.mesh.core.wire import portmap
from coder.mesh.core.wire.portmap import PcpMap, PcpMapped, PmpAddress, PmpAddressRequest, PmpMap, PmpMapped, Refused
from tests.kit.network.middleboxes import Router

OURS, OUTSIDE = "192.168.1.7", "203.0.113.5"
NONCE = bytes(range(12))


def test_requests_have_standard_bytes() -> None:
    mapped = "00000000000000000000ffff"
    assert PcpMap(NONCE, OURS, 41000, 7200, 41000).encode().hex() == (
        "02010000"
        + "00001c20"
        + mapped
        + "c0a80107"  # version 2, MAP, two hours, us
        + NONCE.hex()
        + "11000000"
        + "a028"
        + "a028"
        + mapped
        + "00000000"
    )
    assert PmpAddressRequest().encode().hex() == "0000"
    assert PmpMap(41000, 7200, 41001).encode().hex() == "00010000" + "a028a029" + "00001c20"


@pytest.mark.parametrize(
    "message",
    [PcpMap(NONCE, OURS, 41000, 7200, 5, OUTSIDE), PmpMap(41000, 7200, 5), PmpAddressRequest()],
    ids=lambda message: type(message).__name__,
)
def test_requests_round_trip(message: portmap.Request) -> None:
    assert portmap.parse_request_untrusted(message.encode()) == message


@pytest.mark.parametrize(
    "message",
    [
        PcpMapped(0, 7200, 77, NONCE, 41000, (OUTSIDE, 41001)),
        PmpAddress(0, 77, OUTSIDE),
        PmpMapped(0, 77, 41000, 41001, 7200),
        Refused(portmap.PCP, 1),
        Refused(portmap.NAT_PMP, 1),
    ],
    ids=lambda message: type(message).__name__,
)
def test_answers_round_trip(message: portmap.Answer) -> None:
    assert portmap.parse_answer_untrusted(message.encode()) == message


def exchange(mapping: PortMapping, requests: list[bytes], router: Router, now: float) -> None:
    """Exchange messages until both are silent."""
    while requests:
        answers = [answer for datagram in requests for answer in router.answer_untrusted(datagram)]
        requests = [more for answer in answers for more in mapping.on_answer_untrusted(answer, now)]


def wait(mapping: PortMapping, router: Router, until: float) -> None:
    while (at := mapping.next_wake()) is not None and at <= until:
        exchange(mapping, mapping.on_timer(at), router, at)


def mapped_by(router: Router) -> PortMapping:
    mapping = PortMapping(bytes)
    exchange(mapping, mapping.want(OURS, 41000, 0.0), router, 0.0)
    return mapping


@pytest.mark.parametrize("protocol", ["PCP", "NAT-PMP"])
def test_mapping_granted_renewed_released(protocol: str) -> None:
    router = Router(OUTSIDE, speaks=protocol)
    mapping = mapped_by(router)
    assert (mapping.state, mapping.protocol, mapping.external) == (MappingState.MAPPED, protocol, (OUTSIDE, 41000))
    assert router.mappings == {41000: (41000, LIFETIME)}
    router.asked.clear()
    wait(mapping, router, LIFETIME / 2)
    assert router.asked, "renewed at half its life"
    assert mapping.next_wake() == LIFETIME
    exchange(mapping, mapping.release(LIFETIME), router, LIFETIME)
    assert (router.mappings, mapping.external, mapping.next_wake()) == ({}, None, None)


def test_other_granted_port_requested_again() -> None:
    router = Router(OUTSIDE, taken={41000})
    mapping = mapped_by(router)
    assert mapping.external == (OUTSIDE, 41001)
    router.mappings.clear()  # it restarted and has lost its mappings
    wait(mapping, router, LIFETIME / 2)
    assert mapping.external == (OUTSIDE, 41001)


def test_silent_router_retried_later() -> None:
    router = Router(OUTSIDE, speaks="")
    mapping = mapped_by(router)
    wait(mapping, router, 60.0)
    assert (mapping.state, mapping.external, mapping.protocol) == (MappingState.SILENT, None, "")
    assert len(router.asked) == len(portmapping.WAITS) * 3, "PCP, then both requests of NAT-PMP"
    at = mapping.next_wake()
    assert at is not None
    assert 7 < at - ASK_AGAIN < 8
    router.speaks = "PCP"
    wait(mapping, router, at)
    assert mapping.external == (OUTSIDE, 41000)


def test_lost_answer_is_retried_soon() -> None:
    router = Router(OUTSIDE, speaks="")
    mapping = mapped_by(router)
    router.speaks = "PCP"
    wait(mapping, router, portmapping.WAITS[0])
    assert mapping.external == (OUTSIDE, 41000)


def test_refusal_holds_thirty_minutes() -> None:
    router = Router(OUTSIDE, result=portmap.NOT_AUTHORIZED)
    mapping = mapped_by(router)
    assert (mapping.state, mapping.external) == (MappingState.REFUSED, None)
    assert mapping.next_wake() == ASK_AGAIN
    router.result = portmap.SUCCESS
    wait(mapping, router, ASK_AGAIN)
    assert mapping.external == (OUTSIDE, 41000)


def test_mapping_without_renewal_expires() -> None:
    router = Router(OUTSIDE)
    mapping = mapped_by(router)
    router.speaks = ""
    wait(mapping, router, LIFETIME + 1)
    assert mapping.external is None


@pytest.mark.parametrize("outside", ["0.0.0.0", "127.0.0.1", "224.0.0.1"])
def test_unreachable_external_address_is_refusal(outside: str) -> None:
    assert mapped_by(Router(outside)).external is None


def test_answers_to_others_are_ignored() -> None:
    mapping = PortMapping(bytes)
    mapping.want(OURS, 41000, 0.0)
    for answer in (
        PcpMapped(0, 7200, 1, NONCE, 41000, (OUTSIDE, 41000)),  # another nonce
        PcpMapped(0, 7200, 1, bytes(12), 9, (OUTSIDE, 41000)),  # another port
        PmpMapped(0, 1, 9, 9, 7200),
    ):
        assert mapping.on_answer_untrusted(answer.encode(), 0.0) == []
    assert mapping.state is MappingState.ASKING_PCP
    with pytest.raises(WireError):
        mapping.on_answer_untrusted(b"hello", 0.0)


def test_every_state_reachable_and_leavable() -> None:
    for state, event in product(MappingState, (MappingEvent.WANTED, MappingEvent.UNWANTED)):
        assert (state, event) in TABLE
    assert set(TABLE.values()) == set(MappingState)


def test_mapped_port_is_first_endpoint() -> None:
    published: Callable[..., list[tuple[str, int]]] = own_endpoints
    seen, mapped = (OUTSIDE, 5), (OUTSIDE, 41000)
    assert published([seen], [OURS], 41000, 0, mapped=mapped)[:2] == [mapped, seen]
    assert published([mapped], [OURS], 41000, 0, mapped=mapped) == [mapped, (OURS, 41000)]
