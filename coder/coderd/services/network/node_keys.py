"""Ownership of node keys: the keys in a node, and the table of the owners that announced them first.

Peers identify each other by public keys, which they learn only from the coordinator. A peer that announced a foreign
key would receive its owner's packets. A key belongs to the first owner that announces it: a user, a workspace, a proxy
or a daemon (`owner`). Ownership holds at every replica and after a restart, when an attacker could be faster than the
owner. Keys that were not announced for long are deleted from the table (`loops/purge.py`).

The pure rules (`domain/network/coordination.py`) refuse the same key at two *present* peers of one owner.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from google.protobuf.message import DecodeError

from coder.base.log import get_logger
from coder.coderd.store.network import node_keys as store
from coder.mesh.errors import CryptoError
from coder.mesh.keys import PublicKey
from coder.rpc.proto import tailnet_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coder.coderd.services.foundation.context import Context

_PRIME = 2**255 - 19
_log = get_logger("coordinator")


def user_owner(user_id: UUID) -> str:
    return f"user {user_id}"


def workspace_owner(workspace_id: UUID) -> str:
    """Return the owner of agents' keys: a workspace's agents trust each other and keep their keys over builds."""
    return f"workspace {workspace_id}"


def proxy_owner(proxy_id: UUID) -> str:
    return f"proxy {proxy_id}"


def daemon_owner(daemon_id: UUID) -> str:
    """Return the owner of keys of a provisioner daemon, which joins for health checks."""
    return f"daemon {daemon_id}"


def keys_of_node(node: tailnet_pb2.Node) -> tuple[bytes, ...]:
    """Return a node's keys, prefixed by kind. Invalid keys are omitted: peers cannot use such a node."""
    keys = []
    with suppress(CryptoError):
        keys.append(b"n" + _canonical(PublicKey.from_binary_untrusted(node.key)))
    with suppress(CryptoError):
        keys.append(b"d" + _canonical(PublicKey.from_disco_text(node.disco)))
    return tuple(keys)


def keys_of_untrusted(body: bytes) -> tuple[bytes, ...]:
    """Return the keys of an encoded node; empty for a malformed node."""
    try:
        return keys_of_node(tailnet_pb2.Node.FromString(body))
    except DecodeError:
        return ()


def _canonical(key: bytes) -> bytes:
    """Return the canonical encoding of a point: RFC 7748, section 5, ignores the top bit and reduces modulo p."""
    number = int.from_bytes(key, "little") & ((1 << 255) - 1)
    return (number % _PRIME).to_bytes(32, "little")


async def announced_keys(ctx: Context, keys: Iterable[bytes]) -> set[bytes]:
    """Return those of the node keys that a peer has announced to a coordinator of this deployment."""
    wanted = {b"n" + _canonical(key): key for key in keys}
    try:
        found = await ctx.db.run(store.known_keys, list(wanted))
    except Exception as error:
        # They count as unknown, which costs their packets at most.
        _log.warn("the owners of keys could not be read", error=error)
        return set()
    return {wanted[key] for key in found}


async def explain_foreign_keys(ctx: Context, keys: Iterable[bytes], owner: str) -> str:
    """Claim keys for `owner`; return why it may not have them, empty when it owns them."""
    try:
        foreign = await ctx.db.run(store.claim_keys, list(keys), owner, ctx.clock.now())
    except Exception as error:
        # An unchecked key is refused: the peer reconnects once the database is back.
        _log.warn("the owner of a key could not be read", error=error)
        return "the node's keys cannot be checked now"
    return "" if not foreign else "another peer is known by this key"
