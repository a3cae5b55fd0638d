"""Reader of `terraform show -json` documents: the resources of a plan or a state, in a stable order.

This module does not interpret the resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coder.base.errors import CoderError
from coder.base.json_types import Json, as_list, as_object, as_text

JsonObject = Mapping[str, Json]
"""Object of a document, read-only."""


@dataclass(frozen=True, slots=True)
class ExtractWarning:
    """Warning for the template's author that fails nothing."""

    message: str
    fields: dict[str, str]


class ExtractError(CoderError):
    """A plan or state cannot become a workspace; the message is for the template's author."""

    def __init__(self, message: str, address: str = "") -> None:
        super().__init__("extract", message, f"Check {address}." if address else "")
        self.address = address
        self.warnings: list[ExtractWarning] = []
        "Warnings found before the error."


class _Attributes:
    """Attributes of a resource or block, as the types that its schema declares."""

    __slots__ = ()
    values: JsonObject

    def text(self, key: str) -> str:
        """Return an attribute as text; "" for null and unknown."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        value = self.values.get(key) or 0
        return int(value) if isinstance(value, int | float | str) else 0

    def flag(self, key: str) -> bool:
        return bool(self.values.get(key))

    def blocks(self, key: str) -> list[Block]:
        """Return nested blocks; none for null."""
        return [Block(values) for values in objects(self.values, key)]


@dataclass(frozen=True, slots=True)
class Block(_Attributes):
    """Block inside a resource."""

    values: JsonObject


@dataclass(frozen=True, slots=True)
class ResourceInstance(_Attributes):
    """Instance of a resource or data source."""

    address: str
    label: str
    "Address up to the first index: the label of its node in the graph."
    module: str
    "Address of its module; empty for the root."
    mode: str
    type: str
    name: str
    values: JsonObject


def objects(of: JsonObject, key: str) -> list[JsonObject]:
    """Return the objects of a list; none for null."""
    return [as_object(item) for item in as_list(of.get(key))]


def _inside(of: JsonObject, *keys: str) -> JsonObject:
    for key in keys:
        of = as_object(of.get(key))
    return of


def resources_of_plan(plan: JsonObject) -> list[ResourceInstance]:
    """Return the planned managed resources, and the data sources that the plan has read."""
    planned = list(_walk(_inside(plan, "planned_values", "root_module"), ""))
    prior = _walk(_inside(plan, "prior_state", "values", "root_module"), "")
    return planned + [resource for resource in prior if resource.mode == "data"]


def resources_of_state(state: JsonObject) -> list[ResourceInstance]:
    return list(_walk(_inside(state, "values", "root_module"), ""))


def _walk(module: JsonObject, address: str) -> Iterator[ResourceInstance]:
    # Child modules first: parameters and presets are listed in this order.
    for child in objects(module, "child_modules"):
        yield from _walk(child, as_text(child.get("address")))
    for resource in objects(module, "resources"):
        full = as_text(resource["address"])
        yield ResourceInstance(
            address=full,
            label=full.partition("[")[0],
            module=address,
            mode=as_text(resource.get("mode", "managed")),
            type=as_text(resource["type"]),
            name=as_text(resource["name"]),
            values=as_object(resource.get("values")),
        )


def by_address(resources: list[ResourceInstance], kind: str) -> list[ResourceInstance]:
    """Return the managed resources of one type, ordered by address."""
    return sorted(
        (resource for resource in resources if resource.mode == "managed" and resource.type == kind), key=_address
    )


def _address(resource: ResourceInstance) -> str:
    return resource.address


_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')
