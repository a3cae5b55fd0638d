"""Relay map in its three forms: the mesh's values, protobuf (coordination RPC) and JSON (REST).

Also rewrites the embedded relay: an agent reaches it at the same host and port as the server
(docs/protocol/coordination.md#relay-map). JSON uses Go's field names and omits defaults, as recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from coder.base.json_types import Json, JsonObject, checked_list, checked_object
from coder.mesh.derp_map import DerpMap, DerpNode, DerpRegion
from coder.rpc.proto import tailnet_pb2

_NODE_FIELDS = {
    "name": "Name",
    "region_id": "RegionID",
    "host_name": "HostName",
    "cert_name": "CertName",
    "ipv4": "IPv4",
    "ipv6": "IPv6",
    "stun_port": "STUNPort",
    "stun_only": "STUNOnly",
    "derp_port": "DERPPort",
    "insecure_for_tests": "InsecureForTests",
    "force_http": "ForceHTTP",
    "stun_test_ip": "STUNTestIP",
    "can_port_80": "CanPort80",
}
"Our field names (also protobuf's) and those of the JSON form."
REGION_IDS = range(-(1 << 31), 1 << 31)
"A node's message has 32 bits for its home; a region with another number is left out."
_ALWAYS = {"Name", "RegionID", "HostName"}


def with_embedded(derp_map: DerpMap, url: str) -> DerpMap:
    """Return the map as seen by a client that reaches the server at `url`."""
    parts = urlsplit(url)
    plain = parts.scheme in {"http", "ws"}
    port = parts.port or (80 if plain else 443)

    def rewrite(node: DerpNode) -> DerpNode:
        if node.stun_only:
            return node
        return replace(node, host_name=parts.hostname or "", derp_port=port, force_http=plain)

    regions = {
        number: replace(region, nodes=tuple(map(rewrite, region.nodes))) if region.embedded_relay else region
        for number, region in derp_map.regions.items()
    }
    return replace(derp_map, regions=regions)


def without_stun(derp_map: DerpMap) -> DerpMap:
    """Return the map for clients without direct connections: no server is asked for our public address.

    STUN-only nodes are left out, and so are regions without a remaining node.
    """
    regions = {
        number: replace(region, nodes=tuple(replace(node, stun_port=-1) for node in region.relay_nodes()))
        for number, region in derp_map.regions.items()
    }
    return replace(derp_map, regions={number: region for number, region in regions.items() if region.nodes})


# ---- protobuf


def to_proto(derp_map: DerpMap) -> tailnet_pb2.DERPMap:
    message = tailnet_pb2.DERPMap()
    message.home_params.SetInParent()  # upstream's clients crash without it
    message.home_params.region_score.update(derp_map.region_score)
    for number, region in derp_map.regions.items():
        message.regions[number].CopyFrom(
            tailnet_pb2.DERPMap.Region(
                region_id=region.region_id,
                embedded_relay=region.embedded_relay,
                region_code=region.region_code,
                region_name=region.region_name,
                avoid=region.avoid,
                nodes=[
                    tailnet_pb2.DERPMap.Region.Node(**{name: getattr(node, name) for name in _NODE_FIELDS})
                    for node in region.nodes
                ],
            )
        )
    return message


def from_proto(message: tailnet_pb2.DERPMap) -> DerpMap:
    return DerpMap(
        regions={
            number: DerpRegion(
                region_id=region.region_id,
                region_code=region.region_code,
                region_name=region.region_name,
                nodes=tuple(DerpNode(**{name: getattr(node, name) for name in _NODE_FIELDS}) for node in region.nodes),
                embedded_relay=region.embedded_relay,
                avoid=region.avoid,
            )
            for number, region in sorted(message.regions.items())
            if region.region_id in REGION_IDS
        },
        region_score=dict(message.home_params.region_score),
    )


# ---- JSON


def to_json(derp_map: DerpMap) -> JsonObject:
    """Return `{"Regions": {"999": {…}}}`, ready to be encoded."""
    fields: JsonObject = {}
    if derp_map.region_score:
        fields["HomeParams"] = {"RegionScore": {str(key): value for key, value in derp_map.region_score.items()}}
    fields["Regions"] = {str(number): region_to_json(region) for number, region in derp_map.regions.items()}
    return fields


def region_to_json(region: DerpRegion) -> JsonObject:
    fields: JsonObject = {
        "EmbeddedRelay": region.embedded_relay,
        "RegionID": region.region_id,
        "RegionCode": region.region_code,
        "RegionName": region.region_name,
        **({"Avoid": True} if region.avoid else {}),
    }
    fields["Nodes"] = [node_to_json(node) for node in region.nodes]
    return fields


def node_to_json(node: DerpNode) -> JsonObject:
    values = {json_name: getattr(node, name) for name, json_name in _NODE_FIELDS.items()}
    return {name: value for name, value in values.items() if value or name in _ALWAYS}


def from_json(value: Json) -> DerpMap:
    """Parse a relay map. Raises ValueError when `value` is not one."""
    try:
        return _from_json(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a relay map") from error


def _from_json(value: Json) -> DerpMap:
    fields = checked_object(value)
    scores = checked_object(checked_object(fields.get("HomeParams")).get("RegionScore"))
    regions = {
        int(number): region
        for number, value in checked_object(fields.get("Regions")).items()
        if (region := _region_from_json(value)).region_id in REGION_IDS
    }
    return DerpMap(regions, {int(number): float(_number(scores, number)) for number in scores})


def _region_from_json(value: Json) -> DerpRegion:
    fields = checked_object(value)
    return DerpRegion(
        region_id=int(_number(fields, "RegionID")),
        region_code=_text(fields, "RegionCode"),
        region_name=_text(fields, "RegionName"),
        nodes=tuple(map(_node_from_json, checked_list(fields.get("Nodes")))),
        embedded_relay=bool(fields.get("EmbeddedRelay")),
        avoid=bool(fields.get("Avoid")),
    )


def _node_from_json(value: Json) -> DerpNode:
    fields = checked_object(value)
    if missing := _ALWAYS - fields.keys():
        raise KeyError(*missing)
    return DerpNode(
        name=_text(fields, "Name"),
        region_id=int(_number(fields, "RegionID")),
        host_name=_text(fields, "HostName"),
        cert_name=_text(fields, "CertName"),
        ipv4=_text(fields, "IPv4"),
        ipv6=_text(fields, "IPv6"),
        stun_port=int(_number(fields, "STUNPort", 0)),
        stun_only=bool(fields.get("STUNOnly")),
        derp_port=int(_number(fields, "DERPPort", 0)),
        insecure_for_tests=bool(fields.get("InsecureForTests")),
        force_http=bool(fields.get("ForceHTTP")),
        stun_test_ip=_text(fields, "STUNTestIP"),
        can_port_80=bool(fields.get("CanPort80")),
    )


def _text(fields: Mapping[str, Json], name: str) -> str:
    value = fields.get(name) or ""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string")
    return value


def _number(fields: Mapping[str, Json], name: str, absent: float | None = None) -> float | str:
    value = fields.get(name, absent)
    if not isinstance(value, int | float | str):
        raise TypeError(f"{name} must be a number")
    return value
