"""Limits of the answers that an agent, a daemon or a client reads from a server: the table for `message_limits.py`.

A server is trusted with what it asks for, not with the memory of every process that dials it: 4 MiB of empty elements
decode to some hundred megabytes, and each script, application or relay of a list costs a task. Texts may fill their
message.
"""

from __future__ import annotations

from coder.rpc.drpc import MAX_PACKET
from coder.rpc.message_limits import FieldDefaults, MessageLimits

MAX_TOTAL_ELEMENTS = 131_072
"Elements of an answer, all its lists and maps together: a deployment's workspaces with their agents, for example."
_ANY_SIZE = MAX_PACKET

_PACKAGES = {
    "coder.agent.v2": FieldDefaults(elements=4096, size=_ANY_SIZE),
    "coder.tailnet.v2": FieldDefaults(elements=65_536, size=_ANY_SIZE),
    "coder.overlay.v1": FieldDefaults(elements=65_536, size=_ANY_SIZE),
    "provisionerd": FieldDefaults(elements=65_536, size=_ANY_SIZE),
    "provisioner": FieldDefaults(elements=65_536, size=_ANY_SIZE),
    "google.protobuf": FieldDefaults(elements=65_536, size=_ANY_SIZE),
}

_ELEMENTS = {
    # Each region is measured and may hold a connection; the largest public map has some thirty.
    "coder.tailnet.v2.DERPMap.regions": 512,
    "coder.tailnet.v2.DERPMap.HomeParams.region_score": 512,
    "coder.tailnet.v2.DERPMap.Region.nodes": 64,
    # As a coordinator accepts them, and those of older servers, which cut nothing.
    "coder.tailnet.v2.Node.derp_latency": 1024,
    "coder.tailnet.v2.Node.derp_forced_websocket": 1024,
    "coder.tailnet.v2.Node.addresses": 64,
    "coder.tailnet.v2.Node.allowed_ips": 64,
    "coder.tailnet.v2.Node.endpoints": 1024,
}

ANSWER_LIMITS = MessageLimits(_PACKAGES, _ELEMENTS, {}, total=MAX_TOTAL_ELEMENTS)
