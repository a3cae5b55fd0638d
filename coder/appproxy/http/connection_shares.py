"""Shares of clients in the connections of the process: one address keeps no other out.

Every connection is a file descriptor, memory, and a turn of the event loop. A connection is a stranger's until a
request on it has authenticated, then it is known. Strangers share their part of the descriptors by address
(`FairShares`): when it is full, the address with the most connections loses its oldest, and no address has more than
`_PER_ADDRESS` of it. Known connections move to a part of their own, which strangers never take; a user whose share
there is full stays among strangers.

Strangers also share the time of the event loop by address: every connection, request and piece of a body has a price
in seconds, and an address that has spent more than `LOOP_PART` of the time waits before it is read. What a connection
has cost is returned once it is known.

A reverse proxy has one address for all of its clients. One that is named by `--proxy-trusted-origins` may use the whole
part of strangers, and waits for nothing; the second also holds for programs on this machine (127.0.0.1 and ::1).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass

import trio

from coder.appproxy.http.client_address import network_of
from coder.appproxy.http.overload import OverloadSign
from coder.base.log import get_logger
from coder.base.open_files import open_files_limit
from coder.mesh.fair_shares import FairShares

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
LOOP_PART = 0.3
"""Part of the event loop's time for the strangers of one address."""
LOOP_BURST = 0.2
"""Seconds for which an address may use all of it."""
CONNECTION_COST, HANDSHAKE_COST, REQUEST_COST, READ_COST, CHUNK_COST = 0.001, 0.002, 0.0015, 0.0001, 0.00001
"""Ours, in seconds, as measured: accepting and closing; a TLS handshake; a request without authentication; reading a
piece of the stream; a chunk of a body."""
SIMPLE_COST = 0.0003
"""The same of a request that is answered at once (`simple_requests.py`)."""
_MAX_ALLOWANCES = 4096
"""Addresses whose spending is remembered at once; beyond, those that owe nothing are forgotten."""
_LOCAL = {"127.0.0.1", "::1"}


@dataclass(slots=True, eq=False)
class ClientConnection:
    """An accepted connection."""

    holder: Hashable
    """Network of a stranger, or account of a known user."""
    close: Callable[[], None]
    """Ends it at once; called when it has to give way."""
    shares: ConnectionShares
    network: str = ""
    """Empty: it pays nothing."""
    is_known: bool = False
    has_ended: bool = False
    spent: float = 0.0
    """Seconds of the event loop that its address has paid for it."""

    async def pay(self, cost: float) -> None:
        """Spend `cost` seconds of the event loop, and wait while the address of a stranger has spent too much."""
        delay = self.charge(cost)
        if delay > 0:
            await trio.sleep(delay)

    def refund(self) -> None:
        """Take back what was spent for this connection."""
        if self.network:
            self.shares.take_back(self.network, self.spent)
            self.spent = 0.0

    def charge(self, cost: float) -> float:
        """Spend `cost` seconds of the event loop; return how long the connection has to wait for that."""
        if not self.network or self.is_known:
            return 0.0
        self.spent += cost
        return self.shares.charge(self.network, cost)


_current: ContextVar[ClientConnection | None] = ContextVar("client_connection", default=None)
"""Connection that the current task serves."""


def serve_in_task(connection: ClientConnection) -> None:
    """Make a connection the current task's."""
    _current.set(connection)


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

    def __init__(
        self,
        files: int = 0,
        is_proxy: Callable[[str], bool] = lambda _: False,
        *,
        processes: int = 1,
        overload: OverloadSign | None = None,
    ) -> None:
        files = files or open_files_limit()
        room = max(files - min(OWN_FILES, files // 4), 4)
        # Descriptors are each process's own; the memory of all strangers is shared by the processes that accept.
        self.max_strangers = min(max(MAX_STRANGERS // processes, 1), room - room // _KNOWN_PART)
        self.max_per_address = max(self.max_strangers // _PER_ADDRESS, 1)
        self.max_known = room - self.max_strangers
        self.max_per_account = max(self.max_known // _PER_ACCOUNT, 1)
        self.overload = overload or OverloadSign()
        self._is_proxy = is_proxy
        self._strangers: FairShares[ClientConnection] = FairShares(self.max_strangers)
        self._known: FairShares[ClientConnection] = FairShares(self.max_known)
        self._paid_until: dict[str, float] = {}
        """Time up to which each network has used its part of the event loop."""

    def __len__(self) -> int:
        return len(self._strangers) + len(self._known)

    def refuses(self, address: str) -> bool:
        """Return whether an address has too many connections for another one."""
        if self._strangers.count(network_of(address)) < self.max_per_address or self._is_proxy(address):
            return False
        self.overload.set(address)
        _log.warn("connections are refused: one address has too many", address=address)
        return True

    def admit(self, address: str, close: Callable[[], None]) -> ClientConnection | None:
        """Record a new connection from an address; None: it has to be closed."""
        if self.refuses(address):
            return None
        network, strangers = network_of(address), self._strangers
        if strangers.is_full:
            victim = strangers.evictable_for(network)
            if victim is None:
                self.overload.set()
                _log.warn("connections are refused: there are too many", address=address)
                return None
            _log.warn("connections are closed for those of other addresses", address=str(victim.holder))
            self.overload.set(str(victim.holder))
            strangers.discard(victim.holder, victim)
            victim.close()
        pays = address not in _LOCAL and not self._is_proxy(address)
        connection = ClientConnection(network, close, self, network if pays else "")
        strangers.add(network, connection)
        return connection

    def promote(self, connection: ClientConnection, account: str) -> None:
        """Move a stranger's connection to the part of known users, if the account has room there."""
        known, account = self._known, f"account {account}"
        connection.refund()
        if connection.has_ended or known.is_full or known.count(account) >= self.max_per_account:
            return
        self._strangers.discard(connection.holder, connection)
        connection.holder, connection.is_known = account, True
        known.add(account, connection)

    def charge(self, network: str, cost: float) -> float:
        """Let a network spend seconds of the event loop; return how long it has to wait for that."""
        now = trio.current_time()
        if network not in self._paid_until and len(self._paid_until) >= _MAX_ALLOWANCES:
            self._paid_until = {other: until for other, until in self._paid_until.items() if until > now}
        until = max(self._paid_until.get(network, now), now) + cost / LOOP_PART
        self._paid_until[network] = until
        return until - now - LOOP_BURST

    def take_back(self, network: str, cost: float) -> None:
        """Let a network have seconds of the event loop again that it spent."""
        if network in self._paid_until:
            self._paid_until[network] -= cost / LOOP_PART

    def release(self, connection: ClientConnection) -> None:
        """Forget a connection that has ended."""
        connection.has_ended = True
        (self._known if connection.is_known else self._strangers).discard(connection.holder, connection)
