"""Reader of `terraform show -json` documents: the resources of a plan or a state, in a stable order.

This module does not interpret the resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coder.base.errors import CoderError

Json = Mapping[str, Any]


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


@dataclass(frozen=True, slots=True)
class ResourceInstance:
    """Instance of a resource or data source."""

    address: str
    label: str
    "Address up to the first index: the label of its node in the graph."
    module: str
    "Address of its module; empty for the root."
    mode: str
    type: str
    name: str
    values: Json

    def text(self, key: str) -> str:
        """Return an attribute as text; "" for null and unknown."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        return int(self.values.get(key) or 0)

    def flag(self, key: str) -> bool:
        return bool(self.values.get(key))

    def blocks(self, key: str) -> list[Json]:
        return list(self.values.get(key) or [])


def resources_of_plan(plan: Json) -> list[ResourceInstance]:
    """Return the planned managed resources, and the data sources that the plan has read."""
    planned = list(_walk(plan.get("planned_values", {}).get("root_module", {}), ""))
    prior = _walk(plan.get("prior_state", {}).get("values", {}).get("root_module", {}), "")
    return planned + [resource for resource in prior if resource.mode == "data"]


def resources_of_state(state: Json) -> list[ResourceInstance]:
    return list(_walk(state.get("values", {}).get("root_module", {}), ""))


def _walk(module: Json, address: str) -> Iterator[ResourceInstance]:
    # Child modules first: parameters and presets are listed in this order.
    for child in module.get("child_modules") or []:
        yield from _walk(child, child.get("address", ""))
    for resource in module.get("resources") or []:
        full = resource["address"]
        yield ResourceInstance(
            address=full,
            label=full.partition("[")[0],
            module=address,
            mode=resource.get("mode", "managed"),
            type=resource["type"],
            name=resource["name"],
            values=resource.get("values") or {},
        )


def by_address(resources: list[ResourceInstance], kind: str) -> list[ResourceInstance]:
    """Return the managed resources of one type, ordered by address."""
    return sorted(
        (resource for resource in resources if resource.mode == "managed" and resource.type == kind), key=_address
    )


def _address(resource: ResourceInstance) -> str:
    return resource.address


_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')
