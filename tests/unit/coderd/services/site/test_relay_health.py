"""Checks of relays: a silent node does not lose the results of others, and clients are closed."""

from __future__ import annotations

from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.coderd.services.site import relay_health
from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.errors import RelayError
from coder.mesh.relay import DerpTransport
from coder.tailnet.relay import RelayDialer


class Dialer:
    """Behaviour by node name: `silent` never answers, `gone` refuses, `half` accepts one client but no second."""

    def __init__(self) -> None:
        self.opened: list[trio.abc.Stream] = []

    async def probe(self, _region: DerpRegion, node: DerpNode) -> float:
        if node.name == "silent":
            await trio.sleep_forever()
        if node.name == "gone":
            raise RelayError("nothing listens there")
        return 0.001

    async def try_transport(self, _region: DerpRegion, node: DerpNode, _kind: str) -> DerpTransport:
        if self.opened:
            if node.name == "half":
                await trio.sleep_forever()
            raise OSError("no more sockets")
        self.opened.append(trio.testing.memory_stream_pair()[0])
        return DerpTransport(self.opened[0], b"")


async def look(*names: str) -> tuple[Dialer, relay_health._RegionResult]:
    nodes = tuple(DerpNode(name=name, region_id=7, host_name=f"{name}.test") for name in names)
    region = DerpRegion(7, "seven", "Seven", nodes=nodes)
    dialer = Dialer()
    return dialer, await relay_health._check_region(cast("RelayDialer", dialer), region)


async def test_silent_node_spares_others(autojump_clock: None) -> None:
    _, result = await look("silent", "gone", "silent")
    reports = result.report.node_reports
    assert [report.error for report in reports] == [
        "no answer within 20 s",
        "nothing listens there",
        "no answer within 20 s",
    ]
    assert [cast("Any", report.node)["Name"] for report in reports] == ["silent", "gone", "silent"]
    assert trio.current_time() < 30, "concurrently, and before the section times out"
    assert not result.report.healthy


@pytest.mark.parametrize(("name", "error"), [("half", "no answer within 20 s"), ("full", "no more sockets")])
async def test_first_client_closed_on_failure(name: str, error: str, autojump_clock: None) -> None:
    dialer, result = await look(name)
    assert result.report.node_reports[0].error == error
    (stream,) = dialer.opened
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_all(b"x")
