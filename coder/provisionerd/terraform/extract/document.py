"""Reading `terraform show -json` documents: the resources of a plan or a state, in a steady order.

Nothing here knows what a resource means to us.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coder.base.errors import CoderError

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something the template's author should know that stops nothing."""

    message: str
    fields: dict[str, str]


class ExtractError(CoderError):
    """A plan or state that cannot become a workspace; the message is for the template's author."""

    def __init__(self, message: str, address: str = "") -> None:
        super().__init__("extract", message, f"Look at {address}." if address else "")
        self.address = address
        self.warnings: list[Remark] = []
        "What was noticed before."


@dataclass(frozen=True, slots=True)
class Found:
    """One resource instance."""

    address: str
    label: str
    "The address up to the first index: its node in the graph."
    module: str
    "Address of the module it is in; empty for the root."
    mode: str
    type: str
    name: str
    values: Json

    def text(self, key: str) -> str:
        """An attribute as text; null and unknown are empty."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        return int(self.values.get(key) or 0)

    def flag(self, key: str) -> bool:
        return bool(self.values.get(key))

    def blocks(self, key: str) -> list[Json]:
        return list(self.values.get(key) or [])


def resources_of_plan(plan: Json) -> list[Found]:
    """Planned managed resources, and the data sources the plan has read."""
    found = list(_walk(plan.get("planned_values", {}).get("root_module", {}), ""))
    prior = _walk(plan.get("prior_state", {}).get("values", {}).get("root_module", {}), "")
    return found + [resource for resource in prior if resource.mode == "data"]


def resources_of_state(state: Json) -> list[Found]:
    return list(_walk(state.get("values", {}).get("root_module", {}), ""))


def _walk(module: Json, address: str) -> Iterator[Found]:
    # Child modules first: parameters and presets are listed in this order.
    for child in module.get("child_modules") or []:
        yield from _walk(child, child.get("address", ""))
    for resource in module.get("resources") or []:
        full = resource["address"]
        yield Found(
            address=full,
            label=full.partition("[")[0],
            module=address,
            mode=resource.get("mode", "managed"),
            type=resource["type"],
            name=resource["name"],
            values=resource.get("values") or {},
        )


def by_address(resources: list[Found], kind: str) -> list[Found]:
    """The managed resources of one type, ordered by address."""
    return sorted((one for one in resources if one.mode == "managed" and one.type == kind), key=_address)


def _address(resource: Found) -> str:
    return resource.address


_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')
