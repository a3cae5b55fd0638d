"""Conversion of nodes to and from the coordinator's messages (docs/protocol/coordination.md)."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from coder.base.log import get_logger
from coder.mesh.description import SelfInfo
from coder.mesh.errors import CryptoError
from coder.mesh.keys import PublicKey
from coder.rpc.proto import tailnet_pb2
from coder.tailnet.peers import PeerNode

_log = get_logger("tailnet")


def self_to_proto(info: SelfInfo, number: int, *, direct: bool) -> tailnet_pb2.Node:
    """Return our node as a message, without `as_of`."""
    prefixes = [f"{address}/{address.max_prefixlen}" for address in info.addresses]
    return tailnet_pb2.Node(
        id=number,
        key=info.public_key.binary,
        disco=info.disco_key.disco_text,
        preferred_derp=info.preferred_derp,
        derp_latency=dict(info.derp_latency),
        derp_forced_websocket=dict(info.forced_websocket),
        addresses=prefixes,
        allowed_ips=prefixes,
        endpoints=[str(endpoint) for endpoint in info.endpoints] if direct else [],
    )


def node_from_proto_untrusted(node: tailnet_pb2.Node) -> PeerNode | None:
    """Return the peer's node; None for an unusable one (bad keys), which counts as absent."""
    try:
        public = PublicKey.from_binary_untrusted(node.key)
        disco = PublicKey.from_disco_text(node.disco)
    except CryptoError as error:
        _log.warn("a peer's node is invalid", error=str(error))
        return None
    return PeerNode(
        public_key=public,
        disco_key=disco,
        preferred_derp=node.preferred_derp,
        allowed_ips=tuple(node.allowed_ips),
        endpoints=tuple(node.endpoints),
        as_of=_seconds(node.as_of),
    )


def _seconds(stamp: Timestamp) -> float:
    return stamp.seconds + stamp.nanos / 1e9
