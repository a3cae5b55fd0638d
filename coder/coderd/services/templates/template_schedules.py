"""Schedules of a template's workspaces: autostart, autostop, dormancy and deletion, read from requests and applied.

Upstream requires a license for these fields; this server does not. Their effect on a workspace is
`services/workspaces/autobuilds.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET

from coder.api.base.refusals import InvalidFields, NotFound
from coder.api.templates.templates import CreateTemplateRequest, UpdateTemplateMeta
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import TemplateChanges, TemplateRow
from coder.coderd.store.workspaces import autobuilds as autobuild_store
from coder.coderd.store.workspaces import port_shares
from coder.coderd.store.workspaces.change_feed import notify_changes
from coder.domain.notifications.notification_templates import WORKSPACE_MARKED_FOR_DELETION
from coder.domain.workspaces.autobuild import in_words
from coder.domain.workspaces.autostop import MAX_WEEKS, Requirement, deadlines, quiet_hours
from coder.domain.workspaces.workspaces import MAX_TTL_MS, TOO_LONG, next_start

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MIN_MS = 60_000
_Column = Literal[
    "failure_ttl_ms",
    "time_til_dormant_ms",
    "time_til_dormant_autodelete_ms",
    "allow_user_autostart",
    "allow_user_autostop",
    "require_active_version",
    "deprecated",
]
_COLUMNS: dict[str, _Column] = {
    "failure_ttl_ms": "failure_ttl_ms",
    "time_til_dormant_ms": "time_til_dormant_ms",
    "time_til_dormant_autodelete_ms": "time_til_dormant_autodelete_ms",
    # names of the same two in requests that create templates
    "dormant_ttl_ms": "time_til_dormant_ms",
    "delete_ttl_ms": "time_til_dormant_autodelete_ms",
    "allow_user_autostart": "allow_user_autostart",
    "allow_user_autostop": "allow_user_autostop",
    "require_active_version": "require_active_version",
    "deprecation_message": "deprecated",
}


def read_schedule(
    body: CreateTemplateRequest | UpdateTemplateMeta, message: str, present: TemplateRow | None = None
) -> TemplateChanges:
    """Return the columns to set; omitted and unchanged values stay. Raises InvalidFields.

    Times until dormancy or deletion below a minute are rejected in changes: they can only be a mistake of units.
    """
    columns: TemplateChanges = {}
    faults: list[tuple[str, str]] = []
    for name, column in _COLUMNS.items():
        value = getattr(body, name, UNSET)
        if value is UNSET or value is None or (present is not None and value == getattr(present, column)):
            continue
        if name.endswith("_ms") and present is not None and value != 0 and value < _MIN_MS:
            faults.append((name, "Value must be at least one minute."))
        elif name.endswith("_ms") and value < 0:
            faults.append((name, "Must be a positive integer."))
        elif name.endswith("_ms") and value > MAX_TTL_MS:
            faults.append((name, TOO_LONG))
        columns[column] = value
    stop, start = body.autostop_requirement, body.autostart_requirement
    if stop is not UNSET and stop is not None:
        columns["autostop_days"] = _mask("autostop_requirement", stop.days_of_week, faults)
        columns["autostop_weeks"] = max(stop.weeks, 1)
        if stop.weeks < 0:
            faults.append(("autostop_requirement.weeks", "Must be a positive integer."))
        elif stop.weeks > MAX_WEEKS:
            faults.append(("autostop_requirement.weeks", f"Must be less than {MAX_WEEKS}."))
    if start is not UNSET and start is not None:
        columns["autostart_days"] = _mask("autostart_requirement", start.days_of_week, faults)
    if faults:
        raise InvalidFields(*faults, message=message)
    return columns


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
    before: TemplateRow,
    changes: TemplateChanges,
    body: UpdateTemplateMeta,
    now: datetime,
    default_quiet_hours: str,
    site: NotificationSite,
) -> None:
    """Store changes of a row from `lock_template`, and apply them to existing workspaces."""
    await store.update_template(tx, before.id, **changes)
    after = await system_templates.get_template(tx, before.id)
    if after is None:  # impossible: this transaction locked the row
        raise NotFound
    await apply_template_schedule(tx, before, after, now, default_quiet_hours)
    if before.max_port_share_level != after.max_port_share_level:
        # A later, wider limit must not open again what this one closed.
        await port_shares.narrow_port_shares(tx, after.id, after.max_port_share_level)
        await notify_sharing_revoked(tx)
    if body.update_workspace_last_used_at is True:
        await autobuild_store.touch_all(tx, after.id, now)
    if body.update_workspace_dormant_at is True:
        await autobuild_store.set_deleting(tx, after.id, after.time_til_dormant_autodelete_ms, now, restart=True)
    if before.time_til_dormant_autodelete_ms != after.time_til_dormant_autodelete_ms:
        await _notify_marked(tx, after, now, site)


async def _notify_marked(tx: Tx, template: TemplateRow, now: datetime, site: NotificationSite) -> None:
    """Notify owners of dormant workspaces that the template's new setting will delete these."""
    labels = {"reason": "an update to the template's dormancy settings"}
    labels["timeTilDormant"] = in_words(template.time_til_dormant_autodelete_ms)
    for workspace in await autobuild_store.list_marked(tx, template.id):
        about = (workspace.id, template.id, workspace.owner_id, workspace.organization_id)
        values = {**labels, "name": workspace.name}
        notice = Notification(WORKSPACE_MARKED_FOR_DELETION, workspace.owner_id, values, about)
        await notifications.enqueue(tx, site, notice, now)


async def apply_template_schedule(
    tx: Tx, before: TemplateRow, after: TemplateRow, now: datetime, default_quiet: str
) -> None:
    """Apply a template's new schedule to existing workspaces: next starts, deletion, latest stops."""
    if before.autostart_days != after.autostart_days:
        schedules = await autobuild_store.list_schedules(tx, after.id)
        starts = {schedule: next_start(schedule, now, allowed_days=after.autostart_days) for schedule in schedules}
        await autobuild_store.move_next_starts(tx, after.id, starts)
    if before.time_til_dormant_autodelete_ms != after.time_til_dormant_autodelete_ms:
        await autobuild_store.set_deleting(tx, after.id, after.time_til_dormant_autodelete_ms, now, restart=False)
    if (before.autostop_days, before.autostop_weeks) != (after.autostop_days, after.autostop_weeks):
        requirement = Requirement(after.autostop_days, after.autostop_weeks)
        running = await autobuild_store.list_running(tx, after.id)
        # A new requirement counts from now on, so that no workspace is stopped for the past.
        latest = {
            quiet: deadlines(now, None, requirement, quiet_hours(quiet, default_quiet)).maximum
            for quiet in {build.quiet_hours for build in running}
        }
        stops = {build.id: latest[build.quiet_hours] for build in running}
        await autobuild_store.move_latest_stops(tx, stops, now)
        await notify_changes(tx, "settings", [(build.owner_id, build.workspace_id) for build in running])
