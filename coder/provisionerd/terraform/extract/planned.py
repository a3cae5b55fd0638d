"""Changes of a plan for the preview of an update: what becomes of each resource, without values that must stay hidden.

Scalars are shown; of lists and objects only the attribute's name is. `Redactor` replaces the secrets known to the job.
"""

from __future__ import annotations

import json

from coder.base.json_types import Json, as_list, as_object, as_text
from coder.provisionerd.redact import REPLACEMENT, Redactor
from coder.provisionerd.terraform.extract.document import JsonObject, objects
from coder.rpc.proto import provisionerd_pb2 as pd

MAX_RESOURCES = 500
MAX_ATTRIBUTES = 40
"""Attributes of one resource."""
MAX_VALUE = 200
"""Characters of a shown value."""
UNKNOWN = "(known after apply)"

_ACTIONS = {
    ("no-op",): "keep",
    ("create",): "create",
    ("update",): "update",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("forget",): "forget",
    ("create", "forget"): "create",
}
"""Terraform's actions (its JSON output format, "Change Representation") -> ours. Reads of data sources are left out."""


def planned_changes(plan: JsonObject, secrets: Redactor) -> pd.PlannedChanges:
    """Return the changes of a `terraform show -json` document of a plan."""
    planned = pd.PlannedChanges()
    for change in objects(plan, "resource_changes"):
        details = as_object(change.get("change"))
        action = _ACTIONS.get(tuple(as_text(item) for item in as_list(details.get("actions"))))
        if action is None or change.get("mode") != "managed":
            continue
        if len(planned.resources) == MAX_RESOURCES:
            planned.omitted += 1
            continue
        planned.resources.add(
            address=as_text(change.get("address")),
            type=as_text(change.get("type")),
            name=as_text(change.get("name")),
            action=action,
            attributes=_attributes(details, secrets) if action in {"update", "replace"} else (),
        )
    return planned


def _attributes(details: JsonObject, secrets: Redactor) -> list[pd.PlannedChanges.Attribute]:
    """Return the top-level attributes that change, those that force a replacement first."""
    forcing = {as_text(as_list(path)[0]) for path in as_list(details.get("replace_paths")) if as_list(path)}
    before, after = as_object(details.get("before")), as_object(details.get("after"))
    unknown = as_object(details.get("after_unknown"))
    # As in Terraform's own output, a value that becomes sensitive hides the one before it too.
    hidden = details.get("before_sensitive"), details.get("after_sensitive")
    changed = {name for name in before.keys() | after.keys() | unknown.keys() if _differs(name, before, after, unknown)}
    names = sorted(forcing - {""}) + sorted(changed - forcing)
    return [
        pd.PlannedChanges.Attribute(
            path=name,
            before=_shown(before.get(name), [_part(mark, name) for mark in hidden], None, secrets),
            after=_shown(after.get(name), [_part(mark, name) for mark in hidden], unknown.get(name), secrets),
            forces_replacement=name in forcing,
        )
        for name in names[:MAX_ATTRIBUTES]
    ]


def _differs(name: str, before: JsonObject, after: JsonObject, unknown: JsonObject) -> bool:
    return before.get(name) != after.get(name) or _any_true(unknown.get(name))


def _shown(value: Json, sensitive: Json, unknown: Json, secrets: Redactor) -> str:
    """Return a scalar as JSON; "" for null, for long values, and for lists and objects."""
    if _any_true(sensitive):
        return REPLACEMENT
    if unknown is True:
        return UNKNOWN
    if value is None or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, str) and secrets.clean(value) != value:
        return REPLACEMENT  # parts of a secret's surroundings help to guess it
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else ""


def _part(sensitive: Json, name: str) -> Json:
    """Return the marks of an attribute; a mark on the whole resource covers each."""
    return sensitive if sensitive is True else as_object(sensitive).get(name)


def _any_true(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_any_true, value.values()))
    return any(map(_any_true, value)) if isinstance(value, list) else value is True
