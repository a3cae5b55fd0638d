"""Schemas as data: what attributes and nested blocks a resource or data source has, and how each is checked.

The tables themselves live in `resources/` and `data/`; what the tables mean while validating and planning is in
`behaviour.py`. Here also: the schema's protobuf form (plugin protocol 5).
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
"""(value, dotted key such as `validation.0.min`) -> complaints; a bare text is an error's summary."""

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
    "Put in at plan time where the configuration says nothing."
    check: Check | None = None
    conflicts: tuple[str, ...] = ()
    "Dotted keys that must not be given beside this one; the first one found is named."
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
    "0: no limit."
    computed: bool = False
    "Left out of the configuration, the whole block is unknown until apply."
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
    "What a data source answers for a block nobody wrote; null where nothing is said here."


def to_wire(schema: Schema) -> wire.Schema:
    """The schema as GetProviderSchema sends it."""
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
