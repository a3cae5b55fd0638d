"""Process that keeps a user's overlay warm: one mesh node per deployment, one tunnel per agent in use.

Commands request streams from it (shared_link.py). The command server forks it, and it exits with that. A tunnel stays
open for some idle minutes, so that the next command finds a direct path. Permission is checked twice: each command asks
the server, and the server checks every tunnel and closes it when the permission is lost, which cuts its streams.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Generic, TypeVar
from uuid import UUID

import msgspec
import trio

from coder.base.errors import CoderError
from coder.base.json_types import JsonObject, as_object, as_text
from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.client.link import OverlayNode, WorkspaceLink, describe_path, explain_link, join_agent, open_overlay_node
from coder.client.overlay_wire import is_own, receive_frame, send_frame, token_digest
from coder.mesh.description import PingResult
from coder.net.policy import DialPolicy
from coder.net.splice import splice

IDLE_SECONDS = 600.0
"Seconds that an unused tunnel stays open; also the node after its last tunnel."
_log = get_logger("overlay")
V = TypeVar("V")


@dataclass(slots=True)
class _SharedEntry(Generic[V]):
    """Node or tunnel with its number of users."""

    ready: trio.Event = field(default_factory=trio.Event)
    value: V | None = None
    error: Exception | None = None
    users: set[trio.CancelScope] = field(default_factory=set)
    changed: trio.Event = field(default_factory=trio.Event)

    async def wait_unused(self) -> None:
        """Return after the idle time without users."""
        while True:
            changed = self.changed
            with trio.move_on_after(IDLE_SECONDS):
                await changed.wait()
                continue
            if not self.users:
                return

    def touch(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[V]:
        """Yield the value while it exists. Raise the error of its creation."""
        with trio.CancelScope() as scope:
            self.users.add(scope)
            self.touch()
            try:
                await self.ready.wait()
                if self.error is not None:
                    raise self.error
                if self.value is not None:
                    yield self.value
            finally:
                self.users.discard(scope)
                self.touch()


_Entries = dict[tuple[str, ...], _SharedEntry[V]]


class OverlayProcess:
    """Server of the user's commands, until cancelled."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._nodes: _Entries[OverlayNode] = {}
        self._tunnels: _Entries[WorkspaceLink] = {}

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve a request; its failure does not affect others."""
        async with stream:
            if not is_own(stream.socket):
                return
            try:
                await self._answer(stream, await receive_frame(stream))
            except CoderError as error:
                await _refuse(stream, error)
            except (OSError, ValueError, KeyError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                _log.debug("a request for the overlay failed", error=error)

    async def _answer(self, stream: trio.SocketStream, request: JsonObject) -> None:
        policy, direct, agent = policy_of(request), bool(request["direct"]), UUID(str(request["agent"]))
        async with self._tunnel(policy, direct, agent) as link:
            await link.wait_reachable()
            match request["verb"]:
                case "reach":
                    await send_frame(stream, {"regions": {str(number): name for number, name in link.regions.items()}})
                case "ping":
                    await send_frame(stream, {"ping": asdict(await link.ping())})
                case "explain":
                    last = msgspec.convert(request["last"], PingResult) if request["last"] else None
                    transports = [asdict(verdict) for verdict in explain_link(link, last)]
                    await send_frame(stream, {"transports": transports, "path": describe_path(link, last)})
                case "connect":
                    remote = await link.connect(int(str(request["port"])))
                    async with remote:
                        await send_frame(stream, {})
                        await splice(stream, remote)

    @asynccontextmanager
    async def _tunnel(self, policy: DialPolicy, direct: bool, agent: UUID) -> AsyncIterator[WorkspaceLink]:
        token = policy.token.reveal() if policy.token else ""
        node_key = (policy.url, token_digest(token), str(direct), repr(sorted(policy.proxies.items())))
        node = self._get_or_open(
            self._nodes,
            node_key,
            lambda entry: _run_entry(self._nodes, entry, node_key, open_overlay_node(policy, agent, direct=direct)),
        )
        name = (*node_key, str(agent))
        tunnel = self._get_or_open(self._tunnels, name, lambda entry: self._join(entry, name, node, agent))
        async with tunnel.used() as link:
            yield link

    def _get_or_open(
        self,
        entries: _Entries[V],
        name: tuple[str, ...],
        begin: Callable[[_SharedEntry[V]], Awaitable[None]],
    ) -> _SharedEntry[V]:
        entry = entries.get(name)
        if entry is None:
            entry = entries[name] = _SharedEntry()
            self._nursery.start_soon(begin, entry)
        return entry

    async def _join(
        self, entry: _SharedEntry[WorkspaceLink], name: tuple[str, ...], node: _SharedEntry[OverlayNode], agent: UUID
    ) -> None:
        async def join() -> None:
            async with node.used() as overlay:
                await _run_entry(self._tunnels, entry, name, join_agent(overlay, agent, ends_when_refused=True))

        try:
            await join()
        except Exception as error:
            _fail(self._tunnels, entry, name, error)
        if not entry.ready.is_set():
            _fail(self._tunnels, entry, name, CoderError("overlay", "the mesh node ended"))


async def _run_entry(
    entries: _Entries[V], entry: _SharedEntry[V], name: tuple[str, ...], manager: AbstractAsyncContextManager[V]
) -> None:
    """Open the value and keep it until it fails or is unused; then cancel its users."""
    try:
        async with manager as entry.value:
            entry.ready.set()
            await entry.wait_unused()
            entries.pop(name, None)  # later users open a new one
    except Exception as error:
        _fail(entries, entry, name, error)
    finally:
        if entries.get(name) is entry:
            del entries[name]
        for scope in list(entry.users):
            if entry.error is None or entry.value is not None:
                scope.cancel()


def _fail(entries: _Entries[V], entry: _SharedEntry[V], name: tuple[str, ...], error: Exception) -> None:
    cause = error
    while isinstance(cause, ExceptionGroup):
        cause = cause.exceptions[0]
    entry.error = cause if isinstance(cause, CoderError) else CoderError("overlay", "the shared overlay failed")
    entry.ready.set()
    if entries.get(name) is entry:
        del entries[name]
    _log.debug("a shared tunnel ended", error=cause)


def policy_of(request: JsonObject) -> DialPolicy:
    """Return the dial policy of the user's configuration directory. Raise CoderError if the request's differs."""
    directory, base = Path(as_text(request["directory"])), as_text(request["url"])
    url, token = ((directory / name).read_text(encoding="utf-8").strip() for name in ("url", "session"))
    if token_digest(token) != request["token"] or url.rstrip("/") != base:
        raise CoderError("overlay", "the session differs from that of the configuration directory")
    return DialPolicy(
        url=base,
        token=Secret(token),
        proxies={scheme: as_text(proxy) for scheme, proxy in as_object(request["proxies"]).items()},
    )


async def _refuse(stream: trio.SocketStream, error: CoderError) -> None:
    try:
        await send_frame(stream, {"error": [error.code, error.message, error.hint]})
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the requester has disconnected


async def serve_overlay(listening: socket.socket, parent: int) -> None:
    """Run until `parent`, a descriptor of the command server, is closed."""
    listening.setblocking(False)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    async with trio.open_nursery() as nursery:
        process = OverlayProcess(nursery)
        nursery.start_soon(trio.serve_listeners, process.serve, [listener])
        await trio.lowlevel.wait_readable(parent)
        nursery.cancel_scope.cancel()
