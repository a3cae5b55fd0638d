"""The part of a template that says when its workspaces start, stop, sleep and go: read from requests, applied.

Upstream keeps these fields for a licence; here they simply work. What they mean for a workspace is `autobuilds.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import UNSET

from coder.api.templates import CreateTemplateRequest, UpdateTemplateMeta
from coder.coderd.services.autobuilds import apply_template_schedule
from coder.coderd.services.errors import InvalidFields
from coder.coderd.store import autobuilds as autobuild_store
from coder.coderd.store import templates as store
from coder.domain.autostop import MAX_WEEKS

if TYPE_CHECKING:
    from coder.coderd.store.database import Tx

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COLUMNS = {
    "failure_ttl_ms": "failure_ttl_ms",
    "time_til_dormant_ms": "time_til_dormant_ms",
    "time_til_dormant_autodelete_ms": "time_til_dormant_autodelete_ms",
    # the same two as requests to create call them
    "dormant_ttl_ms": "time_til_dormant_ms",
    "delete_ttl_ms": "time_til_dormant_autodelete_ms",
    "allow_user_autostart": "allow_user_autostart",
    "allow_user_autostop": "allow_user_autostop",
    "require_active_version": "require_active_version",
    "deprecation_message": "deprecated",
}


def read_schedule(body: CreateTemplateRequest | UpdateTemplateMeta, message: str) -> dict[str, Any]:
    """Columns to set; what the body does not name stays. Raises InvalidFields."""
    found: dict[str, Any] = {}
    faults: list[tuple[str, str]] = []
    for name, column in _COLUMNS.items():
        value = getattr(body, name, UNSET)
        if value is UNSET or value is None:
            continue
        if name.endswith("_ms") and value < 0:
            faults.append((name, "Must be a positive integer."))
        found[column] = value
    stop, start = body.autostop_requirement, body.autostart_requirement
    if stop is not UNSET and stop is not None:
        found["autostop_days"] = _mask("autostop_requirement", stop.days_of_week, faults)
        found["autostop_weeks"] = max(stop.weeks, 1)
        if stop.weeks < 0:
            faults.append(("autostop_requirement.weeks", "Must be a positive integer."))
        elif stop.weeks > MAX_WEEKS:
            faults.append(("autostop_requirement.weeks", f"Must be less than {MAX_WEEKS}."))
    if start is not UNSET and start is not None:
        found["autostart_days"] = _mask("autostart_requirement", start.days_of_week, faults)
    if faults:
        raise InvalidFields(*faults, message=message)
    return found


def _mask(field: str, days: list[str], faults: list[tuple[str, str]]) -> int:
    mask = 0
    for day in days:
        if day.lower() not in _DAYS:
            faults.append((f"{field}.days_of_week", f'invalid weekday "{day}"'))
        else:
            mask |= 1 << _DAYS.index(day.lower())
    return mask


async def write_changes(
    tx: Tx,
    template_id: UUID,
    changes: dict[str, Any],
    body: UpdateTemplateMeta,
    now: datetime,
    default_quiet_hours: str,
) -> None:
    """Stores the changes and lets existing workspaces follow them."""
    before = await store.get_template(tx, template_id, lock=True)
    await store.update_template(tx, template_id, **changes)
    after = await store.get_template(tx, template_id)
    if before is None or after is None:
        return
    await apply_template_schedule(tx, before, after, now, default_quiet_hours)
    if body.update_workspace_last_used_at is True:
        await autobuild_store.touch_all(tx, template_id, now)
    if body.update_workspace_dormant_at is True:
        await autobuild_store.set_deleting(tx, template_id, after.time_til_dormant_autodelete_ms, now, restart=True)
