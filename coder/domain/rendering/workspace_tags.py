"""Evaluation of coder_workspace_tags, which select the provisioners of a job by parameter values."""

from __future__ import annotations

from coder.base.json_types import JsonObject
from coder.domain.hcl import tree
from coder.domain.hcl import values as v
from coder.domain.rendering.module_scope import Instance
from coder.domain.rendering.parameters import Rendered
from coder.domain.rendering.presets import refused

_UNKNOWN = "Tag value is not known, it likely refers to a variable that is not set or has no default.; "
_INVALID = "Tag value is not valid, it must be a non-null string value.; "


def _pairs(instance: Instance) -> list[tuple[v.Value, v.Value]]:
    """Return names and values. Items of an object literal are evaluated separately: some may be unknown."""
    world, expression = instance.world, instance.attribute("tags")
    if not isinstance(expression, tree.Object):
        whole = world.evaluate(expression, instance.scope)
        return list(whole.items()) if isinstance(whole, dict) else []
    return [
        (
            key.name if isinstance(key, tree.Variable) else world.evaluate(key, instance.scope),
            world.evaluate(value, instance.scope),
        )
        for key, value in expression.items
    ]


def render_tags(rendered: Rendered) -> tuple[dict[str, str], JsonObject | None]:
    """Return the tags with a value, and the refusal for tags whose value is missing or invalid."""
    tags: dict[str, str] = {}
    problems: list[JsonObject] = []
    for world in rendered.world.walk():
        for located in world.source.of("data", "coder_workspace_tags"):
            for instance in world.expand(located):
                for name, value in _pairs(instance):
                    if not isinstance(name, str) or value is None:
                        continue
                    if v.is_unknown(value):
                        problems.append({"field": name, "detail": _UNKNOWN})
                    elif isinstance(value, list | dict):
                        problems.append({"field": name, "detail": _INVALID})
                    else:
                        tags[name] = v.to_text(value)
    return dict(sorted(tags.items())), refused("Unable to parse workspace tags", problems)
