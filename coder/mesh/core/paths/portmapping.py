"""A mapped port of the router: requesting, renewing, releasing.

Lives here: the exchange with one router as a table and one function per event. Router and socket are
`drivers/portmap.py`'s, the messages `wire/portmap.py`'s.
Obeys RFC 6887 (PCP; 11.2.1 renewal) and RFC 6886 (NAT-PMP) for routers without PCP. Why no UPnP:
docs/decisions/port-mapping.md.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from ipaddress import ip_address

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.wire import portmap
from coder.mesh.core.wire.portmap import NONCE_SIZE, PcpMap, PcpMapped, PmpAddress, PmpAddressRequest, PmpMap, PmpMapped

LIFETIME = 7200
"""Requested seconds of a mapping: RFC 6886 section 3.3 recommends it, and after a crash the hole stays open no
longer."""
SHORTEST, LONGEST = 120, 86_400
"""Ours: bounds of the lifetime accepted from a router; renewal comes after half of it."""
WAITS = (0.25, 0.5, 1.0, 2.0)
"""Ours, seconds between repetitions: the router is one hop away, and most do not answer at all. RFC 6887 begins with
three seconds and never ends; a direct path is needed sooner."""
ASK_AGAIN = 1800.0
"""Seconds a refusal or silence holds (RFC 6887 section 7.4: thirty minutes for permanent errors)."""


class MappingState(Enum):
    """State of the exchange with the router."""

    IDLE = "idle"
    """No mapping is requested."""
    ASKING_PCP = "asking by PCP"
    ASKING_PMP = "asking by NAT-PMP"
    MAPPED = "mapped"
    REFUSED = "refused"
    """The router refused."""
    SILENT = "silent"
    """The router never answered: no such service."""


class MappingEvent(Enum):
    """Events of the exchange."""

    WANTED = "a mapping is wanted"
    GRANTED = "granted"
    REFUSAL = "refused"
    OLDER_VERSION = "knows NAT-PMP only"
    NO_ANSWER = "no answer"
    TIME_TO_ASK = "half its life, or half an hour is over"
    UNWANTED = "nothing is wanted any longer"


_ASKING = (MappingState.ASKING_PCP, MappingState.ASKING_PMP)
TABLE: dict[tuple[MappingState, MappingEvent], MappingState] = {
    **{(state, MappingEvent.WANTED): MappingState.ASKING_PCP for state in MappingState},
    **{(state, MappingEvent.UNWANTED): MappingState.IDLE for state in MappingState},
    (MappingState.ASKING_PCP, MappingEvent.GRANTED): MappingState.MAPPED,
    (MappingState.ASKING_PCP, MappingEvent.REFUSAL): MappingState.REFUSED,
    (MappingState.ASKING_PCP, MappingEvent.OLDER_VERSION): MappingState.ASKING_PMP,
    # A router may drop unknown messages instead of answering with an error.
    (MappingState.ASKING_PCP, MappingEvent.NO_ANSWER): MappingState.ASKING_PMP,
    (MappingState.ASKING_PMP, MappingEvent.GRANTED): MappingState.MAPPED,
    (MappingState.ASKING_PMP, MappingEvent.REFUSAL): MappingState.REFUSED,
    (MappingState.ASKING_PMP, MappingEvent.NO_ANSWER): MappingState.SILENT,
    (MappingState.MAPPED, MappingEvent.TIME_TO_ASK): MappingState.ASKING_PCP,
    (MappingState.REFUSED, MappingEvent.TIME_TO_ASK): MappingState.ASKING_PCP,
    (MappingState.SILENT, MappingEvent.TIME_TO_ASK): MappingState.ASKING_PCP,
}
"""Other transitions are errors. Renewal tries PCP again: a router may have new firmware."""


class PortMapping:
    """A UDP port of ours and a router. Time in seconds on any monotonic clock."""

    __slots__ = (
        "_by_pcp",
        "_client",
        "_due",
        "_expires",
        "_external_ip",
        "_nonce",
        "_port",
        "_random",
        "_requested_port",
        "_tries",
        "external",
        "protocol",
        "state",
    )

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self.state = MappingState.IDLE
        self.external: Address | None = None
        """Address by which the router lets others reach us; None without a mapping."""
        self.protocol = ""
        """`PCP` or `NAT-PMP` once it has answered."""
        self._random = random
        self._client, self._port = "", 0
        # PCP only; NAT-PMP identifies mappings by port and source address.
        self._nonce = b""
        # The protocol of the mapping, which also has to release it.
        self._by_pcp = True
        self._due: float | None = None
        self._tries = 0
        self._expires: float | None = None
        self._external_ip = ""
        # The external port: ours at first, later the granted one.
        self._requested_port = 0

    def want(self, client: str, port: int, now: float) -> list[bytes]:
        """Request a mapping for this UDP port of our IPv4 address; return datagrams for the router."""
        self.external, self._expires, self._external_ip = None, None, ""
        self._client, self._port, self._requested_port = client, port, port
        # RFC 6887 section 11.1: the same nonce for all renewals; it shows the router that the mapping is ours.
        self._nonce = self._random(NONCE_SIZE)
        return self._step(MappingEvent.WANTED, now)

    def release(self, now: float) -> list[bytes]:
        """Release the mapping; return datagrams for the router. They are sent once: the lifetime covers their loss."""
        last: list[bytes] = []
        if self.external is not None:
            # A lifetime of zero deletes (RFC 6887 section 15, RFC 6886 section 3.4).
            last = [
                PcpMap(self._nonce, self._client, self._port, 0).encode()
                if self._by_pcp
                else PmpMap(self._port, 0).encode()
            ]
        self.external = None
        self._step(MappingEvent.UNWANTED, now)
        return last

    def next_wake(self) -> float | None:
        """Return when `on_timer` is due."""
        return min((at for at in (self._due, self._expires) if at is not None), default=None)

    def on_timer(self, now: float) -> list[bytes]:
        """Repeat, renew or give up; return datagrams for the router."""
        if self._expires is not None and now >= self._expires:
            self.external = self._expires = None
        if self._due is None or now < self._due:
            return []
        if self.state not in _ASKING:
            return self._step(MappingEvent.TIME_TO_ASK, now)
        # Under four seconds for each protocol: the relay is in use until a direct path exists.
        if self._tries >= len(WAITS):
            return self._step(MappingEvent.NO_ANSWER, now)
        return self._ask(now)

    def on_answer_untrusted(self, datagram: bytes, now: float) -> list[bytes]:
        """Process a message of the router; return datagrams for it. Raises WireError when it is no answer."""
        answer = portmap.parse_answer_untrusted(datagram)
        # Late, or for an earlier user of this port: no request of ours is outstanding.
        if self.state in (MappingState.IDLE, MappingState.SILENT):
            return []
        if isinstance(answer, portmap.Refused):
            # RFC 6887 appendix A: a router with NAT-PMP only says so in its own version of the header.
            if self.state is MappingState.ASKING_PCP and answer.result == portmap.UNSUPPORTED_VERSION:
                return self._step(MappingEvent.OLDER_VERSION, now)
            return self._step(MappingEvent.REFUSAL, now) if self.state in _ASKING else []
        if isinstance(answer, PcpMapped):
            # RFC 6887 section 11.4: for another mapping, or from a sender that did not see our request.
            if answer.nonce != self._nonce or answer.port != self._port:
                return []
            return self._granted(answer.result, answer.external, answer.lifetime, now, by_pcp=True)
        if isinstance(answer, PmpAddress):
            if answer.result == portmap.SUCCESS:
                # NAT-PMP answers in two datagrams; the address comes separately and says nothing of the mapping.
                self._external_ip = answer.ip
            return []
        if answer.port != self._port:
            return []
        return self._granted_by_pmp(answer, now)

    def _granted_by_pmp(self, answer: PmpMapped, now: float) -> list[bytes]:
        if answer.result == portmap.SUCCESS and not self._external_ip:
            # The answers were reordered or one was lost: the address is requested once more, and the mapping with it.
            return []
        external = (self._external_ip, answer.external_port)
        return self._granted(answer.result, external, answer.lifetime, now, by_pcp=False)

    def _granted(self, result: int, external: Address, lifetime: int, now: float, *, by_pcp: bool) -> list[bytes]:
        if self.state not in _ASKING:
            return []
        self.protocol = "PCP" if by_pcp else "NAT-PMP"
        if result == portmap.UNSUPPORTED_VERSION and self.state is MappingState.ASKING_PCP:
            return self._step(MappingEvent.OLDER_VERSION, now)
        # A success without a lifetime, or to an unreachable address, is in effect a refusal.
        if result != portmap.SUCCESS or not lifetime or not _reachable(external):
            return self._step(MappingEvent.REFUSAL, now)
        self._by_pcp = by_pcp
        lifetime = min(max(lifetime, SHORTEST), LONGEST)
        # RFC 6887 section 8.5 would have us watch the epoch for a router that restarted. Renewal after half the life
        # detects it, an hour late at most (docs/decisions/port-mapping.md).
        self.external, self._requested_port = external, external[1]
        more = self._step(MappingEvent.GRANTED, now)
        # RFC 6887 section 11.2.1 renews between half and five eighths of the lifetime. Both: should renewal fail, the
        # mapping still expires when the router says so.
        self._expires, self._due = now + lifetime, now + lifetime / 2
        return more

    def _step(self, event: MappingEvent, now: float) -> list[bytes]:
        self.state = TABLE[self.state, event]
        self._due, self._tries = None, 0
        if self.state in _ASKING:
            return self._ask(now)
        if self.state is not MappingState.MAPPED:
            self.external = self._expires = None
        if self.state in (MappingState.REFUSED, MappingState.SILENT):
            self._due = now + ASK_AGAIN
        return []

    def _ask(self, now: float) -> list[bytes]:
        # No more tries than waits: `on_timer` gives up before.
        self._due = now + WAITS[self._tries]
        self._tries += 1
        if self.state is MappingState.ASKING_PCP:
            # After the first grant the same address and port are requested again: they were published to peers.
            suggested_ip = self.external[0] if self.external else "0.0.0.0"
            request = PcpMap(self._nonce, self._client, self._port, LIFETIME, self._requested_port, suggested_ip)
            return [request.encode()]
        return [PmpAddressRequest().encode(), PmpMap(self._port, LIFETIME, self._requested_port).encode()]


def _reachable(external: Address) -> bool:
    """Return whether others can reach the address; a router behind another router grants an unreachable one."""
    ip = ip_address(external[0])
    return external[1] > 0 and not (ip.is_unspecified or ip.is_multicast or ip.is_loopback or ip.is_link_local)
