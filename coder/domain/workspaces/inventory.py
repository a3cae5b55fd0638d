"""Resources that may remain when a workspace is abandoned: those in its Terraform state.

Only the fields that help to locate them: address, type and id. Attributes are left out, since a state contains secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from coder.base.json_types import Json, as_object, as_text

_PROVIDER = re.compile(r'"([^"]*)"')
_BOOKKEEPING = "coder_"
"""Prefix of types that exist in the server only."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """Resource that may be left behind."""

    address: str
    type: str
    name: str
    provider: str
    "Source address, e.g. registry.terraform.io/kreuzwerker/docker."
    id: str


def read_inventory(state: bytes) -> list[Remainder] | None:
    """Return the managed resources of a state in its order; None when the state cannot be parsed."""
    if not state:
        return []
    try:
        resources = json.loads(state)["resources"]
        return [
            item
            for resource in resources
            if resource.get("mode") == "managed" and not resource["type"].startswith(_BOOKKEEPING)
            for item in (_remainder(resource, instance) for instance in resource.get("instances") or [])
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _remainder(resource: Mapping[str, Json], instance: Mapping[str, Json]) -> Remainder:
    kind, name = resource["type"], resource["name"]
    if not isinstance(kind, str) or not isinstance(name, str):
        raise TypeError("a resource has a type and a name")
    parts = [as_text(resource.get("module")), kind, name]
    key = instance.get("index_key")
    index = "" if key is None else f"[{json.dumps(key)}]"
    named = _PROVIDER.search(as_text(resource.get("provider")))
    ident = as_object(instance.get("attributes")).get("id")
    return Remainder(
        address=".".join(filter(None, parts)) + index,
        type=kind,
        name=name,
        provider=named.group(1) if named else "",
        id=ident if isinstance(ident, str) else "",
    )
