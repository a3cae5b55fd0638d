"""Schemas as data: attributes and nested blocks of a resource or data source, and their checks.

The tables are in `resources/` and `data/`; `behaviour.py` implements their meaning for validation and planning. This
module also has the schema's protobuf form (plugin protocol 5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from coder.provisionerd.terraform.provider.diagnostics import Diagnostic
from coder.provisionerd.terraform.provider.proto import tfplugin5_pb2 as wire
from coder.provisionerd.terraform.provider.values import Value

Check = Callable[[Value, str], Iterable[str | Diagnostic]]
"""Check: (value, dotted key such as `validation.0.min`) -> errors; a bare text is an error's summary."""

Mode = Literal["required", "optional", "computed", "optional+computed"]
Nesting = Literal["list", "set"]
CtyType = str | list[object]

STRING: CtyType = "string"
NUMBER: CtyType = "number"
BOOL: CtyType = "bool"
STRING_MAP: CtyType = ["map", "string"]
STRING_LIST: CtyType = ["list", "string"]


@dataclass(frozen=True, slots=True)
class Attribute:
    type: CtyType
    mode: Mode = "optional"
    default: Value = None
    "Default, set at plan time when the configuration omits the attribute."
    check: Check | None = None
    conflicts: tuple[str, ...] = ()
    "Dotted keys that conflict with this one; the first one found is named."
    deprecated: str = ""
    sensitive: bool = False
    description: str = ""

    @property
    def computed(self) -> bool:
        return self.mode in {"computed", "optional+computed"}


@dataclass(frozen=True, slots=True)
class Block:
    nesting: Nesting
    body: Body
    min_items: int = 0
    max_items: int = 0
    "Largest number of items; 0: no limit."
    computed: bool = False
    "Whether an omitted block is unknown until apply."
    conflicts: tuple[str, ...] = ()
    deprecated: str = ""
    description: str = ""


Body = Mapping[str, "Attribute | Block"]


@dataclass(frozen=True, slots=True)
class Schema:
    body: Body
    version: int = 1
    description: str = ""
    unset_blocks: Mapping[str, Value] = field(default_factory=dict)
    "State of a data source's omitted blocks; null for a block that is not listed."


def to_wire(schema: Schema) -> wire.Schema:
    """Return the schema as GetProviderSchema sends it."""
    block = _block_to_wire(schema.body)
    block.description = schema.description
    return wire.Schema(version=schema.version, block=block)


def _block_to_wire(body: Body) -> wire.Schema.Block:
    block = wire.Schema.Block()
    for name in sorted(body):
        entry = body[name]
        if isinstance(entry, Attribute):
            block.attributes.append(_attribute_to_wire(name, entry))
            continue
        inner = _block_to_wire(entry.body)
        inner.description = entry.description
        inner.deprecated = bool(entry.deprecated)
        block.block_types.append(
            wire.Schema.NestedBlock(
                type_name=name,
                block=inner,
                nesting=wire.Schema.NestedBlock.LIST if entry.nesting == "list" else wire.Schema.NestedBlock.SET,
                min_items=entry.min_items,
                max_items=entry.max_items,
            )
        )
    return block


def _attribute_to_wire(name: str, attribute: Attribute) -> wire.Schema.Attribute:
    return wire.Schema.Attribute(
        name=name,
        type=json.dumps(attribute.type, separators=(",", ":")).encode(),
        description=attribute.description,
        required=attribute.mode == "required",
        optional=attribute.mode in {"optional", "optional+computed"},
        computed=attribute.computed,
        sensitive=attribute.sensitive,
        deprecated=bool(attribute.deprecated),
    )
