"""Reader of terraform's own state file, which saves a terraform run.

Format version 4, stable since Terraform 0.12. Returns the resources of `terraform show -json`, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from coder.base.json_types import Json, as_object, as_text
from coder.provisionerd.terraform.extract.document import ExtractError, JsonObject, ResourceInstance, objects


def resources_of_state_file(data: bytes) -> list[ResourceInstance]:
    """Return the resources. Raises ExtractError for data that is not a state of version 4."""
    try:
        state = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ExtractError("the terraform state is not JSON") from error
    if not isinstance(state, dict) or state.get("version") != 4:
        raise ExtractError("the terraform state has an unknown format")
    instances = list(_instances(state))
    # Child modules before their parents, as `terraform show` lists them; by address within a module.
    return sorted(instances, key=lambda item: _module_rank(item.module))


def _module_rank(module: str) -> tuple[tuple[int, str], ...]:
    # A parent sorts after its children: compare with a final mark greater than any name.
    return (*((0, part) for part in module.split(".module.") if part), (1, ""))


def _rank(resource: JsonObject) -> tuple[str, str, str]:
    return as_text(resource.get("mode")), as_text(resource["type"]), as_text(resource["name"])


def _instances(state: JsonObject) -> Iterator[ResourceInstance]:
    resources = sorted(objects(state, "resources"), key=_rank)
    for resource in resources:
        module, kind, name = (as_text(resource.get(key)) for key in ("module", "type", "name"))
        base = f"{kind}.{name}"
        mode = as_text(resource.get("mode", "managed"))
        prefix = (f"{module}." if module else "") + ("data." if mode == "data" else "")
        for instance in objects(resource, "instances"):
            if "deposed" in instance:
                continue
            address = prefix + base + _index(instance.get("index_key"))
            yield ResourceInstance(
                address=address,
                label=address.partition("[")[0],
                module=module,
                mode=mode,
                type=kind,
                name=name,
                values=as_object(instance.get("attributes")),
            )


def _index(key: Json) -> str:
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{json.dumps(key, ensure_ascii=False)}]"
