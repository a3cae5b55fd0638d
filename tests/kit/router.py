"""A home router that maps ports: PCP, NAT-PMP or neither, obliging or not."""

from __future__ import annotations

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import portmap
from coder.mesh.core.wire.portmap import PcpMap, PcpMapped, PmpAddress, PmpAskAddress, PmpMapped, Refused


class Router:
    """The service's memory; `answer_untrusted` is all it does. `mappings`: inside port -> (outside port, lifetime)."""

    def __init__(self, outside: str, *, speaks: str = "PCP", result: int = 0, taken: set[int] | None = None) -> None:
        self.outside = outside
        self.speaks = speaks
        self.result = result
        self.taken = taken or set()
        self.mappings: dict[int, tuple[int, int]] = {}
        self.asked: list[portmap.Request] = []

    def answer_untrusted(self, datagram: bytes) -> list[bytes]:
        """What goes back to whoever sent it."""
        request = portmap.parse_request_untrusted(datagram)
        self.asked.append(request)
        if not self.speaks:
            return []
        if isinstance(request, PcpMap):
            if self.speaks != "PCP":
                return [Refused(portmap.NAT_PMP, portmap.UNSUPPORTED_VERSION).encode()]
            port, lifetime = self._map(request.port, request.wanted_port, request.lifetime)
            return [PcpMapped(self.result, lifetime, 1, request.nonce, request.port, (self.outside, port)).encode()]
        if isinstance(request, PmpAskAddress):
            return [PmpAddress(self.result, 1, self.outside).encode()]
        port, lifetime = self._map(request.port, request.wanted_port, request.lifetime)
        return [PmpMapped(self.result, 1, request.port, port, lifetime).encode()]

    def _map(self, inside: int, wanted: int, lifetime: int) -> tuple[int, int]:
        if self.result:
            return 0, lifetime
        if not lifetime:
            self.mappings.pop(inside, None)
            return 0, 0
        outside = wanted or inside
        while outside in self.taken:
            outside += 1
        self.mappings[inside] = (outside, lifetime)
        return outside, lifetime


async def serve_router(
    router: Router, host: str, port: int = 0, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answers on UDP for ever; starts with the port."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sock:
        await sock.bind((host, port))
        task_status.started(sock.getsockname()[1])
        while True:
            datagram, source = await sock.recvfrom(2048)
            try:
                answers = router.answer_untrusted(datagram)
            except WireError:
                continue
            for answer in answers:
                await sock.sendto(answer, source)
