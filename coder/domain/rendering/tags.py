"""coder_workspace_tags: which provisioners may run a job, by the values of its parameters."""

from __future__ import annotations

from coder.domain.hcl import tree
from coder.domain.hcl import values as v
from coder.domain.rendering.parameters import Json, Rendered
from coder.domain.rendering.presets import refused

_UNKNOWN = "Tag value is not known, it likely refers to a variable that is not set or has no default.; "
_INVALID = "Tag value is not valid, it must be a non-null string value.; "


def render_tags(rendered: Rendered) -> tuple[dict[str, str], Json | None]:
    """The tags that have a value, and the refusal for those that have none they may have."""
    tags: dict[str, str] = {}
    problems: list[Json] = []
    for world in rendered.world.walk():
        for located in world.source.of("data", "coder_workspace_tags"):
            for instance in world.expand(located):
                expression = instance.attribute("tags")
                if not isinstance(expression, tree.Object):
                    continue
                for key, value_expression in expression.items:
                    name = key.name if isinstance(key, tree.Variable) else world.evaluate(key, instance.scope)
                    value = world.evaluate(value_expression, instance.scope)
                    if not isinstance(name, str) or value is None:
                        continue
                    if v.is_unknown(value):
                        problems.append({"field": name, "detail": _UNKNOWN})
                    elif isinstance(value, list | dict):
                        problems.append({"field": name, "detail": _INVALID})
                    else:
                        tags[name] = v.to_text(value)
    return dict(sorted(tags.items())), refused("Unable to parse workspace tags", problems)
