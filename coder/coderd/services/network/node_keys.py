"""Whose a node's keys are: the keys in a node, and the table that says who announced them first.

Peers tell each other apart by their public keys, and learn them from the coordinator alone. So whoever announced a
foreign key would take its owner's packets away. A key is nobody's before it is announced for the first time, and then
belongs to who announced it: a user, a workspace, a proxy, a daemon (`owner`), at every replica and after a restart,
when the wrong one could be quicker. The table forgets keys that were not announced for long (`loops/purge.py`).

That two *present* peers of one owner have the same key is refused by the pure rules (`domain/network/coordination.py`).
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
    """Agents of one workspace trust each other, and an agent keeps its key over builds."""
    return f"workspace {workspace_id}"


def proxy_owner(proxy_id: UUID) -> str:
    return f"proxy {proxy_id}"


def daemon_owner(daemon_id: UUID) -> str:
    """Of a provisioner daemon, that joined for being looked at."""
    return f"daemon {daemon_id}"


def keys_of_node(node: tailnet_pb2.Node) -> tuple[bytes, ...]:
    """Its keys, marked by kind. What is no key is left out: whoever hears of such a node does not understand it."""
    found = []
    with suppress(CryptoError):
        found.append(b"n" + _canonical(PublicKey.from_binary_untrusted(node.key)))
    with suppress(CryptoError):
        found.append(b"d" + _canonical(PublicKey.from_disco_text(node.disco)))
    return tuple(found)


def keys_of_untrusted(body: bytes) -> tuple[bytes, ...]:
    """The same of an encoded node; none of one that is broken."""
    try:
        return keys_of_node(tailnet_pb2.Node.FromString(body))
    except DecodeError:
        return ()


def _canonical(key: bytes) -> bytes:
    """One form for all texts that mean the same point: RFC 7748 ignores the top bit and reduces."""
    number = int.from_bytes(key, "little") & ((1 << 255) - 1)
    return (number % _PRIME).to_bytes(32, "little")


async def explain_foreign_keys(ctx: Context, keys: Iterable[bytes], owner: str) -> str:
    """Why `owner` may not have these keys; empty when they are its own from now on."""
    try:
        theirs = await ctx.db.run(store.claim_keys, list(keys), owner, ctx.clock.now())
    except Exception as error:
        # Not asked is not allowed: the peer comes back when the database does.
        _log.warn("the owner of a key could not be looked up", error=error)
        return "the node's keys cannot be checked now"
    return "" if not theirs else "another peer is known by this key"
