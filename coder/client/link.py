"""Link to a workspace agent: a mesh node, coordinated by the server, which is closed when the block ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from uuid import UUID

import trio

from coder.api.agents.agent_connection import AgentConnectionInfo
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.client.answers import read
from coder.mesh.description import Tap
from coder.mesh.errors import MeshError
from coder.mesh.node import Node, NodeConfig, PingResult, open_node
from coder.mesh.trace import Trace
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy, proxy_for
from coder.net.websocket import connect_websocket
from coder.rpc.session import Session, open_session
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_address, random_address, random_node_id
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.reconnect import keep_coordinated
from coder.tailnet.relay import RelayDialer, proxy_without_credentials
from coder.tailnet.resume_tokens import attach_resume_token
from coder.tailnet.verdicts import TransportVerdict

API_VERSION = "2.0"
"API version: coordination requires nothing newer, and every server supports it."
FINAL_STATUSES = {400, 401, 403, 404, 409, 500}
"Statuses of the first dial that are final, so that it is not retried (docs/protocol/rpc.md#dialling-again)."
REACH_TIMEOUT = 30.0


@dataclass(slots=True)
class LinkFacts:
    """Transports of a link and their state."""

    policy: DialPolicy | None = None
    relay: RelayDialer | None = None
    coordination: str = ""
    "Transport of coordination: `websocket` or `stream`; empty before the first session."
    is_disabled: bool = False
    "Whether direct paths are disabled on this side."
    is_blocked: bool = False
    "Whether the deployment forbids direct paths."
    stun_servers: int = 0


@dataclass(slots=True)
class WorkspaceLink:
    """Open link to an agent."""

    node: Node
    controller: Controller
    agent_id: UUID
    address: IPv6Address
    regions: dict[int, str] = field(default_factory=dict)
    "Names of the relay regions by id."
    facts: LinkFacts = field(default_factory=LinkFacts)
    "Facts about the link's transports; see `explain_link`."

    async def wait_reachable(self, timeout: float = REACH_TIMEOUT) -> None:
        """Return when the agent answers inside the tunnel. Raise CoderError after `timeout` seconds."""
        with trio.move_on_after(timeout):
            await self.controller.wait_reachable(self.agent_id)
            return
        raise CoderError(
            "unreachable",
            f"the workspace's agent did not answer within {timeout:g} s",
            "Check the agent's state with `coder show WORKSPACE` and the path with `coder ping WORKSPACE`.",
        )

    async def connect(self, port: int) -> trio.abc.HalfCloseableStream:
        """Open a TCP stream to a port of the agent."""
        try:
            return await self.node.tcp_connect(self.address, port)
        except MeshError as error:
            raise CoderError(
                "no_connection", f"no connection to port {port} of the workspace", "Check that a program listens there."
            ) from error

    async def ping(self) -> PingResult:
        """Ping the agent on the path in use. Raise CoderError if the ping is lost."""
        key = self.controller.public_key_of(self.agent_id)
        if key is None:
            raise CoderError("no_peer", "the agent has not joined the overlay yet")
        try:
            return await self.node.ping(key)
        except MeshError as error:
            raise CoderError("ping", "no answer") from error

    async def explain(self, last: PingResult | None) -> tuple[list[TransportVerdict], JsonObject]:
        """Return the transports in words and the path, after the last ping."""
        return explain_link(self, last), describe_path(self, last)


@dataclass(frozen=True, slots=True)
class OverlayNode:
    """Mesh node of a user in a deployment, which can reach any number of agents."""

    node: Node
    policy: DialPolicy
    direct: bool
    regions: dict[int, str]
    facts: LinkFacts


@asynccontextmanager
async def open_link(
    policy: DialPolicy, agent_id: UUID, *, direct: bool = True, tap: Tap | None = None, trace: Trace | None = None
) -> AsyncIterator[WorkspaceLink]:
    """Join the overlay to reach one agent. `tap` gets every inner packet, `trace` the events of the paths.

    Raise HttpError if the server rejects the request, NetError if it is unreachable.
    """
    async with (
        open_overlay_node(policy, agent_id, direct=direct, tap=tap, trace=trace) as overlay,
        join_agent(overlay, agent_id) as link,
    ):
        yield link


@asynccontextmanager
async def open_overlay_node(
    policy: DialPolicy, agent_id: UUID, *, direct: bool = True, tap: Tap | None = None, trace: Trace | None = None
) -> AsyncIterator[OverlayNode]:
    """Open a node with the deployment's relay map, which requires permission to see `agent_id`. Raise HttpError or
    NetError."""
    info = await _connection_info(policy, agent_id)
    relay = RelayDialer(policy, force_websockets=info.derp_force_websockets)
    facts = LinkFacts(policy, relay, "", not direct, info.disable_direct_connections)
    direct = direct and not facts.is_blocked
    config = NodeConfig(
        addresses=(random_address(),),
        derp_map=derpmap.with_embedded(derpmap.from_json(info.derp_map), policy.url),
        derp_dialer=relay,
        latency_probe=relay.probe,
        direct=direct,
        trace=trace,
        tap=tap,
    )
    facts.stun_servers = len(config.derp_map.stun_servers())
    regions = {number: region.region_name for number, region in config.derp_map.regions.items()}
    async with open_node(config) as node:
        yield OverlayNode(node, policy, direct, regions, facts)


@asynccontextmanager
async def join_agent(
    overlay: OverlayNode, agent_id: UUID, *, ends_when_refused: bool = False
) -> AsyncIterator[WorkspaceLink]:
    """Open a tunnel to an agent, coordinated by the server, which checks the user's permission.

    Without `ends_when_refused`, only the first rejection is raised; with it, also later ones.
    """
    ident, policy = agent_id, overlay.policy
    facts = replace(overlay.facts)

    @asynccontextmanager
    async def session(resume_token: str) -> AsyncIterator[Session]:
        path = f"/api/v2/workspaceagents/{agent_id}/coordinate?version={API_VERSION}"
        resume_path, headers = attach_resume_token(path, resume_token)
        socket = await connect_websocket(policy, resume_path, headers=headers)
        facts.coordination = socket.transport
        try:
            async with open_session(socket, "client", patient=True) as opened:
                yield opened
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)

    async def coordinate(controller: Controller) -> None:
        is_lost = _is_permission_lost if ends_when_refused else lambda _error: False
        await keep_coordinated(controller, session, is_final=_is_final, is_bad_token=_is_bad_token, is_lost=is_lost)

    node, direct = overlay.node, overlay.direct
    async with (
        open_controller(node, "source", number=random_node_id(), server_url=policy.url, direct=direct) as controller,
        trio.open_nursery() as nursery,
    ):
        controller.add_tunnel(ident)
        nursery.start_soon(coordinate, controller)
        yield WorkspaceLink(node, controller, ident, agent_address(ident), overlay.regions, facts)
        await controller.disconnect()
        nursery.cancel_scope.cancel()


def explain_link(link: WorkspaceLink, last: PingResult | None = None) -> list[TransportVerdict]:
    """Describe each transport of an open link in words: API, links, relay, UDP, direct path."""
    from coder.tailnet import verdicts

    facts, status = link.facts, link.node.status()
    lines = []
    if facts.policy is not None:
        origin = facts.policy.origin
        proxy = proxy_without_credentials(proxy_for(facts.policy, origin.hostname or "", origin.scheme))
        lines.append(verdicts.api(url=facts.policy.url, proxy=proxy, latency_s=None))
    lines.append(verdicts.links(facts.coordination))
    region = status.self_info.preferred_derp
    works = False
    for transport in facts.relay.transports(region) if facts.relay is not None else ():
        lines.append(verdicts.relay(transport.name, transport.verdict, is_needed=not works))
        works = works or transport.verdict == "works"
    seen = [str(endpoint) for endpoint in status.self_info.endpoints]
    servers = 0 if facts.is_disabled or facts.is_blocked else facts.stun_servers
    if not (facts.is_disabled or facts.is_blocked):
        address = seen[0] if seen else ""
        lines.append(
            verdicts.udp(
                works=status.udp_works,
                servers=servers,
                answered=status.stun_answers,
                address=address,
                mapping=verdicts.explain_mapping(status.port_mapping, status.mapped_endpoint),
            )
        )
    key = link.controller.public_key_of(link.agent_id)
    direct = last.endpoint if last is not None and last.via == "direct" else ""
    lines.append(
        verdicts.direct(
            endpoint=direct,
            is_disabled=facts.is_disabled,
            is_blocked=facts.is_blocked,
            udp_works=status.udp_works if servers else None,
            varies=status.mapping_varies,
            peer_endpoints=None if key is None else link.node.candidates_of(key),
        )
    )
    return lines


def describe_path(link: WorkspaceLink, last: PingResult | None = None) -> JsonObject:
    """Return the path of an open link, its latency, and the reason why it is not direct (None if it is)."""
    status = link.node.status()
    key = link.controller.public_key_of(link.agent_id)
    peer = next((peer for peer in status.peers if peer.public_key == key), None)
    home = status.self_info.preferred_derp
    took = status.self_info.derp_latency.get(f"{home}-v4")
    relay = next((relay for relay in status.relays if relay.region == home), None)
    direct = next(transport for transport in explain_link(link, last) if transport.name == "direct")
    handshake = peer.last_handshake if peer is not None else None
    return {
        "state": peer.path if peer is not None else "unknown",
        "endpoint": peer.endpoint if peer is not None else "",
        "coordination": link.facts.coordination,
        "relay_region_id": home,
        "relay_region": link.regions.get(home, ""),
        "relay_rung": relay.transport if relay is not None else "",
        "relay_latency_ms": None if took is None else round(took * 1000, 3),
        "last_handshake_seconds_ago": None if handshake is None else round(trio.current_time() - handshake, 3),
        "rx_bytes": peer.rx_bytes if peer is not None else 0,
        "tx_bytes": peer.tx_bytes if peer is not None else 0,
        "direct_bytes": peer.direct_bytes if peer is not None else 0,
        "relayed_bytes": peer.relayed_bytes if peer is not None else 0,
        "not_direct_because": None if direct.state == "ok" else direct.text,
        "to_be_direct": direct.hint or None,
    }


async def _connection_info(policy: DialPolicy, agent_id: UUID) -> AgentConnectionInfo:
    async with HttpClient(policy) as http:
        return read(await http.request("GET", f"/api/v2/workspaceagents/{agent_id}/connection"), AgentConnectionInfo)


def _is_final(error: Exception) -> bool:
    return isinstance(error, HttpError) and error.status in FINAL_STATUSES


def _is_permission_lost(error: Exception) -> bool:
    """Return whether the error is the API's own and final; a proxy's answer while the server restarts is not."""
    return isinstance(error, HttpError) and error.is_enveloped and error.status in {401, 403, 404}


def _is_bad_token(error: Exception) -> bool:
    return isinstance(error, HttpError) and any(item.get("field") == "resume_token" for item in error.validations)
