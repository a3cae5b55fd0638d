"""Links opened without an upgrade: the handler sees an ordinary request for one and gets a carried stream.

The request names the protocol in `Coder-Carry`, because a proxy on the way would have removed `Upgrade`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from coder.appproxy.upgrades.raw_links import Upgrade, UpgradeRequest
from coder.net.carried_stream import CARRIER, CARRY

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.network.carried_streams import CarriedServerStream

_HOP_BY_HOP = {"upgrade", "connection", "sec-websocket-accept"}


def is_carried(request: UpgradeRequest) -> bool:
    """Return whether the request is for a carried stream instead of an upgrade."""
    return request.method == "POST" and CARRY.lower() in request.headers


class CarriedUpgrade(Upgrade):
    """Upgrade that answers 200 with the stream's id; the following bytes are those after a 101."""

    def __init__(
        self,
        ctx: Context,
        request: UpgradeRequest,
        params: Mapping[str, str],
        stream: trio.abc.HalfCloseableStream,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(_as_upgrade(request), params, stream, b"", headers)
        self._streams = ctx.services.relay.carried_streams
        self._carried: CarriedServerStream | None = None

    async def _answer(self, status: int, fields: Iterable[tuple[str, str]]) -> None:
        if status != 101:
            await super()._answer(status, fields)
            return
        ident, carried = self._streams.open(self.request.remote_ip, anonymous=self.anonymous)
        self._carried = carried
        kept = [(name, value) for name, value in fields if name.lower() not in _HOP_BY_HOP]
        try:
            await super()._answer(
                200,
                [
                    *kept,
                    (CARRIER, ident),
                    ("content-length", "0"),
                    ("cache-control", "no-store"),
                    ("connection", "close"),
                ],
            )
            await self._stream.aclose()
        except BaseException:
            carried.abort()
            raise
        self._stream = carried

    async def end(self) -> None:
        """End the stream after the handler has returned: pending output is still delivered."""
        if self._carried is not None:
            await trio.aclose_forcefully(self._carried)


def _as_upgrade(request: UpgradeRequest) -> UpgradeRequest:
    protocol = request.headers[CARRY.lower()]
    headers = {**request.headers, "connection": "Upgrade", "upgrade": protocol}
    if protocol.lower() == "websocket":
        headers["sec-websocket-version"] = "13"
        headers["sec-websocket-key"] = base64.b64encode(os.urandom(16)).decode()
    return replace(request, method="GET", headers=headers)
