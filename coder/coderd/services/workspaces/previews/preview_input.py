"""Input of a preview's job: the plan's values, the lease of the page that waits for it, and the planned changes.

A preview is a dry run with a workspace (`JobRow.previewed_workspace`). Several previews of a template belong to the
first of them, the leader, which lists the others and holds the lease of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from coder.base.json_types import Json, JsonObject, as_list, as_object, as_text, as_texts
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.workspaces.planned_update import ACTIONS, PlannedAttribute, PlannedResource
from coder.rpc.proto import provisionerd_pb2

LEASE = timedelta(seconds=90)
"""Time without a request for the preview after which nothing waits for it. Browsers slow the timers of hidden pages
down to one a minute."""
RENEWED_AFTER = timedelta(seconds=10)
MAX_DURATION = timedelta(minutes=15)
"""Time after which a plan counts as hung and is canceled. An open page would keep one of the few slots for hours."""
MAX_PLANNED, MAX_CHANGED, MAX_TEXT = 500, 40, 400
"""Resources, attributes of each and characters of a text that are kept of a daemon's report."""
MAX_ATTRIBUTES_TEXT = 256 << 10
"""Characters of all attributes together."""


def new_input(
    version_id: UUID, workspace_id: UUID, values: Mapping[str, str], leader: UUID, now: datetime
) -> JsonObject:
    """Return the input of a job to queue. `leader` is the job's own id, unless it belongs to a template's preview."""
    return {
        "template_version_id": str(version_id),
        "workspace_id": str(workspace_id),
        "rich_parameter_values": [{"name": name, "value": value} for name, value in values.items()],
        "leader": str(leader),
        "asked_at": now.isoformat(),
    }


def leader_of(job: JobRow) -> UUID:
    return UUID(as_text(job.input["leader"]))


def members_of(leader: JobRow) -> list[UUID]:
    """Return the jobs of a template's preview, the leader first."""
    return [UUID(text) for text in as_texts(leader.input.get("jobs"))]


def has_expired(leader: JobRow, now: datetime) -> bool:
    """Return whether the page that asked for the preview is gone."""
    return now - _asked_at(leader) > LEASE


def is_hung(job: JobRow, at: datetime) -> bool:
    """Return whether the plan of a preview had run for too long at that time."""
    return job.started_at is not None and at - job.started_at > MAX_DURATION


def is_renewable(leader: JobRow, now: datetime) -> bool:
    """Return whether a request should be recorded: not each one writes."""
    return now - _asked_at(leader) >= RENEWED_AFTER


def _asked_at(leader: JobRow) -> datetime:
    return datetime.fromisoformat(as_text(leader.input["asked_at"]))


@dataclass(frozen=True, slots=True)
class Planned:
    """Changes that a daemon reported."""

    resources: list[PlannedResource]
    omitted: int


def stored_changes(planned: provisionerd_pb2.PlannedChanges) -> JsonObject:
    """Return a daemon's report in the form in which the job keeps it, within our limits."""
    kept = planned.resources[:MAX_PLANNED]
    room = MAX_ATTRIBUTES_TEXT
    resources: list[JsonObject] = []
    for resource in kept:
        attributes: list[list[Json]] = []
        for item in resource.attributes[:MAX_CHANGED]:
            texts = [item.path[:MAX_TEXT], item.before[:MAX_TEXT], item.after[:MAX_TEXT]]
            room -= sum(map(len, texts))
            if room >= 0:
                attributes.append([*texts, item.forces_replacement])
        resources.append(
            {
                "address": resource.address[:MAX_TEXT],
                "type": resource.type[:MAX_TEXT],
                "name": resource.name[:MAX_TEXT],
                "action": resource.action if resource.action in ACTIONS else "unknown",
                "attributes": attributes,
            }
        )
    return {"omitted": max(planned.omitted, 0) + len(planned.resources) - len(kept), "resources": resources}


def planned_of(job: JobRow) -> Planned | None:
    """Return the changes of a job that has succeeded; None when its daemon reported none."""
    stored = job.input.get("planned")
    if not isinstance(stored, dict):
        return None
    omitted = stored.get("omitted")
    return Planned(
        [_resource(as_object(item)) for item in as_list(stored.get("resources"))],
        omitted if isinstance(omitted, int) else 0,
    )


def _resource(stored: Mapping[str, Json]) -> PlannedResource:
    action = as_text(stored.get("action"))
    return PlannedResource(
        as_text(stored.get("address")),
        as_text(stored.get("type")),
        as_text(stored.get("name")),
        next((known for known in ACTIONS if known == action), "unknown"),
        [_attribute(as_list(item)) for item in as_list(stored.get("attributes"))],
    )


def _attribute(stored: Sequence[Json]) -> PlannedAttribute:
    path, before, after, forces = stored
    return PlannedAttribute(as_text(path), as_text(before), as_text(after), bool(forces))
