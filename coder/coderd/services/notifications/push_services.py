"""HTTP client for the push services of browsers.

A browser chooses the URL of its push service, so it is untrusted: the server connects only by HTTPS, only to public
addresses, and dials the very address it has checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from coder.base.errors import CoderError
from coder.domain.network.public_addresses import is_public
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


MAX_CONNECTIONS = 32
"""Connections to push services. Ours: a message to all users must not use up the server's sockets."""


_TIMEOUT = 10.0


class PushRefused(CoderError):  # noqa: N818 - named for what it says
    """A push service did not accept a message."""

    def __init__(self, reason: str, *, gone: bool = False) -> None:
        super().__init__("push_refused", reason)
        self.gone = gone


class PushServices:
    """Connections to push services."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.permits: Callable[[str], bool] = is_public
        "Whether an address may be dialled. Tests replace it, because their push service is on loopback."
        self.ca_file = ""
        self._connections = trio.Semaphore(MAX_CONNECTIONS)

    async def post(self, endpoint: str, headers: list[tuple[str, str]], body: bytes) -> int:
        """Send a message and return the status of the push service. Raises PushRefused."""
        async with self._connections:
            return await self._post(endpoint, headers, body)

    async def _post(self, endpoint: str, headers: list[tuple[str, str]], body: bytes) -> int:
        parts = urlsplit(endpoint)
        address = await self._address(parts.hostname or "", _port(endpoint))
        policy = DialPolicy(f"https://{parts.netloc}", ca_file=self.ca_file, address=address)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with trio.fail_after(_TIMEOUT):
                async with (
                    HttpClient(policy) as client,
                    client.stream("POST", path, body=body, headers=headers) as response,
                ):
                    return response.status  # the rest of the response may be endless
        except (NetError, OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
            raise PushRefused("the push service cannot be reached") from error

    async def _address(self, host: str, port: int) -> str:
        try:
            with trio.fail_after(_TIMEOUT):
                results = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        except (OSError, UnicodeError, trio.TooSlowError) as error:
            raise PushRefused(f"the push service {host} cannot be resolved") from error
        addresses = [str(address_info[0]) for *_, address_info in results]
        if not addresses or not all(self.permits(address) for address in addresses):
            raise PushRefused(f"the push service {host} is not on the public Internet")
        return addresses[0]


def _port(endpoint: str) -> int:
    return urlsplit(endpoint).port or 443
