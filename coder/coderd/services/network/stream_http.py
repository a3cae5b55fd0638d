"""An HTTP request on a stream to a peer of the overlay, with failures as errors of the API."""

from __future__ import annotations

import trio

from coder.api.base.refusals import BadGateway
from coder.net import stream_exchange
from coder.net.errors import NetError
from coder.net.stream_exchange import StreamAnswer as AgentAnswer

__all__ = ["AgentAnswer", "exchange"]


async def exchange(
    stream: trio.abc.Stream, method: str, path: str, *, host: str = "agent", content: bytes = b""
) -> AgentAnswer:
    """Exchange a request and its answer, as `stream_exchange.exchange` does.

    Raises BadGateway, h11.RemoteProtocolError, trio.BrokenResourceError.
    """
    try:
        return await stream_exchange.exchange(stream, method, path, host=host, content=content)
    except NetError as error:
        raise BadGateway(f"{error.message[:1].upper()}{error.message[1:]}.") from error
