"""Reading terraform's own state file, so that no terraform has to be run to show it.

Format version 4, stable since Terraform 0.12. The same resources as `terraform show -json` lists, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from coder.provisionerd.terraform.extract.document import ExtractError, Found, Json


def resources_of_state_file(data: bytes) -> list[Found]:
    """Raises ExtractError for anything that is no state of version 4."""
    try:
        state = json.loads(data)
    except ValueError as problem:
        raise ExtractError("the terraform state is not JSON") from problem
    if not isinstance(state, dict) or state.get("version") != 4:
        raise ExtractError("the terraform state has an unknown format")
    found = list(_instances(state))
    # Child modules before their parents, as in the shown form; by address within a module.
    return sorted(found, key=lambda one: _module_rank(one.module))


def _module_rank(module: str) -> tuple[object, ...]:
    # A parent sorts after its children: compare with a final mark greater than any name.
    return (*((0, part) for part in module.split(".module.") if part), (1, ""))


def _instances(state: Json) -> Iterator[Found]:
    resources = sorted(state.get("resources") or [], key=lambda one: (one.get("mode"), one["type"], one["name"]))
    for resource in resources:
        module = resource.get("module", "")
        base = f"{resource['type']}.{resource['name']}"
        mode = resource.get("mode", "managed")
        prefix = (f"{module}." if module else "") + ("data." if mode == "data" else "")
        for instance in resource.get("instances") or []:
            if "deposed" in instance:
                continue
            address = prefix + base + _index(instance.get("index_key"))
            yield Found(
                address=address,
                label=address.partition("[")[0],
                module=module,
                mode=mode,
                type=resource["type"],
                name=resource["name"],
                values=instance.get("attributes") or {},
            )


def _index(key: object) -> str:
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{json.dumps(key, ensure_ascii=False)}]"
