"""coder_metadata: information that the dashboard shows about another resource."""

from __future__ import annotations

from collections.abc import Iterator

from coder.provisionerd.terraform.provider.checks import is_url
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.kinds import Body, ProviderContext, ResourceKind
from coder.provisionerd.terraform.provider.readers import checked_blocks, known_blocks
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema
from coder.provisionerd.terraform.provider.values import UNKNOWN, Value

_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "optional+computed"),
        "resource_id": Attribute(STRING, "required", description="Resource that the metadata describes."),
        "hide": Attribute(BOOL, description="Whether to hide the resource."),
        "icon": Attribute(STRING, check=is_url, description="URL of an image."),
        "daily_cost": Attribute(NUMBER, description="Credits a day, counted against the owner's quota."),
        "item": Block(
            "list",
            {
                "key": Attribute(STRING, "required", description="Name of the value, unique on the resource."),
                "value": Attribute(STRING, description="The value."),
                "sensitive": Attribute(BOOL, default=False, description="Shown only on request."),
                "is_null": Attribute(BOOL, "computed", description="Whether the value was null."),
            },
            description="A name and its value.",
        ),
    },
    description="Information about a resource, for users.",
)


def _plan(_context: ProviderContext, _config: Body, planned: Body) -> Iterator[Diagnostic]:
    seen: set[Value] = set()
    for item in known_blocks(planned["item"]):
        key = item["key"]
        if key is not UNKNOWN and key in seen:
            yield error(f'duplicate resource metadata key "{key}"')
            return
        seen.add(key)


def _create(_context: ProviderContext, config: Body, state: Body) -> Iterator[Diagnostic]:
    for configured, item in zip(checked_blocks(config["item"]), checked_blocks(state["item"]), strict=True):
        item["is_null"] = configured["value"] is None
    return iter(())


metadata = ResourceKind(_SCHEMA, plan=_plan, create=_create)
