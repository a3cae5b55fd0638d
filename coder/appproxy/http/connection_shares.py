"""Shares of clients in the connections of the process: one address keeps no other out.

Every connection is a file descriptor, memory, and a turn of the event loop. A connection is a stranger's until a
request on it has authenticated, then it is known. Strangers share their part of the descriptors by address
(`FairShares`): when it is full, the address with the most connections loses its oldest, and no address has more than
`_PER_ADDRESS` of it. Known connections move to a part of their own, which strangers never take; a user whose share
there is full stays among strangers.

A reverse proxy has one address for all of its clients. One that is named by `--proxy-trusted-origins` may use the whole
part of strangers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass

from coder.appproxy.http.client_address import network_of
from coder.base.log import get_logger
from coder.mesh.fair_shares import FairShares

if sys.platform != "win32":
    import resource

_log = get_logger("http.connections", per_minute=1)

OWN_FILES = 256
"""Descriptors that the process keeps for itself: database, uploads, children. A quarter where there are few."""
MAX_STRANGERS = 8192
"""Connections of all strangers; at some 50 KB each memory ends before descriptors do on most systems."""
_KNOWN_PART = 4
"""One part in so many is for known users only."""
_PER_ADDRESS = 4
"""One part in so many of the strangers' is the most for one address."""
_PER_ACCOUNT = 4
"""The same for an account in the part of known users."""
DEFAULT_FILES = 1 << 20
"""Where the system has no limit."""


@dataclass(slots=True, eq=False)
class ClientConnection:
    """An accepted connection."""

    holder: Hashable
    """Network of a stranger, or account of a known user."""
    close: Callable[[], None]
    """Ends it at once; called when it has to give way."""
    shares: ConnectionShares
    is_known: bool = False
    has_ended: bool = False


_current: ContextVar[ClientConnection | None] = ContextVar("client_connection", default=None)
"""Connection that the current task serves."""


def open_files_limit() -> int:
    """Return how many descriptors the process may have."""
    if sys.platform == "win32":
        return DEFAULT_FILES
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return DEFAULT_FILES if soft == resource.RLIM_INFINITY else soft


def promotion(account: str) -> Callable[[], None]:
    """Return a function that records later, from any task, that the current connection's client is known."""
    connection = _current.get()

    def promote() -> None:
        if connection is not None and not connection.is_known:
            connection.shares.promote(connection, account)

    return promote


def authenticated_as(account: str) -> None:
    """Record that the client of the current task's connection is known."""
    promotion(account)()


class ConnectionShares:
    """Connections of one listening process."""

    def __init__(self, files: int = 0, is_proxy: Callable[[str], bool] = lambda _: False) -> None:
        files = files or open_files_limit()
        room = max(files - min(OWN_FILES, files // 4), 4)
        self.max_strangers = min(MAX_STRANGERS, room - room // _KNOWN_PART)
        self.max_per_address = max(self.max_strangers // _PER_ADDRESS, 1)
        self.max_known = room - self.max_strangers
        self.max_per_account = max(self.max_known // _PER_ACCOUNT, 1)
        self._is_proxy = is_proxy
        self._strangers: FairShares[ClientConnection] = FairShares(self.max_strangers)
        self._known: FairShares[ClientConnection] = FairShares(self.max_known)

    def __len__(self) -> int:
        return len(self._strangers) + len(self._known)

    def admit(self, address: str, close: Callable[[], None]) -> ClientConnection | None:
        """Record a new connection from an address, and make it the current task's; None: it has to be closed."""
        network, strangers = network_of(address), self._strangers
        if strangers.count(network) >= self.max_per_address and not self._is_proxy(address):
            _log.warn("connections are refused: one address has too many", address=address)
            return None
        if strangers.is_full:
            victim = strangers.evictable_for(network)
            if victim is None:
                _log.warn("connections are refused: there are too many", address=address)
                return None
            _log.warn("connections are closed for those of other addresses", address=victim.holder)
            strangers.discard(victim.holder, victim)
            victim.close()
        connection = ClientConnection(network, close, self)
        strangers.add(network, connection)
        _current.set(connection)
        return connection

    def promote(self, connection: ClientConnection, account: str) -> None:
        """Move a stranger's connection to the part of known users, if the account has room there."""
        known, account = self._known, f"account {account}"
        if connection.has_ended or known.is_full or known.count(account) >= self.max_per_account:
            return
        self._strangers.discard(connection.holder, connection)
        connection.holder, connection.is_known = account, True
        known.add(account, connection)

    def release(self, connection: ClientConnection) -> None:
        """Forget a connection that has ended."""
        connection.has_ended = True
        (self._known if connection.is_known else self._strangers).discard(connection.holder, connection)
